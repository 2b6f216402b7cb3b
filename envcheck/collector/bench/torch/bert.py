"""BERT as it was published, with both heads of its pretraining: masked words, and the next sentence."""

import math

from .. import architecture
from ..architecture import EPSILON, POSITIONS, TYPES, masked

RATE = (0.001, 0.00005)
MASK = 4  # the token that stands for one that is hidden
_FIRST = 16  # tokens before are special ones


def make(torch, row):
    nn = torch.nn
    functional = nn.functional
    layers, width, heads, vocabulary = architecture.bert(row)
    drop = architecture.dropped(row)
    attend = getattr(functional, "scaled_dot_product_attention", None)  # 2.0

    class TorchAttention(nn.Module):
        def __init__(self):
            nn.Module.__init__(self)
            self.query = nn.Linear(width, width)
            self.key = nn.Linear(width, width)
            self.value = nn.Linear(width, width)
            self.out = nn.Linear(width, width)

        def forward(self, x):
            shape = (x.shape[0], x.shape[1], heads, width // heads)
            parts = (self.query, self.key, self.value)
            query, key, value = [part(x).view(shape).transpose(1, 2) for part in parts]
            if attend is not None:
                found = attend(query, key, value, dropout_p=drop if self.training else 0.0)
            else:
                scores = torch.matmul(query, key.transpose(2, 3)) / math.sqrt(width // heads)
                weights = functional.softmax(scores, dim=-1)
                found = torch.matmul(functional.dropout(weights, drop, self.training), value)
            return self.out(found.transpose(1, 2).reshape(x.shape))

    class TorchBertLayer(nn.Module):
        def __init__(self):
            nn.Module.__init__(self)
            self.attention = TorchAttention()
            self.norm1 = nn.LayerNorm(width, eps=EPSILON)
            self.wide = nn.Linear(width, 4 * width)
            self.narrow = nn.Linear(4 * width, width)
            self.norm2 = nn.LayerNorm(width, eps=EPSILON)
            self.dropout = nn.Dropout(drop)

        def forward(self, x):
            x = self.norm1(x + self.dropout(self.attention(x)))
            return self.norm2(x + self.dropout(self.narrow(functional.gelu(self.wide(x)))))

    class TorchBert(nn.Module):
        def __init__(self):
            nn.Module.__init__(self)
            self.words = nn.Embedding(vocabulary, width)
            self.positions = nn.Embedding(POSITIONS, width)
            self.types = nn.Embedding(TYPES, width)
            self.norm = nn.LayerNorm(width, eps=EPSILON)
            self.dropout = nn.Dropout(drop)
            self.layers = nn.ModuleList([TorchBertLayer() for _layer in range(layers)])
            self.pooler = nn.Linear(width, width)
            self.next = nn.Linear(width, 2)
            self.transform = nn.Linear(width, width)
            self.transformed = nn.LayerNorm(width, eps=EPSILON)
            self.bias = nn.Parameter(torch.zeros(vocabulary))

        def forward(self, tokens, types, places):
            length = tokens.shape[1]
            x = self.words(tokens) + self.types(types) + self.positions.weight[:length]
            x = self.dropout(self.norm(x))
            for layer in self.layers:
                x = layer(x)
            follows = self.next(torch.tanh(self.pooler(x[:, 0])))
            hidden = x.gather(1, places.unsqueeze(2).expand(-1, -1, width))
            hidden = self.transformed(functional.gelu(self.transform(hidden)))
            return functional.linear(hidden, self.words.weight, self.bias), follows

    def loss_of(answers, targets):
        words, follows = answers
        lost = functional.cross_entropy(words.flatten(0, 1), targets[0].flatten())
        return lost + functional.cross_entropy(follows, targets[1])

    model = TorchBert()
    for part in model.modules():
        if isinstance(part, (nn.Linear, nn.Embedding)):
            nn.init.normal_(part.weight, std=0.02)
        if isinstance(part, nn.Linear):
            nn.init.zeros_(part.bias)
    return model, loss_of


def optimizer(torch, parameters, rate):
    return torch.optim.Adam(parameters, lr=rate, eps=1e-6)


def samples(torch, row, device, random):
    """Words of which some are far more frequent; the second sentence begins with the answer."""
    count, length = row["batch"], row["length"]
    vocabulary = architecture.bert(row).vocabulary
    half = length // 2
    types = (torch.arange(length, device=device) >= half).long().expand(count, length)

    def fresh():
        even = torch.rand(count, length, device=device, generator=random)
        words = _FIRST + (even**4 * (vocabulary - _FIRST)).long().clamp(0, vocabulary - _FIRST - 1)
        follows = torch.randint(0, 2, (count,), device=device, generator=random)
        words[:, 0] = 1
        words[:, half] = 2 + follows
        order = torch.rand(count, length, device=device, generator=random)
        order[:, 0] = order[:, half] = -1.0  # these stay
        places = order.topk(masked(length), dim=1)[1]
        hidden = words.gather(1, places)
        return (words.scatter(1, places, MASK), types, places), (hidden, follows)

    return fresh
