"""What nvidia-smi says: XML or text → tree → the facts of the Snapshot's "nvidia_smi" section.

``tree`` reads either form into one kind of tree, ``fields`` is the table of where each fact stands in it,
``values`` turns its words into values and reasons, ``lists`` reads lists and groups, and ``document`` puts
it together.
"""
