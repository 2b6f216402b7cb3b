"""Profiles, which a machine is held against: their keys, reading one, and writing one of a machine."""
