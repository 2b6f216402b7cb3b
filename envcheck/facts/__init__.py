"""The facts' types, the Snapshot that puts them together, and the view on it."""
