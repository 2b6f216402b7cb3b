"""The collector: raw facts about this machine and a target, as JSON. It judges nothing.

Runs on Python 3.6 and the standard library alone, in whatever interpreter it is handed, and imports
nothing from the rest of envcheck.
"""
