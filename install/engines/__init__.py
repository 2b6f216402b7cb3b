"""Container engines: which works here, how GPUs get into its containers, what it holds."""
