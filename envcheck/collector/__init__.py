"""The collector: raw facts about this machine and a target, as JSON. It judges nothing."""
