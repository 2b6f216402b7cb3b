"""The rules by which udev removes NVIDIA's devices, or sets who may use their nodes."""

import re

# In the order in which udev prefers them: a file hides those of its name further down.
FOLDERS = ("/etc/udev/rules.d", "/run/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d")
OURS = re.compile(r"nvidia|0x10de", re.I)
TELLING = re.compile(
    r'\b(?:MODE|GROUP|OWNER)\s*:?=|ATTR\{remove\}\s*=\s*"1"|chmod|chgrp|chown|driver_override'
)
LIMIT = 40  # lines
LENGTH = 400  # of a line


def udev_rules(context):
    seen = {}  # files by their names
    for folder in FOLDERS:
        for name in context.names(folder):
            if name.endswith(".rules"):
                seen.setdefault(name, "%s/%s" % (folder, name))
    found = []
    for path in sorted(seen.values()):
        for line in context.text(path).replace("\\\n", " ").splitlines():
            rule = line.strip()[:LENGTH]
            if not rule.startswith("#") and OURS.search(rule) and TELLING.search(rule):
                found.append({"path": path, "line": rule})
    return found[:LIMIT]
