"""What the bits of recorded products say: a Tensor Core, a chain of fused multiply-adds, or neither.

What each unit must give is derived from the model for the inputs that the Snapshot records. Of all units
and chains that are known, those stand that may have given every output that was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, islice

from ..facts.micro_kernels import Mode, Signature
from .candidates import Candidate, candidates, in_place, is_float, outputs
from .chains import integer_dot
from .mode_verdict import Reading, Word
from .recorded import RecordedDot, Unusable, name, seen
from .units import unit_of

_MOST_SIGNATURES = 64
_MOST_SHOWN = 8
_INPUTS = {
    "fp32": "fp32",
    "tf32": "fp32",
    "fp16": "fp16",
    "bf16": "bf16",
    "int8": "int8",
    "fp8": "e4m3",
}
# Vectors of half-precision outputs that tell the accumulators apart only together: each alone gives the
# same for a Tensor Core and for some chain.
_TOGETHER = {"fp16": ("S1h", "A16", "A16s"), "bf16": ("S1b", "B16")}
EMULATED = "FP32 emulated"  # how the name of such a unit ends
_TAKEN_IN = {"tf32": "TF32 inputs", "bf16": "BF16 inputs"}


def read(signatures: Sequence[Signature], compute_capability: str | None, mode: Mode) -> Reading:
    """Read all signatures of one mode of one GPU.

    ``compute_capability``: "9.0", or None where it is not known: it only chooses among the names of
    units that would have given the same. Sets of types (FP16 to FP32, FP16 to FP16) are read one by one;
    the word is "tensor" where one says so and none says "not tensor". Raises nothing, whatever the
    Snapshot holds: what cannot be used cannot tell.
    """
    if not signatures:
        return _cannot("no output was recorded", blind=mode == "int8")
    if len(signatures) > _MOST_SIGNATURES:
        return _cannot(f"{len(signatures)} signatures are too many to read")

    def types(signature: Signature) -> tuple[str, str]:
        return str(signature.input_type), str(signature.output_type)

    ordered = sorted(signatures, key=lambda s: (types(s)[0], types(s)[1] != "fp32", types(s)[1]))
    return _together(
        [_read_set(list(some), compute_capability, mode) for _, some in groupby(ordered, types)]
    )


def _read_set(signatures: list[Signature], compute_capability: str | None, mode: Mode) -> Reading:
    """Signatures of the same types."""
    input_type, output_type = signatures[0].input_type, signatures[0].output_type
    if input_type != _INPUTS.get(mode) or is_float(input_type) != is_float(output_type):
        return _cannot(f"the products recorded are of {input_type} to {output_type}")
    found = []
    for signature in signatures:
        try:
            found.append(seen(signature))
        except (Unusable, TypeError, AttributeError) as error:
            return _cannot(f"{name(signature)} cannot be used: {error}"[:200], blind=mode == "int8")
    if not is_float(input_type):
        return _read_integers(found)
    if (input_type, output_type) in (("fp16", "fp16"), ("bf16", "bf16")):
        missing = [v for v in _TOGETHER[output_type] if v not in {one.vector for one in found}]
        if missing:
            return _cannot(
                f"{_shown(found)}: a Tensor Core's or a chain's, {' and '.join(missing)} not recorded"
            )
    return _read_floats(found, compute_capability, mode)


def _read_integers(found: list[RecordedDot]) -> Reading:
    for one in found:
        exact = integer_dot(one.dot.a, one.dot.b, one.dot.c)
        if set(one.words) != {exact} or not one.complete:
            wrong = f"The INT8 product of {one.vector} is not exact: {exact:08X} is, and {_words(one)} came."
            return _cannot(f"{one.vector} {one.bits}: not exact", blind=True, wrong=wrong)
    return _cannot(f"{_shown(found)}: exact, as on every unit", blind=True)


def _read_floats(found: list[RecordedDot], compute_capability: str | None, mode: Mode) -> Reading:
    possible = candidates(found[0].dot.input_type, found[0].dot.output_type)
    standing = [one for one in possible if all(_fits(one, this) for this in found)]
    if not standing:
        return _unknown(found, possible)
    units = [one for one in standing if one.unit is not None]
    chains = [one for one in standing if one.unit is None]
    if not chains:
        unit, meaning = _tensor(units, found, compute_capability)
        return Reading(says="tensor", unit=unit, text=f"{_shown(found)}: {meaning}")
    named = " or ".join(dict.fromkeys(map(_chain, chains)))
    if not units:
        return Reading(says="not tensor", unit=named, text=f"{_shown(found)}: {named}")
    own = _own(possible, compute_capability)
    blind = mode == "fp8" and (not own or any(one in units for one in own))
    return _cannot(f"{_shown(found)}: the same from a Tensor Core and by {named}", blind=blind)


def _fits(candidate: Candidate, this: RecordedDot) -> bool:
    return this.complete and outputs(candidate, this.dot).issuperset(this.words)


def _unknown(found: list[RecordedDot], possible: Sequence[Candidate]) -> Reading:
    """No arithmetic that is known gives all of it. The vectors that no unit gives at all are shown."""
    given_by_none = (this for this in found if not any(_fits(one, this) for one in possible))
    alone = list(islice(given_by_none, _MOST_SHOWN))
    shown = ", ".join(f"{this.vector} {_words(this)}" for this in alone or found[:_MOST_SHOWN])
    wrong = ""
    for this in alone:
        if len(this.words) > 1:
            wrong = f"{this.vector} gave {_words(this)} in one product, which no known unit does."
            break
    return _cannot(f"{shown}: unknown arithmetic", wrong=wrong, unknown=True)


def _tensor(
    units: list[Candidate], found: list[RecordedDot], compute_capability: str | None
) -> tuple[str, str]:
    """The unit's name, and what the bits mean, of candidates that are all Tensor Cores."""
    # Many widths fit what a permuting kernel may give: the plain explanation goes before that.
    plain = [one for one in units if all(in_place(one, t.dot).issuperset(t.words) for t in found)]
    units = plain or units
    own = _own(units, compute_capability)
    input_type, output_type = found[0].dot.input_type, found[0].dot.output_type
    unit, meaning = ["Tensor Core"], []
    accumulators = {one.accumulator_type for one in own or units}
    if output_type == "fp32":
        meaning.append("truncated")
    elif len(accumulators) == 1:
        meaning.append(f"{accumulators.pop().upper()} accumulator")
    kept = {one.unit.fraction_bits for one in units if one.unit is not None}
    if len(kept) == 1:
        bits = kept.pop()
        other = _elsewhere(units[0], bits, compute_capability)
        unit.append(f"{bits} fraction bits kept{other}")
        meaning.append(f"F={bits}{other}")
    ways = {one.inputs for one in own or units}
    if input_type == "fp32" and len(ways) == 1:
        unit.append(_TAKEN_IN.get(ways.pop(), EMULATED))
        meaning.append(unit[-1])
    return ", ".join(unit), ", ".join(meaning) or "truncated"


