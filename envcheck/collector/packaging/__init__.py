"""What is installed in a Python environment, by whom, and how pip and uv are configured."""
