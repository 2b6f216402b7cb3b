"""Finding helper programs."""

import os

# Where they are although PATH, cut short by ssh, cron or sudo, does not say so.
USUAL = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/snap/bin")


def find(context, name):
    """The path of a program as this machine has it (without the context's root), or None."""
    folders = [
        folder
        for folder in context.environ.get("PATH", "").split(os.pathsep)
        if os.path.isabs(folder)
    ]
    for folder in folders + [usual for usual in USUAL if usual not in folders]:
        path = context.path(folder.rstrip("/") + "/" + name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return folder.rstrip("/") + "/" + name
    return None
