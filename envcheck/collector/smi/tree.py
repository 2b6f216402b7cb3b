"""Reads `nvidia-smi -q -x` (XML) and `nvidia-smi -q` (text) into one kind of tree."""

import itertools
import re
from xml.parsers import expat

DEPTH_LIMIT = 64
NODE_LIMIT = 500000  # sixteen GPUs with all their supported clocks have fewer than a tenth
SECTION_LIMIT = 1000
STRAY_LIMIT = 100  # lines of messages between two GPUs; more are another program's

_ROOT = re.compile(r"<nvidia_smi_log[\s>]")
_END = "</nvidia_smi_log>"
_SCHEMA = re.compile(r"nvsmi_device_(v\d+)\.dtd")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_BARE_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9A-Fa-f]{1,6});)")
_PROCESS_NAME = re.compile(r"(?<=<process_name>)(?:(?!<proc)[^\n]){0,8000}?(?=</process_name>)")

_MARKER = re.compile(r"^([ \t]*)={5,}[ \t]*NVSMI LOG[ \t]*={5,}[ \t]*\r?$", re.MULTILINE)
_ADDRESS = r"[0-9A-Za-z]{4,8}:[0-9A-Za-z]{1,2}:[0-9A-Za-z]{1,2}\.[0-9A-Za-z]"
_GPU = re.compile(r"GPU (%s)\Z" % _ADDRESS)
_HEADING = re.compile(r"^([ \t]*)GPU %s[ \t]*$" % _ADDRESS, re.M)
_MIG = ("MIG Mode", "MIG Device", "mig_mode", "mig_devices")
# What other sections of a larger file begin with.
_DELIMITER = re.compile(r"(?:([#=_*~`-])\1{2,}|\+--|<)")


class Node(object):
    """An XML element or a line of text: its name, its own text, and what stands below it.

    A GPU's own text is the PCI address in its heading.
    """

    __slots__ = ("children", "name", "value")

    def __init__(self, name, value=""):
        self.name = name
        self.value = value
        self.children = []

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
    """A tree and its source. form: "xml", "text". schema: "v12", or None. cut: it ends within a GPU,

    whose last group, which may be incomplete, is left out.
    """

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
    raise ValueError('it has no output of nvidia-smi: neither <nvidia_smi_log> nor "NVSMI LOG"')


def _parse_xml(text, start):
    before = text[max(text.rfind("<!DOCTYPE", 0, start), 0) : start]
    if "<!DOCTYPE" in before and "<!ENTITY" in before:
        raise ValueError("the XML declares entities, which nvidia-smi never does")
    found = _SCHEMA.search(before)
    end = text.find(_END, start)
    whole = end >= 0
    # Only the root element is parsed, so whatever a DTD says never takes effect.
    element = _NOT_XML.sub("\ufffd", text[start : end + len(_END)] if whole else text[start:])
    try:
        builder = _feed(element, whole)
    except expat.ExpatError:
        try:
            builder = _feed(_escaped(element), whole)
        except expat.ExpatError as error:
            line = text.count("\n", 0, start) + error.lineno
            words = expat.ErrorString(error.code)
            raise ValueError("the XML is broken in line %d: %s" % (line, words))
    document = Document("xml", builder.root, found.group(1) if found else None, not whole)
    if not whole:
        gpus = document.gpus() if builder.root is not None else []
        if gpus and builder.opened():
            _drop_last(gpus[-1])
        if not any(gpu.children for gpu in gpus):
            raise ValueError("the XML breaks off: it has no %s" % _END)
    return document


def _escaped(element):
    """The XML with what nvidia-smi does not escape: the names of processes."""
    escaped = _PROCESS_NAME.sub(
        lambda found: found.group().replace("<", "&lt;").replace(">", "&gt;"), element
    )
    return _BARE_AMPERSAND.sub("&amp;", escaped)


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
        node = Node(name, attributes.get("id", "") if name == "gpu" else "")
        if self._open:
            self._open[-1][0].children.append(node)
        else:
            self.root = node
        self._open.append((node, []))

    def characters(self, data):
        self._open[-1][1].append(data)

    def end(self, _name):
        node, pieces = self._open.pop()
        node.value = node.value or "".join(pieces).strip()

    def opened(self):
        """Whether a GPU was not closed."""
        return len(self._open) > 1


def _parse_text(text):
    """The first section that lists a GPU, else the first: `-q` may stand beside `-q -u` and others."""
    first = None
    for marker in itertools.islice(_MARKER.finditer(text), SECTION_LIMIT):
        document = Document("text", _read_section(text, marker))
        if document.gpus():
            document.cut = _is_cut(document.gpus()[-1], text)
            return document
        first = first or document
    return first


def _read_section(text, marker):
    root = Node("nvidia_smi_log")
    margin = _margin(text, marker)
    stack = (
        None  # [(indent, node)]: where the next line may belong; None: outside of all that is known
    )
    nodes = strays = 0
    listing = False  # the GPUs have begun
    for line in _lines(text, marker.end()):
        words = line.strip()
        expanded = line.expandtabs()
        indent = len(expanded) - len(expanded.lstrip()) - margin
        if not words:
            continue
        ends = _MARKER.match(words) or (indent <= 0 and _DELIMITER.match(words))
        if ends or strays > STRAY_LIMIT:
            break
        if indent <= 0:
            stack = _open_top(root, words, listing)
            listing = listing or root.children[-1].name == "gpu"
        elif stack is not None:
            _hang(stack, indent, words)
        strays = strays + 1 if stack is None else 0
        nodes += stack is not None
        if nodes > NODE_LIMIT:
            raise ValueError("the section is longer than any that nvidia-smi writes")
    return root


def _is_cut(gpu, text):
    """Whether the text ends within its last GPU: every whole one ends in its processes."""
    names = [node.name for node in gpu.children]
    if "Product Name" not in names:
        return False  # some groups alone (-d)
    processes = gpu.all("Processes/Process ID")
    half = processes and processes[-1].first("Used GPU Memory") is None
    if "Processes" in names and ("Capabilities" in names or not half):
        return False
    if gpu.children[-1].children or not text.endswith("\n"):
        _drop_last(gpu)
    return True


def _drop_last(gpu):
    """Take off the group that may be incomplete; MIG instances come right behind the MIG mode."""
    del gpu.children[-1:]
    while gpu.children and gpu.children[-1].name in _MIG:
        del gpu.children[-1:]


def _margin(text, marker):
    """The indentation of what is at the top: the GPUs', for the marker's line may have been moved alone."""
    found = _HEADING.search(text, marker.end())
    first = marker.group(1) if found is None else found.group(1)
    return len(first.expandtabs())


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
