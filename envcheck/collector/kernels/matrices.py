"""Large matrices that hold signature vectors in every place, and what to read from their product.

One product carries several vectors at once: rows are divided into as many bands as there are vectors, and
columns too. Where row band v meets column band v the result is vector v's dot product; the other places
mix two vectors and are not read.
"""

import struct
from collections import Counter

from .vectors import SIZES, encode, pack, text

MOST = 8  # different outputs that are kept


def left(vectors, element_type, rows, length):
    """A (rows x length, row-major) as bytes: row i of a band has its vector at (i mod n) periods.

    Raises ValueError where a vector is longer than a row.
    """
    size = SIZES[element_type]
    made = []
    for vector, band in zip(vectors, bands(rows, len(vectors))):
        if _reach(vector) > length:
            raise ValueError("%s needs %d places, not %d" % (vector.name, _reach(vector), length))
        places = (length - _reach(vector)) // vector.period + 1
        words = [pack(encode(value, element_type), element_type) for value in vector.a]
        kinds = []
        for place in range(min(places, len(band))):
            row = bytearray(length * size)
            for slot, word in zip(vector.slots, words):
                start = (place * vector.period + slot) * size
                row[start : start + size] = word
            kinds.append(bytes(row))
        made.extend(kinds[i % len(kinds)] for i in range(len(band)))
    return b"".join(made)


def right(vectors, element_type, columns, length):
    """B transposed (columns x length, row-major; B itself in column-major order) as bytes."""
    made = []
    for vector, band in zip(vectors, bands(columns, len(vectors))):
        column = _column(vector, element_type, length)
        made.extend([column] * len(band))
    return b"".join(made)


def _column(vector, element_type, length):
    """The b values again and again, as often as the vector's period fits."""
    size = SIZES[element_type]
    one = bytearray(vector.period * size)
    for slot, value in zip(vector.slots, vector.b):
        one[slot * size : (slot + 1) * size] = pack(encode(value, element_type), element_type)
    times = length // vector.period + 1
    return (bytes(one) * times)[: length * size]


def _reach(vector):
    return max(vector.slots) + 1


def bands(count, number):
    """``count`` rows or columns as ``number`` ranges, which begin at multiples of 16 where they can."""
    step = count // number
    step -= step % 16 if step >= 16 else 0
    starts = [step * i for i in range(number)] + [count]
    return [range(starts[i], starts[i + 1]) for i in range(number)]


def signatures(vectors, input_type, output_type, data, rows, columns, length, by_columns=False):
    """The Signature records of a product's result, given as bytes.

    ``by_columns``: the result is in column-major order, as cuBLAS has it.
    """
    size = SIZES[output_type]
    number = len(vectors)
    found = []
    for vector, across, down in zip(vectors, bands(rows, number), bands(columns, number)):
        lines, cells = (down, across) if by_columns else (across, down)
        width = rows if by_columns else columns
        counts = Counter()
        for line in lines:
            start = (line * width + cells[0]) * size
            _count(counts, data[start : start + len(cells) * size], size)
        found.append(record(vector, input_type, output_type, length, counts))
    return found


def _count(counts, piece, size):
    first = bytes(piece[:size])
    number = len(piece) // size
    if piece == first * number:
        counts[first] += number
    else:
        counts.update(bytes(piece[i : i + size]) for i in range(0, len(piece), size))


def record(vector, input_type, output_type, length, counts, accumulator=None):
    """A Signature record; ``counts`` maps an output's bytes to how often it was seen."""
    fields = {
        "vector": vector.name,
        "input_type": input_type,
        "output_type": output_type,
        "a": [text(encode(value, input_type), input_type) for value in vector.a],
        "b": [text(encode(value, input_type), input_type) for value in vector.b],
        "slots": list(vector.slots),
        "length": length,
        "period": vector.period,
        "outputs": [
            {"bits": text(_word(raw), output_type), "count": count}
            for raw, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST]
        ],
        "distinct": len(counts),
    }
    if accumulator is not None:
        fields["accumulator"] = text(accumulator, output_type)
    return fields


def _word(raw):
    return struct.unpack({1: "<B", 2: "<H", 4: "<I"}[len(raw)], raw)[0]
