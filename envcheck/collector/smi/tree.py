"""Reads `nvidia-smi -q -x` (XML) and `nvidia-smi -q` (text) into one kind of tree."""

import itertools
import re
from xml.parsers import expat

from . import flat

DEPTH_LIMIT = 64
NODE_LIMIT = 500000  # sixteen GPUs with all their supported clocks have fewer than a tenth
SECTION_LIMIT = 1000
STRAY_LIMIT = 100  # lines of messages between two GPUs; more are another program's

_ROOT = re.compile(r"<nvidia_smi_log[\s>]")
_END = "</nvidia_smi_log>"
_SCHEMA = re.compile(r"nvsmi_device_(v\d+)\.dtd")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_BARE_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9A-Fa-f]{1,6});)")

_MARKER = re.compile(r"^([ \t]*)={5,}[ \t]*NVSMI LOG[ \t]*={5,}[ \t]*\r?$", re.MULTILINE)
_GPU = re.compile(r"GPU ([0-9A-Za-z]{4,8}:[0-9A-Za-z]{1,2}:[0-9A-Za-z]{1,2}\.[0-9A-Za-z])\Z")
_HEADING = re.compile(
    r"^([ \t]*)GPU [0-9A-Za-z]{4,8}:[0-9A-Za-z]{1,2}:[0-9A-Za-z]{1,2}\.[0-9A-Za-z][ \t]*$", re.M
)
_DELIMITER = re.compile(
    r"(?:([#=_*~`-])\1{2,}|\+--|<)"
)  # what other sections of a larger file begin with


class Node(object):
    """An XML element or a line of text: its name, its own text, and what stands below it.

    A GPU's own text is the PCI address in its heading. ``lost``: names of groups below it that may lack
    something, since the document ends in them, or has lost its indentation.
    """

    __slots__ = ("children", "lost", "name", "value")

    def __init__(self, name, value=""):
        self.name = name
        self.value = value
        self.children = []
        self.lost = frozenset()

    def all(self, path):
        """Every node at a path of names ("clocks/sm_clock")."""
        nodes = [self]
        for name in path.split("/"):
            nodes = [child for node in nodes for child in node.children if child.name == name]
        return nodes

    def first(self, path):
        found = self.all(path)
        return found[0] if found else None

    def text(self, path):
        """The text at a path; where a group above it is a leaf ("Remapped Rows : N/A"), the group's.

        None where neither is there.
        """
        node = self
        for name in path.split("/"):
            below = next((child for child in node.children if child.name == name), None)
            if below is None:
                return node.value if node is not self and node.value and not node.children else None
            node = below
        return node.value


class Document(object):
    """A tree and where it came from. ``form``: "xml", "text"; ``schema``: "v12", or None; ``cut``: it ends
    in the midst of a GPU."""

    def __init__(self, form, root, schema=None, cut=False):
        self.form = form
        self.root = root
        self.schema = schema
        self.cut = cut

    def gpus(self):
        return [node for node in self.root.children if node.name == "gpu"]


def parse(text):
    """The first document in a text that may hold much else: a Document. Raises ValueError."""
    if not text.strip():
        raise ValueError("it is empty")
    xml, marker = _ROOT.search(text), _MARKER.search(text)
    if xml is not None and (marker is None or xml.start() < marker.start()):
        return _parse_xml(text, xml.start())
    if marker is not None:
        return _parse_text(text)
    if "<?xml" in text or "nvsmi_device_v" in text:
        raise ValueError("the XML breaks off before nvidia-smi's first element")
    raise ValueError('it holds no output of nvidia-smi: neither <nvidia_smi_log> nor "NVSMI LOG"')


