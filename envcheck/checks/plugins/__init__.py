"""The check on envcheck itself: what other packages add to it."""
