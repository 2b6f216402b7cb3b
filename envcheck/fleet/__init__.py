"""Many machines: engines that ask them, what each says, groups of the same problem, and the outliers.

An engine (``engines/``) asks the machines of an inventory and keeps what they answer in a directory, whose
shape ``folder.py`` knows; any other way to fill such a directory will do. ``workers.py`` judges each
Snapshot as the doctor does, in processes side by side, and keeps of each only a ``JudgedMachine``; what
can be said of all together is made of these (``result.py``), and ``reports/`` shows it.
"""