def _parse_xml(text, start):
    before = text[max(text.rfind("<!DOCTYPE", 0, start), 0) : start]
    if "<!DOCTYPE" in before and "<!ENTITY" in before:
        raise ValueError("the XML declares entities, which nvidia-smi never does")
    end = text.find(_END, start)
    schema = _SCHEMA.search(before)
    if end < 0:
        return _parse_cut_xml(text, start, schema.group(1) if schema else None)
    first_line = text.count("\n", 0, start)
    # Only the root element is parsed, so whatever a DTD says never takes effect.
    element = _NOT_XML.sub("\ufffd", text[start : end + len(_END)])
    try:
        root = _build(element)
    except expat.ExpatError:
        # nvidia-smi does not escape the names of processes.
        try:
            root = _build(_BARE_AMPERSAND.sub("&amp;", _escape_names(element)))
        except expat.ExpatError as error:
            raise ValueError(
                "the XML is broken in line %d: %s"
                % (first_line + error.lineno, expat.ErrorString(error.code))
            )
    return Document("xml", root, schema.group(1) if schema else None)


def _parse_cut_xml(text, start, schema):
    """What is whole of XML that breaks off: an element that was not closed has no text."""
    element = _NOT_XML.sub("\ufffd", text[start:])
    builder = None
    for attempt in (element, _BARE_AMPERSAND.sub("&amp;", _escape_names(element))):
        try:
            builder = _feed(attempt, last=False)
            break
        except expat.ExpatError:
            continue
    opened = builder.opened() if builder is not None else []
    gpus = [node for node in builder.root.children if node.name == "gpu"] if opened else []
    if not any(gpu.children for gpu in gpus):
        raise ValueError("the XML breaks off: it has no %s" % _END)
    if gpus[-1] in opened:
        _mark_lost(gpus[-1])
    return Document("xml", builder.root, schema, cut=True)


def _mark_lost(gpu):
    """The last group of a GPU may lack something; MIG instances come right behind the MIG mode."""
    last = gpu.children[-1].name if gpu.children else ""
    after = {"mig_mode": "mig_devices", "MIG Mode": "MIG Device"}.get(last, last)
    gpu.lost = frozenset((last, after))


def _build(element):
    return _feed(element, last=True).root


def _feed(element, last):
    builder = _Builder()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.Parse(element.encode("utf-8"), last)
    return builder


class _Builder(object):
    def __init__(self):
        self.root = None
        self._open = []
        self._nodes = 0

    def start(self, name, attributes):
        self._nodes += 1
        if self._nodes > NODE_LIMIT or len(self._open) >= DEPTH_LIMIT:
            raise ValueError("the XML is larger or deeper than any that nvidia-smi writes")
        node = Node(name)
        if name == "gpu":
            node.value = attributes.get("id", "")
        if self._open:
            self._open[-1][0].children.append(node)
        else:
            self.root = node
        self._open.append((node, []))

    def characters(self, data):
        self._open[-1][1].append(data)

    def opened(self):
        """The elements that were not closed, the root first, without one that has lost its text."""
        if self._open and not self._open[-1][0].children and len(self._open) > 1:
            parent = self._open[-2][0]
            if self._open[-1][0].name != "gpu":
                parent.children.remove(self._open[-1][0])
        return [node for node, _pieces in self._open]

    def end(self, _name):
        node, pieces = self._open.pop()
        node.value = node.value or "".join(pieces).strip()


def _escape_names(element):
    opening, closing = "<process_name>", "</process_name>"
    pieces = []
    done = 0
    while True:
        start = element.find(opening, done)
        stop = element.find(closing, start) if start >= 0 else -1
        if stop < 0:
            return "".join(pieces) + element[done:]
        name = element[start + len(opening) : stop].replace("<", "&lt;").replace(">", "&gt;")
        pieces.append(element[done:start] + opening + name + closing)
        done = stop + len(closing)


def _parse_text(text):
    """The first section that lists a GPU, else the first: `-q` may stand beside `-q -u` and others."""
    first = None
    for marker in itertools.islice(_MARKER.finditer(text), SECTION_LIMIT):
        document = Document("text", _read_section(text, marker))
        if document.gpus():
            document.cut = _breaks_off(document.gpus()[-1], text)
            return document
        first = first or document
    return first


