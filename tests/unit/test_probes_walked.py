"""The probes are the files in probes/: none has to be listed, and none can be there without being one."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.collector import foreign, probes

FOLDER = Path(probes.__file__).parent
GOOD = 'DOCUMENT = "machine"\nDEADLINE = 5\n\n\ndef collect(context):\n    return {}\n'


def test_every_file_in_probes_is_a_probe() -> None:
    found = {*probes.of("machine"), *probes.of("target")}
    assert found == {path.stem for path in FOLDER.glob("[!_]*.py")}
    assert list(probes.of("target"))[:3] == ["jax", "tensorflow", "torch"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", r"probes/fans\.py has no collect"),
        (GOOD.replace('"machine"', '"nowhere"'), 'neither "machine" nor "target"'),
        (GOOD.replace("DOCUMENT", "DOCUMENTS"), 'neither "machine" nor "target"'),
        (GOOD.replace("DEADLINE = 5", ""), "DEADLINE is not a number"),
    ],
)
def test_a_file_that_registers_nothing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    monkeypatch.setattr(probes, "__path__", [str(tmp_path)])
    (tmp_path / "fans.py").write_text(text)
    with pytest.raises(probes.NotAProbe, match=why):
        probes.of("machine")


def test_another_package_s_probe_is_read_and_not_imported(tmp_path: Path) -> None:
    file = tmp_path / "fans.py"
    file.write_text("import no_such_module\n" + GOOD + "raise SystemExit\n")
    (found,), refused = foreign.find({"acme_fans": str(file)})
    assert (found.name, found.document, found.deadline) == ("acme_fans", "machine", 5)
    assert (found.module, refused) == (str(file), {})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def f(:", "no Python that this interpreter reads"),
        ("\0", "no Python that this interpreter reads"),
        ("(" * 5000, "no Python that this interpreter reads"),
        ("", "no function collect"),
        (GOOD.replace("= 5", "= 5 + x"), "DEADLINE is not a plain value"),
        (GOOD.replace("= 5", "= True"), "DEADLINE is not a number"),
        (GOOD.replace("= 5", "= 1e9"), "DEADLINE is not a number"),
        (GOOD.replace("machine", "moon"), "DOCUMENT is neither"),
        (None, "No such file"),
    ],
)
def test_what_is_no_probe_is_refused_with_the_reason(
    tmp_path: Path, text: str | None, why: str
) -> None:
    file = tmp_path / "fans.py"
    if text is not None:
        file.write_text(text)
    found, refused = foreign.find({"acme_fans": str(file)})
    assert not found and why in refused["acme_fans"]
