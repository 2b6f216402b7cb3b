"""pip's configuration: which files count, what is kept of them, and what never is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envcheck.collector.credentials import strip
from envcheck.collector.facts import dumps
from envcheck.collector.packaging import toml
from envcheck.collector.probes import environment, packaging_config
from envcheck.collector.runtime.context import Context
from envcheck.facts.base import Unavailable
from envcheck.facts.target import ConfigFile, Environment, PackagingConfig


def collect(root: Path, **environ: str) -> PackagingConfig:
    environ.setdefault("HOME", "/home/ada")
    context = Context(environ, root=str(root), params={"prefix": "/opt/env"})
    facts = packaging_config.collect(context)
    return msgspec.json.decode(dumps(facts.values), type=PackagingConfig)


def put(root: Path, path: str, text: str | bytes) -> Path:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    file.chmod(0o644)
    return file


def values(file: ConfigFile) -> dict[str, str]:
    assert not isinstance(file.settings, Unavailable), file.settings
    return {f"{s.section}.{s.key}": s.value for s in file.settings}


def test_settings_keep_their_section_and_their_lines(tmp_path: Path) -> None:
    put(
        tmp_path,
        "/etc/pip.conf",
        "[global]\n# a comment\nIndex_URL = https://index.example/simple\nextra-index-url =\n"
        "    https://one.example/\n    https://two.example/\nprogress-bar = off\n"
        "[install]\nno-cache-dir = true\n",
    )
    (file,) = collect(tmp_path).files
    assert values(file) == {
        "global.index-url": "https://index.example/simple",
        "global.extra-index-url": "https://one.example/\nhttps://two.example/",
        "install.no-cache-dir": "true",
    }
    assert not isinstance(file.settings, Unavailable)


def test_secret_variables_have_no_value(tmp_path: Path) -> None:
    found = collect(
        tmp_path,
        PIP_CLIENT_SECRET="hunter2",
        PIP_NO_INDEX="1",
        PIP_SOMETHING="hunter2",
        PIPX_HOME="/x",
    )
    assert {f.path: values(f) for f in found.files} == {
        "PIP_CLIENT_SECRET": {"env.client-secret": ""},
        "PIP_NO_INDEX": {"env.no-index": "1"},
    }


@pytest.mark.parametrize(
    "text",
    [
        "a = 1\na = 2", "a", "a =", "a = 1 b = 2", 'a = "x', "a = [1", "a = {b = 1", "[a",
        "a = 1\n[a]", "a = [1]\n[[a]]", "a = nonsense", 'a = "\\q"', "= 1", "a = 1979-05-27",
        'a = """x',
    ],
)  # fmt: skip
def test_what_is_no_toml_is_refused(text: str) -> None:
    for read in (lambda t: toml.Reader(t).document(), toml.loads):
        if "1979" in text and read is toml.loads:
            continue  # the real reader knows dates
        with pytest.raises(ValueError, match=r"^no valid TOML( at line [0-9]+)?$"):
            read("x = 0\n" + text)


KEYS = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
STRINGS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
SCALARS = st.one_of(st.booleans(), st.integers(-(10**9), 10**9), STRINGS)


@settings(max_examples=30, deadline=None)
@given(
    top=st.dictionaries(KEYS, st.one_of(SCALARS, st.lists(SCALARS, max_size=3)), max_size=4),
    tables=st.lists(st.dictionaries(KEYS, SCALARS, max_size=3), max_size=3),
)
def test_the_small_toml_reader_agrees_with_the_real_one(
    top: dict[str, Any], tables: list[dict[str, Any]]
) -> None:
    tomllib = pytest.importorskip("tomllib")
    top.pop("tables", None)
    # JSON's strings, numbers, booleans and arrays are TOML's too, astral characters unescaped.
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False, indent=1)}" for key, value in top.items()
    ]
    for table in tables:
        lines.append("[[tables]]  # one more")
        lines += [
            f"  {key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()
        ]
    lines += ["over-lines = [", '    "one",  # of two', '    "two",', "]"]
    text = "\n".join(lines)
    assert toml.Reader(text).document() == tomllib.loads(text)


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.text(), st.text(alphabet="[]{}=\"'\\\n,.# a1")))
@example("[" * 5000)
@example("a = " + "[" * 5000)
@example('a = "\\')
def test_any_text_is_toml_or_a_value_error(text: str) -> None:
    for read in (lambda t: toml.Reader(t).document(), toml.loads):
        try:
            assert isinstance(read(text), dict)
        except ValueError as error:
            assert "no valid TOML" in str(error)


@settings(max_examples=30, deadline=None)
@given(
    user=st.from_regex(r"[a-z]{1,8}", fullmatch=True),
    password=st.from_regex(r"s3cret[A-Za-z0-9!$&'()*+,;=._~%:@-]{0,12}", fullmatch=True),
    path=st.from_regex(r"(/[a-z0-9.]{1,12}){0,3}", fullmatch=True),
)
def test_no_password_survives(user: str, password: str, path: str) -> None:
    text, found = strip(f"https://{user}:{password}@index.example{path}")
    assert (text, found) == (f"https://index.example{path}", True)
    assert strip(text) == (text, False)


def test_environment_keeps_what_is_on_the_list_and_no_secret() -> None:
    environ = {
        "CUDA_VISIBLE_DEVICES": "",
        "NVIDIA_REQUIRE_CUDA": "cuda>=11.0",
        "NCCL_DEBUG": "INFO",
        "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE": "1",
        "TF_GPU_ALLOCATOR": "cuda_malloc_async",
        "LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
        "PYTORCH_CUDA_ALLOC_CONF": "backend:native",
        # never
        "NVIDIA_API_KEY": "hunter2",
        "NGC_API_KEY": "hunter2",
        "HOROVOD_SECRET_KEY": "hunter2",
        "TF_VAR_password": "hunter2",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "PATH": "/usr/bin",
        "TF_CONFIG": "{}",
    }
    facts = environment.collect(Context(environ))
    variables = msgspec.convert(facts.values, Environment).variables
    assert sorted(variables) == sorted(list(environ)[:7])
    assert variables["CUDA_VISIBLE_DEVICES"] == ""
    assert "hunter2" not in str(variables)
