"""The parent of rows: their processes, the largest batch, warm-up, turns, and where ranks meet."""
