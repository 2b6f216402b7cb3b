"""Images that are read while a model trains: which there are, and what is done to each, as with ImageNet."""

import os

MEANS, DEVIATIONS = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)  # of ImageNet's channels
AREA, RATIO = (0.08, 1.0), (0.75, 4.0 / 3.0)  # of what is cut out
_KINDS = (".jpg", ".jpeg", ".png")
_MOST = 200000  # files


def found(folder, classes):
    """[(path, class)] of the images below a folder. An image is of the class that its folder is named for."""
    paths = []
    for place, folders, names in os.walk(folder):
        folders.sort()
        some = [name for name in sorted(names) if name.lower().endswith(_KINDS)]
        paths += [os.path.join(place, name) for name in some[: _MOST - len(paths)]]
    if not paths:
        raise ValueError("no JPEG and no PNG lies below %s" % folder)
    places = sorted({os.path.dirname(path) for path in paths})
    numbers = {name: number % classes for number, name in enumerate(places)}
    return [(path, numbers[os.path.dirname(path)]) for path in paths]
