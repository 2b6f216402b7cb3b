"""Which images of a folder a row reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.collector.bench import image_folder


def test_an_image_is_of_its_folders_class(tmp_path: Path) -> None:
    for name in ("b/1.PNG", "a/2.JPEG", "a/1.jpeg", "a/notes.txt", "c/d/3.jpg", "0.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    found = {
        str(Path(path).relative_to(tmp_path)): n for path, n in image_folder.found(tmp_path, 9)
    }
    assert found == {"0.jpg": 0, "a/1.jpeg": 1, "a/2.JPEG": 1, "b/1.PNG": 2, "c/d/3.jpg": 3}
    assert {number for _path, number in image_folder.found(tmp_path, 2)} == {0, 1}


def test_a_folder_without_images_is_named(tmp_path: Path) -> None:
    (tmp_path / "read.me").write_text("")
    with pytest.raises(ValueError, match=f"no JPEG and no PNG lies below {tmp_path}"):
        image_folder.found(tmp_path, 10)
