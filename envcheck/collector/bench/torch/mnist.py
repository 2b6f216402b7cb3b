"""A small network of convolutions for images of digits, which are made here: 60,000, and 10,000 others."""

from . import patterns

EDGE = 28
CLASSES = 10
EPOCH = 60000
OTHERS = 10000
RATE = (0.001, 0.001)
# Where losses are compared: Adam's steps at the other rate make much of a last bit, and few of them are
# below a 16-bit weight's last bit, which is what a model in pure half loses.
COMPARED_RATE = 0.0002
_NOISE = 1.0
_CONTRAST = 0.2
_AT_ONCE = 1000  # images


def make(torch, row):
    nn = torch.nn
    parts = [nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    parts += [nn.Linear(13 * 13 * 32, 64), nn.ReLU(), nn.Linear(64, CLASSES)]
    return nn.Sequential(*parts), nn.functional.cross_entropy


def optimizer(torch, parameters, rate):
    return torch.optim.Adam(parameters, lr=rate)


def samples(torch, row, device, random):
    """Batch after batch of an epoch, and from its beginning again."""
    digits = _digits(torch, row, device)
    count = max(row["batch"], _epoch(row))
    images, targets = patterns.classified(torch, digits, count, _NOISE, random)
    images *= _CONTRAST
    at = [0]

    def fresh():
        if at[0] + row["batch"] > count:
            at[0] = 0
        here = slice(at[0], at[0] + row["batch"])
        at[0] = here.stop
        return (images[here],), targets[here]

    return fresh


def steps(row):
    """Of an epoch."""
    return -(-_epoch(row) // row["batch"])


def accuracy(torch, row, device, answer):
    """answer(inputs): the model's, without gradients."""
    random = torch.Generator(device=device)
    random.manual_seed(row["seed"] + 2)
    digits = _digits(torch, row, device)
    right = total = 0
    while total < _epoch(row) * OTHERS // EPOCH:
        images, targets = patterns.classified(torch, digits, _AT_ONCE, _NOISE, random, 0.0)
        right += int((answer((_CONTRAST * images,)).argmax(1) == targets).sum())
        total += _AT_ONCE
    return right / float(total)


def _epoch(row):
    return EPOCH // 10 if row["small"] else EPOCH


def _digits(torch, row, device):
    random = torch.Generator(device=device)
    random.manual_seed(row["seed"] + 1)
    return patterns.of_classes(torch, CLASSES, (1, EDGE), device, random)
