"""Causes: declared once, put into words where a report is made, and safe to fill in."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
import tomli
from known_machines import machines

from envcheck.checks import declared
from envcheck.checks.engine import diagnose
from envcheck.checks.registry import all_checks
from envcheck.findings.causes import Cause, Finding


def a_cause(sentence: str = "GPU {gpu} runs at {share:.0%}.") -> Cause:
    return Cause("slow", "warn", "is slow", sentence, "Cool GPU {gpu}.", ["nvidia-smi"])


def test_a_finding_has_the_words_of_its_cause() -> None:
    found = a_cause().found(gpu=3, share=0.5)
    assert (found.level, found.headline) == ("warn", "is slow")
    assert found.message == "GPU 3 runs at 50%."
    assert found.remedy is not None and found.remedy.text == "Cool GPU 3."
    assert found.remedy.commands == ["nvidia-smi"]
    assert found.params == {"gpu": 3, "share": 0.5}


def test_a_missing_parameter_is_an_error_where_it_is_found() -> None:
    with pytest.raises(TypeError, match="the cause slow lacks share"):
        a_cause().found(gpu=3)


def test_braces_in_a_value_are_text() -> None:
    assert a_cause("It says {gpu}.").found(gpu="{share.__class__}").message.endswith("class__}.")


@pytest.mark.parametrize("field", ["x.__class__", "x[0]", "x!r", "x:>99999999", "0", ""])
def test_templates_are_names_and_plain_formats_alone(field: str) -> None:
    with pytest.raises(ValueError):
        a_cause(f"It is {{{field}}}.")


@pytest.mark.parametrize("key", ["", "Slow", "too slow", "slow-", "slow_x"])
def test_keys_are_kebab_case(key: str) -> None:
    with pytest.raises(ValueError, match="is not a cause's key"):
        Cause(key, "fail", "is slow", "It is slow.")


def test_a_finding_that_has_no_words_is_none() -> None:
    with pytest.raises(ValueError, match="cannot be put into words"):
        Finding(a_cause(), {"gpu": 3, "share": "half"})


def test_every_cause_that_is_found_is_declared_by_its_check() -> None:
    declared = {check.code: check.causes for check in all_checks()}
    for name, snapshot in machines().items():
        for result in diagnose(snapshot).results:
            for finding in result.findings:
                assert finding.cause in declared[result.code], (name, result.code)


CHECKS = Path(__file__).resolve().parents[2] / "envcheck" / "checks"


def test_each_declared_cause_is_used_and_each_used_one_is_declared() -> None:
    for path in CHECKS.rglob("*.toml"):
        file = tomli.loads(path.read_text("utf-8"))
        source = path.with_suffix(".py").read_text("utf-8")
        named = set(re.findall(r'CAUSE\["([^"]+)"\]', source))
        causes = file.get("cause", {})
        shown = {key: one for key, one in causes.items() if "shown_by" in one}
        listed = {one["shown_by"].get("listed", key) for key, one in shown.items()}
        assert {*named, *shown, *listed} == causes.keys(), path
        assert all("like" in one or (one["source"] and one["remedy"]) for one in shown.values())


def test_a_declared_cause_has_fields_of_their_types(monkeypatch: pytest.MonkeyPatch) -> None:
    for check in all_checks():
        for cause in check.causes:
            assert msgspec.convert(msgspec.to_builtins(cause), Cause).headline == cause.headline
    text = b'[cause.x]\nseverity = "fail"\nheadline = "x"\nsentence = "x"\nremedi = ""'
    monkeypatch.setattr(declared.pkgutil, "get_data", lambda package, name: text)
    with pytest.raises(TypeError, match="remedi"):
        declared.declared_causes("made.up")


# Areas whose headlines say why something does not work.
_EXPLAINING = ("framework", "environment", "acceleration", "soak")


def test_a_headline_is_short_and_no_sentence() -> None:
    for check in all_checks():
        for cause in check.causes:
            words = re.sub(r"\{[^}]*\}", "", cause.headline)
            assert len(words) <= (
                130 if check.area in _EXPLAINING else 52
            ) and not cause.headline.endswith("."), cause.key
            assert cause.sentence.endswith(".") or cause.sentence.endswith("}"), cause.key
