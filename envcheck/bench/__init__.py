"""`envcheck bench`: which rows are run, and what their figures are held against. Pure."""
