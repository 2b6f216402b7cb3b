"""Mixed precision: the steps that are run, the types that are counted in them, and how they are timed."""
