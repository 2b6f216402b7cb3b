"""What a container registry says: names, manifests, logins."""
