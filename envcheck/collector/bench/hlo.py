"""What a module says of its products and convolutions: how many there are, and in which types.

A module is read as JAX hands it to XLA (StableHLO, or HLO in old versions), and as XLA has compiled it
(HLO): there a product may have become a call of cuBLAS, a convolution one of cuDNN.
"""

HALVES = ("f16", "bf16")
_NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
_CALLS = {"__cublas$": "products", "__cudnn$conv": "convolutions"}
_OPERATIONS = {"dot": "products", "convolution": "convolutions"}
_OF_MLIR = {"dot_general": "products", "dot": "products", "convolution": "convolutions"}


def evidence(lowered, compiled, on_gpu):
    """What both say, as a row's evidence has it. lowered, compiled: text, "" where it is not known.

    On a GPU, what XLA made of it counts, if all types in it could be read. On a CPU it computes 16-bit
    types in FP32, and what it was given counts.
    """
    asked, made = count(lowered), count(compiled)
    types = made.pop("types")
    asked.pop("types")
    found = (
        {"compiled_" + name: made[name] for name in made if name != "unread"} if compiled else {}
    )
    read = made["products"] + made["convolutions"] > 0 == made["unread"]
    taken = made if on_gpu and read else asked
    if lowered or taken is made:
        found.update({name: taken[name] for name in taken if name != "unread"})
    if compiled:
        found.update(compiled_modules=1, math_dtype=",".join(types))
        found["hidden_by_compiler"] = _halves(asked) > 0 == _halves(made)
    return found


def _halves(counted):
    return counted["half_products"] + counted["half_convolutions"]


def count(text):
    """{"products", "half_products", "convolutions", "half_convolutions", "types", "unread"} of a text.

    unread: how many of them the types are not known of.
    """
    found = {
        "products": 0,
        "half_products": 0,
        "convolutions": 0,
        "half_convolutions": 0,
        "unread": 0,
    }
    types = set()
    for what, taken in _mlir(text) if "stablehlo." in text or "mhlo." in text else _hlo(text):
        found[what] += 1
        found["half_" + what] += all(one in HALVES for one in taken) and bool(taken)
        found["unread"] += not taken
        types.update(taken)
    return dict(found, types=sorted(_NAMES.get(one, one) for one in types))


def _mlir(text):
    """(what it is, the types that it takes) of each operation."""
    for line in text.splitlines():
        for dialect in ("stablehlo.", "mhlo."):
            place = line.find(dialect)
            if place < 0:
                continue
            rest = line[place + len(dialect) :]
            name = rest.replace('"', " ").replace("(", " ").partition(" ")[0]
            if name in _OF_MLIR and " : (" in rest:
                taken = rest.rsplit(" : (", 1)[1].split(")", 1)[0]
                yield _OF_MLIR[name], [_last(one) for one in taken.split("tensor<")[1:]]
            break


def _last(words):
    """ "f16" of "64x256xf16>, "."""
    return words.split(">", 1)[0].split(",", 1)[0].rsplit("x", 1)[-1].strip()


def _hlo(text):
    types, found = {}, []
    for line in text.splitlines():
        name, separator, rest = line.strip().partition(" = ")
        if not separator:
            continue
        if name.startswith("ROOT "):
            name = name[len("ROOT ") :]
        kind = rest.split("[", 1)[0].strip("( ")
        types[name.lstrip("%")] = kind
        what = _what(rest)
        if what:
            found.append((what, rest))
    for what, rest in found:
        taken = _operands(rest)
        yield what, [one for one in (_type(word, types) for word in taken[:2]) if one]


def _what(rest):
    head = rest.split("(", 1)[0] if not rest.startswith("(") else ""
    operation = head.rsplit(" ", 1)[-1]
    if operation in _OPERATIONS:
        return _OPERATIONS[operation]
    if " custom-call(" in rest:
        for target, what in _CALLS.items():
            if 'custom_call_target="%s' % target in rest:
                return what
    return ""


def _operands(rest):
    """What stands between the operation's parentheses, one by one."""
    for name in (" dot(", " convolution(", " custom-call("):
        if name in rest:
            inside, depth, words, word = rest.split(name, 1)[1], 0, [], ""
            for one in inside:
                if one == ")" and depth == 0:
                    break
                depth += (one in "([{") - (one in ")]}")
                if one == "," and depth == 0:
                    words.append(word)
                    word = ""
                else:
                    word += one
            return words + [word]
    return []


def _type(word, types):
    """Of an operand: "f16[64,256]{1,0} %a", or "%a", whose type stands where it is made."""
    word = word.strip()
    if "[" in word:
        return word.split("[", 1)[0].strip()
    return types.get(word.lstrip("%"), "")
