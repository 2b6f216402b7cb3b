"""What the installer shows: plans, releases and environments; pure."""
