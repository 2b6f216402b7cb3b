"""What an installation is carried to other machines as: a bundle for one without a network, a Dockerfile."""
