"""Summaries of a few measured values. Python's statistics module has no percentiles before 3.8."""


def median(values):
    """Of a non-empty list."""
    return percentile(values, 0.5)


def percentile(values, share):
    """The value below which ``share`` (0 to 1) of a non-empty list lies, interpolated between neighbours."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(values):
    """The 90th over the 10th percentile; 1.0 where all are equal, None where that divides by zero."""
    low = percentile(values, 0.1)
    return percentile(values, 0.9) / low if low > 0 else None
