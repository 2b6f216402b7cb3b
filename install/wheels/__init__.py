"""The wheel mode: from a choice to the lock, and from the lock to a virtual environment."""
