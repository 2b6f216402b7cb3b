"""Which certificates are believed, without a connection."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path

import certifi
import pytest

from envcheck.install.network import trust

BUNDLE = certifi.where()


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without certificates; a folder that may get some."""
    folder = tmp_path / "certs"
    folder.mkdir()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(trust, "_SYSTEMS", ())
    return folder


def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files and folders that are loaded one by one."""
    found: list[str] = []
    monkeypatch.setattr(trust, "load", lambda context, path: found.append(str(path)))
    trust.verifying()
    return found


def test_certificates_and_host_names_are_checked(bare: Path) -> None:
    context = trust.verifying()
    assert context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname
    assert trust.unverified().verify_mode == ssl.CERT_NONE


def test_a_folder_is_one_where_openssl_can_find_a_certificate_by_its_name(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(BUNDLE, bare / "ca-bundle.crt")
    assert loaded(monkeypatch) == [BUNDLE]
    (bare / "5ed36f99.0").touch()
    assert loaded(monkeypatch) == []


def test_what_pip_is_told_is_believed_too_and_read_once(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", BUNDLE)
    own = str(tmp_path / "own.pem")
    for name, value in (("REQUESTS_CA_BUNDLE", own), ("CURL_CA_BUNDLE", BUNDLE), ("PIP_CERT", own)):
        monkeypatch.setenv(name, value)
    assert loaded(monkeypatch) == [own]
