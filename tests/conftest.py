"""Makes the helpers in tests, tests/unit and tests/functional importable by their own names."""

import sys
from pathlib import Path

for folder in ("", "unit", "functional"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
