"""How long the machine has been up. Python 3.6, standard library; runs in a process of its own."""

DOCUMENT = "machine"
DEADLINE = 5


def collect(context):
    return {"days": int(float(context.read("/proc/uptime").split()[0]) / 86400)}
