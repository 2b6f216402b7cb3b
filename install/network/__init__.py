"""HTTP as envcheck uses it: verified, and silent about credentials."""
