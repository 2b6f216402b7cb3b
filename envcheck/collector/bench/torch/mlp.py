"""A feed-forward network: the file of a model holds make(torch, row) and batch(torch, row, device)."""

WIDTH = 1024
CLASSES = 10


def make(torch, row):
    """The model and its loss function."""
    width = 256 if row["small"] else 4 * WIDTH
    layers = [torch.nn.Linear(WIDTH, width), torch.nn.ReLU()]
    for _layer in range(2):
        layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    layers.append(torch.nn.Linear(width, CLASSES))
    return torch.nn.Sequential(*layers), torch.nn.functional.cross_entropy


def batch(torch, row, device):
    """(inputs, targets), made on the device."""
    inputs = torch.randn(row["batch"], WIDTH, device=device)
    return inputs, torch.randint(0, CLASSES, (row["batch"],), device=device)