def _elsewhere(one: Candidate, bits: int, compute_capability: str | None) -> str:
    """What to add where the chip's own unit for the same types is known to keep other bits."""
    if one.unit is None or compute_capability is None:
        return ""
    own = unit_of(compute_capability, one.unit.input_type, one.accumulator_type)
    if own is None or own.fraction_bits == bits:
        return ""
    return f" (compute capability {compute_capability} keeps {own.fraction_bits})"


def _own(some: Sequence[Candidate], compute_capability: str | None) -> list[Candidate]:
    return [one for one in some if compute_capability in one.capabilities]


def _chain(one: Candidate) -> str:
    way = f" with {_TAKEN_IN[one.inputs]}" if one.inputs else ""
    return f"{one.accumulator_type.upper()} FMA chain{way}"


def _shown(found: list[RecordedDot]) -> str:
    """The vectors that a reader looks for first, with their bits."""
    by_name = {this.vector: this for this in found}
    for names in (*_TOGETHER.values(), ("S1", "T1"), ("S1",), ("F8", "S1e"), ("F8",), ("I8",)):
        if all(one in by_name for one in names):
            bits = "/".join(by_name[one].bits for one in names)
            return f"{'/'.join(names)} {bits}"
    return f"{found[0].vector} {found[0].bits}"


def _words(this: RecordedDot) -> str:
    """All words of a vector, "3F800001 and 3F800002"."""
    width = len(this.bits)
    return " and ".join(f"{word:0{width}X}" for word in this.words) + (
        "" if this.complete else " and more"
    )


def _cannot(text: str, *, blind: bool = False, wrong: str = "", unknown: bool = False) -> Reading:
    return Reading(says="cannot tell", text=text, blind=blind, wrong=wrong, unknown=unknown)


def _together(readings: list[Reading]) -> Reading:
    """One reading of a mode's sets of types."""
    if len(readings) == 1:
        return readings[0]
    words = {reading.says for reading in readings}
    text = "; ".join(reading.text for reading in readings)
    says: Word = "cannot tell"
    if {"tensor", "not tensor"} <= words:
        text += "; the kinds of output disagree"
    elif "tensor" in words:
        says = "tensor"
    elif "not tensor" in words:
        says = "not tensor"
    first = next((reading for reading in readings if reading.says == says), readings[0])
    return Reading(
        says=says,
        unit=first.unit if says != "cannot tell" else "",
        text=text,
        blind=any(reading.blind for reading in readings),
        wrong=" ".join(reading.wrong for reading in readings if reading.wrong),
        unknown=any(reading.unknown for reading in readings),
    )
