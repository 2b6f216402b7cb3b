"""Reports: pure functions from a Snapshot and its Diagnosis to text, one file a format."""
