"""Text whose indentation was lost on the way: the groups are told by the names in the table of facts."""

from . import fields

# Groups that are lists or are read as a whole; of the rest the table of facts knows the names.
GROUPS = (
    ("Clocks Event Reasons",),
    ("Clocks Throttle Reasons",),
    ("Fabric", "Health"),
)
# What cannot be put together without indentation.
UNKNOWN = ("MIG Device", "Processes")


def _paths():
    found = [path for row in fields.FIELDS for alternative in row[3] for path in _each(alternative)]
    return [tuple(path.split("/")) for path in found]


def _each(alternative):
    return (alternative,) if isinstance(alternative, str) else alternative


LEAVES = frozenset(_paths()) | frozenset((("Fabric", "Status"),))
HEADINGS = frozenset(path[:end] for path in LEAVES for end in range(1, len(path))) | frozenset(
    path[:end] for path in GROUPS for end in range(1, len(path) + 1)
)
_BY_NAME = {}
for _path in sorted(LEAVES):
    _BY_NAME.setdefault(_path[-1], []).append(_path)


class Builder(object):
    """Hangs the pairs and headings of one GPU where the table of facts has them."""

    def __init__(self, gpu, make):
        self._gpu, self._make = gpu, make
        self._nodes = {(): gpu}
        self._at = ()  # the group that was begun last

    def add(self, node):
        """A line as a Node: a pair, or a heading where it has no value."""
        if not node.value:
            self._begin(node.name)
        else:
            self._put(node)

    def _begin(self, name):
        for depth in range(len(self._at), -1, -1):
            path = self._at[:depth] + (name,)
            if path in HEADINGS:
                self._at = path
                self._empty(path)  # a MIG instance's comes before the GPU's own
                return
        if not any(self._at[: len(group)] == group for group in GROUPS):
            self._at = ("",)  # a group of which no fact is taken

    def _empty(self, path):
        for below in [known for known in self._nodes if known[: len(path)] == path]:
            self._nodes[below].children = []
            if below != path:
                del self._nodes[below]
        self._group(path)

    def _put(self, node):
        if (node.name,) in HEADINGS:  # "Remapped Rows : N/A"
            self._gpu.children.append(node)
            return
        for depth in range(len(self._at), -1, -1):
            path = self._at[:depth] + (node.name,)
            if path in LEAVES or self._at[:depth] in GROUPS:
                self._group(self._at[:depth]).children.append(node)
                return
        known = _BY_NAME.get(node.name, ())
        if len(known) == 1:
            self._group(known[0][:-1]).children.append(node)

    def _group(self, path):
        if path not in self._nodes:
            node = self._make(path[-1])
            self._group(path[:-1]).children.append(node)
            self._nodes[path] = node
        return self._nodes[path]
