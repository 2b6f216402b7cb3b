"""Redaction: one value, one token; nothing of it left; and twice is once."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.collector.credentials import SECRET, mask
from envcheck.collector.redact import Redactor

UUID = "8932f937-d72c-4106-c12f-20bd9faed9f6"
OTHER = "11111111-2222-3333-4444-555555555555"


def redactor() -> Redactor:
    return Redactor(host="gpu-box-7.example.org", user="alice", home="/data/people/alice")


def test_one_value_is_one_token_everywhere() -> None:
    document = {
        "machine": {"uuid": f"GPU-{UUID}", "again": [f"x {UUID.upper()} y"], "mig": f"MIG-{OTHER}"},
        "target": {"uuid": f"GPU-{UUID}"},
    }
    redacted = redactor().redact(document)
    token = redacted["machine"]["uuid"].removeprefix("GPU-")
    assert token.startswith("<uuid-")
    assert redacted["target"]["uuid"] == f"GPU-{token}"
    assert redacted["machine"]["again"] == [f"x {token} y"]
    assert redacted["machine"]["mig"].startswith("MIG-<uuid-")
    assert redacted["machine"]["mig"] != f"MIG-{token}"
    assert UUID not in json.dumps(redacted).lower()


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("hostname", "gpu-box-7.example.org", "<host-1>"),
        ("text", "Nov 20 gpu-box-7 kernel: NVRM", "Nov 20 <host-1> kernel: NVRM"),
        ("user", "alice", "<user-1>"),
        ("path", "/data/people/alice/venv", "<home-1>/venv"),
        ("path", "/data/people/alice", "<home-1>"),
        ("path", "/data/people/alicent/venv", "/data/people/alicent/venv"),
        ("path", "/srv/data/people/alice/x", "/srv/data/people/<user-1>/x"),
        ("location", "path:/data/people/alice/x", "path:<home-1>/x"),
        ("url", "file:%2F%2F%2Fhome%2Fbob/x", "file://<home-1>/x"),
        ("url", "a?b=%2Fhome%2Fbob%2Fx c", "a?b=<home-1>/x c"),
        ("url", "x=%2fhome%2fb%c3%b6b", "x=<home-1>"),
        ("url", "x=%252Fhome%252Fbob", "x=<home-1>"),
        ("url", "x=%25252Fdata%25252Fpeople%25252Falice", "x=<home-1>"),
        ("url", "https://h/%61lice/100%25", "https://h/<user-1>/100%"),
        ("url", "https://h/100%25/%2Fopt", "https://h/100%25/%2Fopt"),
        ("json", '{"a": "\\/home\\/bob\\/x"}', '{"a": "<home-1>/x"}'),
        ("json", '"\\u002Fhome\\u002fbob"', '"<home-1>"'),
        ("repr", "b'\\x2fhome\\x2fbob'", "b'<home-1>'"),
        ("repr", "'failed:\\n/home/bob/x'", "'failed: <home-1>/x'"),
        ("json", "x=%5Cu002Fhome%5Cu002Fbob", "x=<home-1>"),
        ("text", "C:\\new \\ud800 50%", "C:\\new \\ud800 50%"),
        ("text", f"<user-{'9' * 6000}>", f"<user-{'9' * 6000}>"),
        ("path", "/home/bob/x:/home/bob/y", "<home-1>/x:<home-1>/y"),
        ("serial", "1650522003820", "<serial-1>"),
        ("serial", "N/A", "N/A"),
        ("kind", "alice", "alice"),  # wholly a word: only keys that hold names are names
        ("pci_address", "0000:3b:00.0", "0000:3b:00.0"),
        ("text", "malice and gpu-box-70", "malice and gpu-box-70"),
        ("url", "file:///home/bob/x", "file://<home-1>/x"),
        ("url", "file:///data/people/alice/wheels", "file://<home-1>/wheels"),
        ("url", "file://localhost/home/bob/x", "file://localhost<home-1>/x"),
        ("path", "//home/bob//x", "/<home-1>//x"),
        ("path", "/mnt/c/Users/bob/AppData", "/mnt/c<home-1>/AppData"),
        ("url", "https://home/bob/simple", "https://home/bob/simple"),
        ("text", "ALICE and Gpu-Box-7.Example.Org", "<user-2> and <host-1>"),
        ("user", "Alice", "<user-1>"),
        ("server", "gpu-box-7.example.org", "<host-1>"),
        ("text", "/srv/x/ALICE/y", "/srv/x/<user-1>/y"),
    ],
)
def test_what_becomes_a_token(key: str, text: str, expected: str) -> None:
    assert redactor().redact({key: text}) == {key: expected}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://me:pw@host/simple", f"https://{SECRET}@host/simple"),
        ("https://tok3n@host/simple", f"https://{SECRET}@host/simple"),
        ("https://host/x?token=abc&y=1", f"https://host/x?token={SECRET}&y=1"),
        ("Authorization:  abc.def x", f"Authorization:  {SECRET} x"),
        (f"jwt-eyJ{'a' * 8}.{'b' * 8}.{'c' * 4}", f"jwt-{SECRET}"),
        (f"1.eyJ{'a' * 8}.eyJ{'b' * 8}.{'c' * 8}.dddd x", f"1.{SECRET}.dddd x"),
        ("eyJaaaaaaaa.short.x", "eyJaaaaaaaa.short.x"),
        ("Authorization: Bearer abc.def", f"Authorization: {SECRET}"),
        ("use nvapi-0123456789abcdef0123", f"use {SECRET}"),
        ("https://host/simple", "https://host/simple"),
        ("git@github.com:x/y", "git@github.com:x/y"),
    ],
)
def test_credentials_are_removed(text: str, expected: str) -> None:
    assert mask(text) == expected
    assert mask(expected) == expected


pieces = st.sampled_from(
    [
        UUID,
        "GPU-" + UUID,
        "GPU-8932f937",
        "/home/bob/x",
        "/data/people/alice",
        "alice",
        "gpu-box-7",
        "https://u:p@h/",
        "token=abc",
        " ",
        "/",
        "<",
        ">",
        ":",
        "a",
        "=",
        "MIG-",
        "%2Fhome%2Fbob",
        "%252F",
        "%2F",
        "%3C",
        "%",
        "\\/home",
        "\\u002f",
        "\\n",
    ]
)
texts = st.one_of(st.text(max_size=30), st.lists(pieces, max_size=6).map("".join))


@settings(max_examples=30, deadline=None)
@given(texts)
def test_no_uuid_and_no_credential_survives(text: str) -> None:
    once = redactor().redact({"x": text})["x"]
    assert UUID not in once.lower()
    assert "u:p@" not in once
