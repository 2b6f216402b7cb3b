"""What an installation would do, before it does any of it."""
