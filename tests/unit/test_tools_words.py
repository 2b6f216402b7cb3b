"""What uv, pip and builds say, as one sentence; and the variables of programs that ask indexes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envcheck.install.wheels import child_env, sdists, uv


def result(stderr: str, code: int = 1, outcome: str = "exited") -> Any:
    return SimpleNamespace(
        stderr=stderr.encode(),
        stdout=b"",
        code=code,
        outcome=outcome,
        describe=lambda: "died by signal 9",
    )


LONG = """\
error: No solution found when resolving dependencies
  cause: Because only termcolor<3 is available and all of termcolor<3 cannot be used, we can conclude \
that termcolor cannot be used. (1)
         Because a depends on b, we can conclude that c. (2)

         And because we know from (1) that termcolor cannot be used, we can conclude that all is lost.
         And because you require tensorflow==1.15.5, we can conclude that your requirements are
         unsatisfiable.

hint: Pre-releases are available for `a`; enable them with `--prerelease=allow`

hint: You require CPython 3.8 (`cp38`), but we only found wheels for `b` with these tags: `cp36m`,
      `cp37m`
"""


HASHES = """\
error: Failed to fetch `alpha==1.0`
  cause: Hash mismatch for `alpha==1.0`

         Expected:
           sha256:aa

         Computed:
           sha256:bb
"""


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (
            LONG,
            "Because a depends on b, we can conclude that c. And because termcolor cannot be used, we can"
            " conclude that all is lost. And because you require "
            "tensorflow==1.15.5, we can conclude that your requirements are unsatisfiable",
        ),
        (HASHES, "Hash mismatch for `alpha==1.0` Expected: sha256:aa Computed: sha256:bb"),
        ("error: unexpected argument '--x' found\n", "unexpected argument '--x' found"),
        ("", "it died by signal 9"),
    ],
)
def test_uv_is_told_by_its_last_cause(output: str, text: str) -> None:
    assert uv.sentence(result(output)) == text


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (
            "DEBUG running build\nDEBUG tiny.c:2:10: fatal error: Python.h: No such file or directory\n"
            "DEBUG error: command '/usr/bin/gcc' failed with exit code 1\n"
            "error: Failed to build `tiny==1.0`\n  cause: Call to backend failed\n[stderr]\n"
            "tiny.c:2:10: fatal error: Python.h: No such file or directory\n"
            "error: command '/usr/bin/gcc' failed with exit code 1\nhint: x\n",
            "tiny.c:2:10: fatal error: Python.h: No such file or directory / "
            "error: command '/usr/bin/gcc' failed with exit code 1",
        ),
        ("", "it printed nothing"),
    ],
)
def test_a_builds_last_words(output: str, text: str) -> None:
    assert sdists.last_words(output) == text


def test_what_asks_an_index_gets_the_users_proxies_and_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssl.get_default_verify_paths", lambda: SimpleNamespace(cafile=None))
    mine = {
        "HOME": "/h",
        "PIP_INDEX_URL": "x",
        "UV_INDEX": "y",
        "https_proxy": "z",
        "NO_PROXY": "a",
    }
    mine["PIP_CONFIG_FILE"] = "/dev/null"
    assert child_env.online(tmp_path, mine) == {
        "UV_SYSTEM_CERTS": "1",
        "UV_CREDENTIALS_DIR": str(tmp_path / "credentials"),
        "NETRC": "/h/.netrc",
        "https_proxy": "z",
        "NO_PROXY": "a,127.0.0.1,localhost,::1",
        "no_proxy": "127.0.0.1,localhost,::1",
    }
    bundles = [tmp_path / "system.pem", tmp_path / "mine.pem"]
    for bundle in bundles:
        bundle.write_text(f"{bundle.name}\n")
    mine |= {"SSL_CERT_FILE": str(bundles[0]), "REQUESTS_CA_BUNDLE": str(bundles[1])}
    found = child_env.online(tmp_path, mine)
    assert found["SSL_CERT_FILE"] == str(tmp_path / "certificates.pem")
    assert Path(found["SSL_CERT_FILE"]).read_text().split() == ["system.pem", "mine.pem"]
    mine["REQUESTS_CA_BUNDLE"] = str(bundles[0])
    assert child_env.online(tmp_path, mine)["SSL_CERT_FILE"] == str(bundles[0])
    mine["PIP_PROXY"] = "http://proxy.example:3128"
    found = child_env.online(tmp_path, mine)
    assert found["HTTPS_PROXY"] == found["HTTP_PROXY"] == "http://proxy.example:3128"
