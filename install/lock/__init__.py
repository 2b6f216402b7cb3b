"""From a choice to the lock: every file of an environment, with its hash and its index."""
