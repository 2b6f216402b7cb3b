"""What ACME wants of its machines, for envcheck."""
