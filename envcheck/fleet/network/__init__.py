"""`envcheck fleet network`: the machines of a fleet test the network between them, and what that shows.

``running`` starts the program of each machine by Ansible or Slurm, twice: all pairs in rounds; then what
failed or was slow once more, and all healthy machines together. ``judging`` is pure: answers → findings.
"""
