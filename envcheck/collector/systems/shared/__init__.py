"""What several systems have in common."""
