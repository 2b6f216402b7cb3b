"""The pictures in docs/images are what the program prints, and fetch nothing."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pictures
import pytest


def test_they_are_all_there_is() -> None:
    assert {path.name for path in pictures.FOLDER.iterdir()} == set(pictures.PICTURES)


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_drawn_again_byte_for_byte(name: str) -> None:
    drawn = (pictures.FOLDER / name).read_text()
    if pictures.MADE_WITH not in drawn:
        pytest.skip(f"drawn with another version than {pictures.MADE_WITH}")
    assert drawn == pictures.draw(name), "draw it anew: .venv/bin/python tests/generate.py"


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_an_svg_that_fetches_nothing(name: str) -> None:
    drawn = (pictures.FOLDER / name).read_text()
    assert ET.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
    assert re.findall(r"https?://[^\"]+", drawn) == ["http://www.w3.org/2000/svg"]
    assert set(re.findall(r"url\(([^)])", drawn)) == {"#"}
    assert "Simulated" in drawn or "simulated" in drawn
