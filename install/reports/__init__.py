"""What the installer shows: plans, releases, and what is installed; pure."""
