"""When the kernel started."""

import re


def boot_time(context):
    """Seconds since the epoch at which the kernel started, or None."""
    match = re.search(r"^btime (\d{1,15})", context.text("/proc/stat"), re.M)
    return int(match.group(1)) if match else None
