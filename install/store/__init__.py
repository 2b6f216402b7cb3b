"""Every file once fetched, kept by its sha256, and the fetching of those that are missing."""
