"""An installation as a transaction: it is there, verified, or everything is as it was.

A root holds versions, each a virtual environment of its own that is never moved, and the link ``current``
to the one in use. A new version is built beside the others, and the link is swapped after the doctor has
found it well.
"""
