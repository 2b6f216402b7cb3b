"""HTTP as envcheck uses it: verified, patient, and silent about credentials."""
