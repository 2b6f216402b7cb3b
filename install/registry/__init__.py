"""What a container registry says of an image: names, manifests, configs. Pure."""
