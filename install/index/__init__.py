"""The read-through index: what an installer sees of the world, and nothing else.

simple → policy → views is what an index's page goes through before uv or pip is shown it; the server
hands it to them on the loopback interface.
"""
