"""Container images: references, registries, what a tag is today, and the NGC catalogue."""
