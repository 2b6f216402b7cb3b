"""Mixed precision in TensorFlow by graph rewrite: the step, the words a build knows, a made-up GPU."""
