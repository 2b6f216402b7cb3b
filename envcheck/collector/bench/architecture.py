"""What all styles write alike: the sizes of BERT and of U-Net, what is masked and what is dropped."""

import collections

POSITIONS, TYPES = 512, 2  # BERT's
EPSILON = 1e-12  # of BERT's layer normalisation
_MASKED = 0.15  # of the words
_DROPPED = 0.1

Bert = collections.namedtuple("Bert", "layers width heads vocabulary")
_BERT = {"bert-base": Bert(12, 768, 12, 30522), "bert-large": Bert(24, 1024, 16, 30522)}
_SMALL_BERT = Bert(2, 128, 2, 1000)

# levels: on the way down. filters: of the first. side: of an image or a volume, where the row says none.
Unet = collections.namedtuple("Unet", "dimensions levels filters side")
_UNET = {"unet-2d": Unet(2, 4, 64, 512), "unet-3d": Unet(3, 3, 32, 64)}
_SMALL_FILTERS = 8


def bert(row):
    return _SMALL_BERT if row["small"] else _BERT[row["model"]]


def masked(length):
    """How many words of a sequence are masked."""
    return max(1, round(_MASKED * length))


def dropped(row):
    """The share that BERT drops in training.

    Rows whose losses are compared drop nothing: other types would drop other numbers.
    """
    return _DROPPED if row["train"] and not row["steps"] and not row["small"] else 0.0


def unet(row):
    size = _UNET[row["model"]]
    filters = _SMALL_FILTERS if row["small"] else size.filters
    return size._replace(filters=filters, side=row["image"] or size.side)
