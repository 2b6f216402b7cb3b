"""`envcheck run` and `envcheck shell`: starts what is installed as it should be started."""
