"""Container images: their lock, and archives of them."""
