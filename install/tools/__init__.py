"""The programs that an environment is made with: uv, pip, virtualenv, and what sdists are built by."""
