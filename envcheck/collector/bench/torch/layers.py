"""Interprets models in PyTorch: each layer a module, channels first, and one forward pass through them."""

import math

from ..models import EPSILON, MOMENTUM, POSITIONS, TYPES


def model(torch, layers, inputs):
    """A torch.nn.Module for such inputs, channels last; called with them, it returns a list of logits."""
    nn = torch.nn

    class TorchModel(nn.Module):
        def __init__(self):
            nn.Module.__init__(self)
            builder = TorchParts(torch)
            self.parts, _width = builder.all(layers, inputs[0].shape[-1])

        def forward(self, x, types=None, places=None):
            passing = TorchForward(torch, types, places)
            if x.dim() == 4:
                x = x.permute(0, 3, 1, 2)
            found = passing.all(layers, self.parts, x)
            return found if isinstance(found, list) else [found]

    return TorchModel()


class TorchParts(object):
    """Makes the modules of layers. A method returns (module, channels or width after it)."""

    def __init__(self, torch):
        self._nn, self._torch = torch.nn, torch
        self._table = None

    def all(self, layers, width):
        parts = []
        for layer in layers:
            make = getattr(self, "_" + layer.kind, None)
            part, width = make(width, **layer.options) if make else (self._nn.Identity(), width)
            parts.append(part)
        return self._nn.ModuleList(parts), width

    def _conv(self, width, filters, side, stride=1, bias=True, same=True):
        padding = side // 2 if same else 0
        part = self._nn.Conv2d(width, filters, side, stride, padding, bias=bias)
        self._nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
        return part, filters

    def _up(self, width, filters):
        return self._nn.ConvTranspose2d(width, filters, 2, 2), filters

    def _max_pool(self, width, side, stride, same=False):
        return self._nn.MaxPool2d(side, stride, side // 2 if same else 0), width

    def _batch_norm(self, width, zero):
        part = self._nn.BatchNorm2d(width, eps=EPSILON["batch_norm"], momentum=1 - MOMENTUM)
        if zero:
            self._nn.init.zeros_(part.weight)
        return part, width

    def _layer_norm(self, width):
        return self._nn.LayerNorm(width, eps=EPSILON["layer_norm"]), width

    def _activation(self, width, name):
        return {"relu": self._nn.ReLU, "gelu": self._nn.GELU, "tanh": self._nn.Tanh}[name](), width

    def _dense(self, inputs, width, deviation=None):
        part = self._nn.Linear(inputs, width)
        if deviation is not None:
            self._nn.init.normal_(part.weight, std=deviation)
            self._nn.init.zeros_(part.bias)
        return part, width

    def _dropout(self, width, rate):
        return self._nn.Dropout(rate), width

    def _mean(self, width):
        return self._nn.Sequential(self._nn.AdaptiveAvgPool2d(1), self._nn.Flatten()), width

    def _flatten(self, width, cells):
        return self._nn.Flatten(), width * cells

    def _residual(self, width, main, shortcut):
        parts = [self.all(layers, width) for layers in (main, shortcut)]
        return self._nn.ModuleList([part for part, _width in parts]), parts[0][1]

    def _concat(self, width, inner):
        part, more = self.all(inner, width)
        return part, width + more

    def _heads(self, width, branches):
        return self._nn.ModuleList([self.all(branch, width)[0] for branch in branches]), width

    def _embed(self, _width, vocabulary, width):
        tables = [self._nn.Embedding(rows, width) for rows in (vocabulary, TYPES, POSITIONS)]
        for table in tables:
            self._nn.init.normal_(table.weight, std=0.02)
        self._table = tables[0]
        return self._nn.ModuleList(tables), width

    def _attention(self, inputs, width, heads, dropped):
        return self._nn.ModuleList(
            [self._dense(inputs, width, 0.02)[0] for _each in range(3)]
        ), width

    def _words(self, width):
        """The embedding's own table, which is the same parameter, and a bias."""
        table = self._table
        part = self._nn.Linear(width, table.num_embeddings)
        self._nn.init.zeros_(part.bias)
        part.weight = table.weight
        return part, table.num_embeddings


class TorchForward(object):
    """One forward pass. Layers without a method here are modules that are called."""

    def __init__(self, torch, types, places):
        self._torch, self._types, self._places = torch, types, places

    def all(self, layers, parts, x):
        for layer, part in zip(layers, parts):
            act = getattr(self, "_" + layer.kind, None)
            x = act(part, x, **layer.options) if act else part(x)
        return x

    def _residual(self, part, x, main, shortcut):
        return self.all(shortcut, part[1], x) + self.all(main, part[0], x)

    def _concat(self, part, x, inner):
        return self._torch.cat([x, self.all(inner, part, x)], 1)

    def _heads(self, part, x, branches):
        return [self.all(branch, one, x) for branch, one in zip(branches, part)]

    def _embed(self, part, x, vocabulary, width):
        words, types, positions = part
        return words(x) + types(self._types) + positions.weight[: x.shape[1]]

    def _attention(self, part, x, width, heads, dropped):
        functional = self._torch.nn.functional
        shape = (x.shape[0], x.shape[1], heads, width // heads)
        query, key, value = [one(x).view(shape).transpose(1, 2) for one in part]
        if hasattr(functional, "scaled_dot_product_attention"):  # 2.0
            found = functional.scaled_dot_product_attention(query, key, value, dropout_p=dropped)
        else:
            scores = self._torch.matmul(query, key.transpose(2, 3)) / math.sqrt(shape[3])
            weights = functional.dropout(functional.softmax(scores, dim=-1), dropped)
            found = self._torch.matmul(weights, value)
        return found.transpose(1, 2).reshape(x.shape)

    def _first(self, part, x):
        return x[:, 0]

    def _masked(self, part, x):
        return x.gather(1, self._places.unsqueeze(2).expand(-1, -1, x.shape[2]))


def loss(torch, targets, outputs):
    """The sum of the outputs' mean cross entropies."""
    entropy = torch.nn.functional.cross_entropy
    total = 0.0
    for one, logits in zip(targets, outputs):
        if logits.dim() == 3:  # a sequence of words; an image's classes are its channels
            logits, one = logits.flatten(0, 1), one.flatten()
        total = total + entropy(logits, one)
    return total


class TorchDraw(object):
    """Samples as tensors (models.py)."""

    def __init__(self, torch, row, device, rank=0):
        self._torch, self._device = torch, device
        self._random = torch.Generator(device=device)
        self._random.manual_seed(row["seed"] + 1000 * rank)

    def normal(self, shape):
        return self._torch.randn(shape, device=self._device, generator=self._random)

    def classes(self, shape, number):
        return self._torch.randint(0, number, shape, device=self._device, generator=self._random)

    def constant(self, values):
        return self._torch.tensor(values, device=self._device)
