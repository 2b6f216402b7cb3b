"""Two tiny images, and the pixels that they must have.

The picture was made for this: red grows to the right, green downwards, and blue with the distance from its
middle. As a PNG it is exact; as a JPEG of quality 90 in full colour resolution it is off by 5 of 255 at most.
"""

import base64
from itertools import chain

WIDTH, HEIGHT = 32, 24

JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsLEBYQERMU"
    "FRUVDA8XGBYUGBIUFRT/2wBDAQMEBAUEBQkFBQkUDQsNFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU"
    "FBQUFBQUFBT/wAARCAAYACADAREAAhEBAxEB/8QAGAAAAwEBAAAAAAAAAAAAAAAABQYHAwj/xAAdEAAABgMBAAAAAAAAAAAAAAAA"
    "AQYRI6ECBQcE/8QAFwEBAQEBAAAAAAAAAAAAAAAABwYFCf/EAB4RAAEEAwEBAQAAAAAAAAAAAAUAAhIhAQYxBCIy/9oADAMBAAIR"
    "AxEAPwDiHzI03KOg4bHsjpO+lgCCXLTBrUablHQByOyOln6TMLJctOelRpvjHQnG7I6X6SyOJctUZOo03xjoWQvZHSx9JL8BLloL"
    "5kIblHQytjJOk61yaEFeWmDWoQ3KOgDkCTpZtMwsry056VCG+MdCcaSdLqWRxXlqjpxCG+MdCyFknSxaS/AV5ax83PDcoqCBscpO"
    "XIwQY5aP63nhuUVAHIyllM4oxy06aXnhvjFQnGyklgcY5aoyc54b4xULIXKWEl+Axy1//9k="
)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAYCAIAAAAUMWhjAAABo0lEQVR42pXW0XKqQBCE4Q9ZdBAr7/9I53FSqUQREc8FbooKAYkX"
    "/9VOdzU7M2vBv/AePsJH+Kx9hnM4h7bWhi50oQ99bQhDENR2YRdSSGFf24cIEY61YziFU3irvSXNJ19M+cWFC1eu3Lhx586DBwUF"
    "JSUVHQd67gw8QMGOMmnOfPGDZ1paOjp6egYGz9+OHYnEfkmdNBpcmHN7gkV1qqRpufArtyRYU2c/GlxZ4nqCnmpZveWQNB1XVrie"
    "YEn9yoHraHBjnUsJ5upd7qtnbdL03HjJeYK5+o3qR+1ocM93tc5pgoEyq/f5Pn6pSpoht8EWThOM6nfKlarR4JHzbuF3gmLL+eQk"
    "f8o/sdh4MmnGpNv5+NP5pNnlNljnkFnkO9hS9TQoc58tcdoz0zl4XZs0KY/fnP1sVueTXK5zNKjyfE853zNL2zStMGn249rL7Bb2"
    "e5+/1a/vQbXE0eDAyLW3aTlBNVH4yaQJWiJvqCX19RdtT3CYczSoX6mvv2hjggP18x/BhElzfKXe5Tt/mSA4Uk+ZnI6r6ilv4I0J"
    "ahqO3/wPqhZnipq8Dj0AAAAASUVORK5CYII="
)


def pixels():
    """[[(red, green, blue)]], row by row, as they were before they were encoded."""
    return [[_colours(x, y) for x in range(WIDTH)] for y in range(HEIGHT)]


def _colours(x, y):
    distance = (x - WIDTH // 2) ** 2 + (y - HEIGHT // 2) ** 2
    return x * 255 // (WIDTH - 1), y * 255 // (HEIGHT - 1), distance // 2


def difference(rows, others):
    """The most that any colour of any pixel differs by; 256 where the images are not of one size."""
    if list(map(len, rows)) != list(map(len, others)):
        return 256.0
    pairs = zip(chain.from_iterable(rows), chain.from_iterable(others))
    return max(abs(float(a) - float(b)) for pixel, wanted in pairs for a, b in zip(pixel, wanted))
