"""The facts' types, one file an area. `envcheck.facts.snapshot` puts them together."""
