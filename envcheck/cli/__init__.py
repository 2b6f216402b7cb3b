"""The command line: a thin file a command, and what they share."""
