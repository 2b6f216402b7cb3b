"""What the doctor found on a node of Kubernetes: as node conditions, a taint, metrics, for other tools."""
