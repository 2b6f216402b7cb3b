"""Whether FP32 factors were taken in as TF32: by what multiplying them by 1 leaves of them.

TF32 holds 10 fraction bits and FP32's exponents; BF16 holds fewer bits, FP16 fewer exponents.
"""

# Only FP32 holds the first; TF32 holds the second and BF16 does not; FP16 does not hold the third.
FACTORS = (1 + 2.0**-11 + 2.0**-12, 1 + 2.0**-10, 2.0**-30 * (1 + 2.0**-10))


def name(results):
    """ "fp32", "tf32" or "not known". results: of each of FACTORS, all numbers that came for it."""
    kept = [set(found) == {factor} for factor, found in zip(FACTORS, results)]
    if len(results) != len(FACTORS):
        return "not known"
    if all(kept):
        return "fp32"
    # Rounded to the nearest, or cut off.
    if kept[1:] == [True, True] and set(results[0]) in ({1.0}, {FACTORS[1]}):
        return "tf32"
    return "not known"
