"""A user's own stack: read like ours, and each mistake told with the path of its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.exit_codes import UsageError
from envcheck.install.catalogue.load import load
from envcheck.install.catalogue.schema import read

GOOD = """\
name = "mine"
title = "Our own build"
distribution = "our-tensorflow"
requirement = "our-tensorflow[gpu]=={version}"
gpu = true
architectures = ["x86_64"]
cpu-flags = ["avx"]
must-pass = ["FRM-001"]
otherwise = ["tensorflow"]
source = "the team's wiki"
constraints = ["protobuf<4", 'numpy<2; python_version < "3.12"']

[environment]
TF_CPP_MIN_LOG_LEVEL = "1"

[[indexes]]
name = "ours"
urls = ["https://wheels.example.com/simple"]
packages = ["our-*"]
but-not = ["our-tools"]
source = "the team's wiki"

[[sdists]]
name = "gast"
version = "0.2.2"
sha256 = "fe939df4583692f0512161ec1c880e0a10e71e6a232da045ab8edd3756fbadf0"
why = "has no wheel"
source = "its page"

[sdists.build]
requires = ["setuptools==59.6.0"]
environment = { FLAG = "1" }
programs = ["g++"]

[[releases]]
release = "1.1"
version = "1.1.0"
python = ["3.10"]
source = "the team's wiki"

[[releases]]
release = "1.2"
version = "1.2.0"
python = ["3.10", "3.11"]
cuda = "12.5"
compute-capabilities = ["sm_80", "compute_90"]
source = "the team's wiki"
"""


def refused(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(text, "my.toml")
    return str(caught.value)


def test_a_good_file_is_read_newest_release_first(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD, encoding="utf-8")
    stack = load(str(file))
    assert [release.release for release in stack.releases] == ["1.2", "1.1"]
    assert stack.indexes[0].claims("our-tensorflow") and not stack.indexes[0].claims("our-tools")
    assert stack.sdists[0].build.environment == {"FLAG": "1"}


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("gpu = true", "gpu = True", "5:7: this is not TOML: invalid value"),
        ("cpu-flags", "cpu-flag", ' cpu-flag: "cpu-flag" is no key here; did you mean "cpu-flags"?'),
        ('distribution = "our-tensorflow"\n', "", ' "distribution" is missing'),
        ('version = "1.2.0"\n', "", ' releases[1]: "version" is missing'),
        ('name = "mine"', 'name = "My Stack"', ' name: "My Stack" is not a name such as my-stack'),
        ("[gpu]=={version}", "", ' requirement: "our-tensorflow" has no {version} for a release\'s'),
        ("[gpu]=={version}", "=>{version}", ' requirement: "our-tensorflow=>{version}" is not a requirement'),
        ('["FRM-001"]', '["FRM-001", "imports"]', ' must-pass[1]: "imports" is not a check such as'),
        ('"protobuf<4"', '"protobuf 4"', ' constraints[0]: "protobuf 4" is not a requirement'),
        ('"protobuf<4"', '"protobuf"', ' constraints[0]: "protobuf" says nothing of the version'),
        ('"protobuf<4"', '"protobuf[x]<4"', ' constraints[0]: "protobuf[x]<4" has extras'),
        ('"protobuf<4"', '"p @ https://x/p.whl"', ' constraints[0]: "p @ https://x/p.whl" names a URL'),
        ("TF_CPP_MIN_LOG_LEVEL", "LD_LIBRARY_PATH",
         " environment.LD_LIBRARY_PATH: LD_LIBRARY_PATH is not set"),
        ('name = "ours"', 'name = "public"', ' indexes[0].name: "public" is the index that pip and uv'),
        ("https://w", "http://w", ' indexes[0].urls[0]: "http://wheels.example.com/simple" is not encrypted'),
        ("https://wheels", "https://u:hunter2@wheels",
         " indexes[0].urls[0]: an index's address holds no credentials"),
        ("/simple", "/simple?x=1",
         ' indexes[0].urls[0]: "https://wheels.example.com/simple?x=1" must end with'),
        ('["our-*"]', '["Our_*"]',
         ' indexes[0].packages[0]: "Our_*" is not a pattern on normalised package names'),
        ("==59.6.0", ">=59", ' sdists[0].build.requires[0]: "setuptools>=59" must be pinned exactly'),
        ('release = "1.2"', 'release = "1.1"', ' releases[1].release: there is another release "1.1" above'),
        ('version = "1.2.0"', 'version = "1.2rc1"', " releases[1].version: 1.2rc1 is a pre-release"),
        ('["3.10", "3.11"]',
         '["3.10", "cp311"]', ' releases[1].python[1]: "cp311" is not a minor version such as'),
        ('"sm_80"', '"8.0"',
         ' releases[1].compute-capabilities[0]: "8.0" is not a capability such as "sm_80"'),
        ('cuda = "12.5"', 'released = "May"',
         ' releases[1].released: "May" is not a date such as "2026-03-06"'),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_with_the_path_of_its_key(old: str, new: str, error: str) -> None:
    head, found, tail = GOOD.rpartition(old)
    assert found, "the test's own file has changed"
    text = refused(head + new + tail)
    assert text.startswith(f"my.toml:{error}"), text
    assert "\n" not in text and "hunter2" not in text


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.toml: the stack cannot be read: No such file"):
        load(str(tmp_path / "nowhere.toml"))
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"\n')
    with pytest.raises(UsageError, match=r"latin\.toml: this is not UTF-8 text \(byte 9\)"):
        load(str(tmp_path / "latin.toml"))
    with pytest.raises(UsageError, match="the stack cannot be read: Is a directory"):
        load(f"{tmp_path}/")


def test_an_alternative_that_is_no_stack_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD.replace('["tensorflow"]', '["tensorflow", "pytorch"]'), encoding="utf-8")
    with pytest.raises(
        UsageError, match=r': otherwise\[1\]: "otherwise" is "pytorch", and envcheck has'
    ):
        load(str(file))


@pytest.mark.parametrize("text", ["9" * 5000, f"1.{'9' * 5000}", f"1!{'9' * 5000}", "9" * 400])
@pytest.mark.parametrize("at", ["1.1.0", "0.2.2", "<4", "59.6.0", "3.12", '"1"'])
def test_a_version_of_5000_digits_is_a_sentence(at: str, text: str) -> None:
    assert at in GOOD
    with pytest.raises(UsageError, match=r"s\.toml:\d+: .* a number in it is too long"):
        read(GOOD.replace(at, at.replace(at.strip('"<'), text)), "s.toml")
