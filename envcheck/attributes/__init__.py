"""What machines are compared by, for profiles (--expect), baselines, diff and fleet outliers. Pure."""
