"""`envcheck run` and `envcheck shell`: starts a program in what is installed."""
