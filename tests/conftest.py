"""Makes the helpers in the tests' folders importable by their own names."""

import gc
import sys
from pathlib import Path

for folder in ("", "unit", "functional", "gpu"):
    sys.path.insert(0, str(Path(__file__).parent / folder))


def pytest_collection_finish() -> None:
    """What is there by now stays: to look through it for garbage takes a tenth of the time."""
    gc.freeze()
