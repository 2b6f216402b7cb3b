"""Which of the programs that matter to containers run here, and how they were started."""

from collections import namedtuple

Running = namedtuple("Running", "number arguments")


def running(context, names):
    """{name: [Running, ...]} of the processes of these names, as far as this user sees them."""
    found = {}
    numbers = [name for name in context.names("/proc") if name.isdecimal()]
    for number in sorted(numbers, key=int):
        name = context.text("/proc/%s/comm" % number).strip()
        if name in names:
            line = context.text("/proc/%s/cmdline" % number)
            found.setdefault(name, []).append(Running(number, line.rstrip("\0").split("\0")))
    return found


def option(arguments, *names):
    """The value of an option, as "--name value" or "--name=value"; None where it is not given."""
    for place, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name in names:
            if equals:
                return value
            return arguments[place + 1] if place + 1 < len(arguments) else None
    return None