def _read_section(text, marker):
    root = Node("nvidia_smi_log")
    margin = _margin(text, marker)
    flattened = _is_flat(text, marker, margin)
    builder = None
    stack = (
        None  # [(indent, node)]: where the next line may belong; None: outside of all that is known
    )
    nodes = strays = 0
    listing = False  # the GPUs have begun
    for line in _lines(text, marker.end()):
        indent, words = _measure(line, margin)
        if not words:
            continue
        if (
            _MARKER.match(words)
            or strays > STRAY_LIMIT
            or (indent <= 0 and _DELIMITER.match(words))
        ):
            break
        if indent <= 0 and builder is not None and not _GPU.match(words):
            builder.add(_pair(words))
        elif indent <= 0:
            stack = _open_top(root, words, listing)
            listing = listing or root.children[-1].name == "gpu"
            if flattened and listing and stack is not None:
                builder = flat.Builder(root.children[-1], Node)
                root.children[-1].lost = frozenset(flat.UNKNOWN)
        elif stack is not None:
            _hang(stack, indent, words)
        strays = strays + 1 if stack is None else 0
        nodes += stack is not None
        if nodes > NODE_LIMIT:
            raise ValueError("the section is longer than any that nvidia-smi writes")
    return root


def _breaks_off(gpu, text):
    """Whether the text ends in the midst of its last GPU: that every whole one ends in its processes."""
    names = [node.name for node in gpu.children]
    if gpu.lost or "Product Name" not in names:
        return False  # without its order, or some groups alone (-d)
    whole = "Processes" in names and ("Capabilities" in names or not _half_a_process(gpu))
    if whole:
        return False
    if not text.endswith("\n") and gpu.children:
        _drop_last(gpu)
    _mark_lost(gpu)
    return True


def _half_a_process(gpu):
    processes = gpu.all("Processes/Process ID")
    return bool(processes) and processes[-1].first("Used GPU Memory") is None


def _drop_last(node):
    """Take off the line that the text ends in, of which a part may be missing."""
    while node.children[-1].children:
        node = node.children[-1]
    node.children.pop()


def _margin(text, marker):
    """The indentation of what is at the top: the GPUs', for the marker's line may have been moved alone."""
    found = _HEADING.search(text, marker.end())
    first = marker.group(1) if found is None else found.group(1)
    return len(first.expandtabs())


def _is_flat(text, marker, margin):
    """Whether a GPU's lines are no further in than its heading."""
    found = _HEADING.search(text, marker.end())
    if found is None:
        return False
    lines = [line for line in itertools.islice(_lines(text, found.end()), 1, 12) if line.strip()]
    return len(lines) > 3 and all(_measure(line, margin)[0] <= 0 for line in lines)


def _open_top(root, words, listing):
    """Begin with an unindented line: a heading of a GPU, a pair of the preamble, or something else."""
    gpu = _GPU.match(words)
    if gpu is not None:
        node = Node("gpu", gpu.group(1))
    elif listing:
        return None  # nothing follows the GPUs: a message printed in between, or the end
    else:
        node = _pair(words)
    root.children.append(node)
    return [(0, node)]


def _hang(stack, indent, words):
    while len(stack) > 1 and stack[-1][0] >= indent:
        stack.pop()
    if len(stack) >= DEPTH_LIMIT:
        raise ValueError("the section is deeper than any that nvidia-smi writes")
    node = _pair(words)
    stack[-1][1].children.append(node)
    stack.append((indent, node))


def _pair(words):
    """A Node of a line "Name   : value", or of a heading."""
    colon = words.find(" :")
    while colon >= 0 and words[colon + 2 : colon + 3].strip():
        colon = words.find(" :", colon + 1)
    if colon < 0:
        return Node(words)
    return Node(words[:colon].rstrip(), words[colon + 2 :].strip())


def _lines(text, start):
    while start < len(text):
        end = text.find("\n", start)
        if end < 0:
            end = len(text)
        yield text[start:end]
        start = end + 1


def _measure(line, margin):
    words = line.strip()
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip()) - margin, words
