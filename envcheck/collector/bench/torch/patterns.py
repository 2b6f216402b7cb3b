"""Samples that can be learned: a pattern for each class, under noise."""

COARSE = 4  # cells of a pattern on a side


def of_classes(torch, classes, shape, device, random):
    """classes patterns of (channels, pixels, pixels), in coarse cells."""
    channels, edge = shape[0], shape[1]
    coarse = torch.randn(classes, channels, COARSE, COARSE, device=device, generator=random)
    return torch.nn.functional.interpolate(coarse, size=(edge, edge))


def classified(torch, patterns, count, noise, random):
    """(samples, the classes that they are of)."""
    device = patterns.device
    targets = torch.randint(0, len(patterns), (count,), device=device, generator=random)
    shape = (count,) + tuple(patterns.shape[1:])
    samples = noise * torch.randn(shape, device=device, generator=random)
    return samples + patterns[targets], targets
