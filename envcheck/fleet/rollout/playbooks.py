"""The playbooks that `envcheck fleet` runs, with their roles, as files that stand alone."""

from __future__ import annotations

from pathlib import Path

from ...exit_codes import UsageError
from ..engines.ansible import CONTENT

# The role of each, and the tasks of it that are another playbook's.
_ROLES = {"install": "envcheck", "rollback": "envcheck", "collect": "envcheck_ask"}


def files_of(name: str) -> dict[str, str]:
    """The text of each file by its name: first the playbook, then its role as one reads it."""
    role = f"roles/{_ROLES[name]}"
    names = [f"{name}.yml"]
    order = ("defaults", "tasks", "action_plugins", "files", "meta")
    found = [path for path in (CONTENT / role).rglob("*") if path.is_file()]
    inside = [str(path.relative_to(CONTENT)) for path in found if path.suffix != ".pyc"]
    names += sorted(inside, key=lambda one: (_place(one.split("/")[2], order), one))
    return {one: (CONTENT / one).read_text(encoding="utf-8") for one in names}


def text(files: dict[str, str]) -> str:
    """All of them, one after the other, each under its name."""
    return "\n".join(f"# ---- {name}\n{content}" for name, content in files.items())


def write(files: dict[str, str], folder: Path) -> list[Path]:
    """Raises UsageError where the directory has something in it, or cannot be written."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"--output {folder}: there is something in it", "name a new directory")
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
            written.append(path)
    except OSError as error:
        raise UsageError(f"--output {error.filename}: {error.strerror}") from None
    return written


def _place(name: str, order: tuple[str, ...]) -> int:
    return order.index(name) if name in order else len(order)
