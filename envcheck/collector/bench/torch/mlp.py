"""A feed-forward network."""

from . import patterns

WIDTH = 1024
CLASSES = 10
RATE = (0.01, 0.01)


def make(torch, row):
    width = 256 if row["small"] else 4 * WIDTH
    layers = [torch.nn.Linear(WIDTH, width), torch.nn.ReLU()]
    for _layer in range(2):
        layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    layers.append(torch.nn.Linear(width, CLASSES))
    return torch.nn.Sequential(*layers), torch.nn.functional.cross_entropy


def optimizer(torch, parameters, rate):
    return torch.optim.SGD(parameters, lr=rate, momentum=0.9)


def samples(torch, row, device, random):
    known = torch.randn(CLASSES, WIDTH, device=device, generator=random)

    def fresh():
        inputs, targets = patterns.classified(torch, known, row["batch"], 4.0, random)
        return (inputs,), targets

    return fresh
