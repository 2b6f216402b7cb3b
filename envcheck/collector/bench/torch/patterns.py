"""Samples that can be learned: a pattern for each class, under noise."""

COARSE = 4  # cells of a pattern on a side
MISTAKEN = 0.2  # of the targets are any class: the loss then comes to rest well above nothing


def of_classes(torch, classes, shape, device, random):
    """classes patterns of (channels, pixels, pixels), in coarse cells."""
    channels, edge = shape[0], shape[1]
    coarse = torch.randn(classes, channels, COARSE, COARSE, device=device, generator=random)
    return torch.nn.functional.interpolate(coarse, size=(edge, edge))


def classified(torch, patterns, count, noise, random, mistaken=MISTAKEN):
    """(samples, the classes that they are of, but for a share of mistakes)."""
    device = patterns.device
    classes = torch.randint(0, len(patterns), (count,), device=device, generator=random)
    shape = (count,) + tuple(patterns.shape[1:])
    samples = noise * torch.randn(shape, device=device, generator=random) + patterns[classes]
    others = torch.randint(0, len(patterns), (count,), device=device, generator=random)
    wrong = torch.rand(count, device=device, generator=random) < mistaken
    return samples, torch.where(wrong, others, classes)
