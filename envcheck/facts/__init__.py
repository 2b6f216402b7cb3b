"""The facts' types, one file an area. `envcheck.snapshot` puts them together."""
