"""nvidia-smi's two forms of document as trees, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envcheck.collector.smi import tree

XML = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
\t<driver_version>535.54.03</driver_version>
\t<attached_gpus>1</attached_gpus>
\t<gpu id="00000000:01:00.0">
\t\t<product_name>NVIDIA A100</product_name>
\t\t<clocks><sm_clock>1275 MHz</sm_clock></clocks>
\t\t<remapped_rows>N/A</remapped_rows>
\t\t<mig_devices>
\t\t\tNone
\t\t</mig_devices>
\t</gpu>
</nvidia_smi_log>
"""

TEXT = """
==============NVSMI LOG==============

Timestamp                                 : Wed Jun  7 19:32:16 2023
Driver Version                            : 510.73.08
vGPU Driver Capability
        Heterogenous Multi-vGPU           : Supported

Attached GPUs                             : 2
GPU 00000000:10:1C.0
    Product Name                          : NVIDIA A100
    HW Slowdown                           : Not Active
        HW Thermal Slowdown               : Active
    Clocks
        SM                                : 1275 MHz
    Process ID                            : 12
        Name                              : a : b
    Empty                                 :
GPU 00000000:20:1C.0
    Product Name                          : NVIDIA A30
"""


def test_xml_becomes_a_tree() -> None:
    document = tree.parse(XML)
    assert (document.form, document.schema) == ("xml", "v12")
    assert document.root.text("driver_version") == "535.54.03"
    (gpu,) = document.gpus()
    assert gpu.value == "00000000:01:00.0"
    assert gpu.text("clocks/sm_clock") == "1275 MHz"
    assert gpu.text("mig_devices") == "None"


def test_text_becomes_a_tree() -> None:
    document = tree.parse(TEXT)
    assert (document.form, document.schema) == ("text", None)
    assert document.root.text("Driver Version") == "510.73.08"
    assert document.root.text("vGPU Driver Capability/Heterogenous Multi-vGPU") == "Supported"
    first, second = document.gpus()
    assert (first.value, second.value) == ("00000000:10:1C.0", "00000000:20:1C.0")
    assert first.text("HW Slowdown") == "Not Active"
    assert first.text("HW Slowdown/HW Thermal Slowdown") == "Active"
    assert first.text("Clocks/SM") == "1275 MHz"
    assert first.text("Process ID/Name") == "a : b"
    assert first.text("Empty") == ""
    assert second.text("Product Name") == "NVIDIA A30"
    assert second.text("Clocks/SM") is None


@pytest.mark.parametrize(
    "subset",
    [
        '[<!ENTITY lol "lol">]',
        '[<!ENTITY % file SYSTEM "file:///etc/passwd"> %file;]',
        '[<!ENTITY root "<nvidia_smi_log>">]',
    ],
)
def test_entities_are_refused(subset: str) -> None:
    hostile = XML.replace('SYSTEM "nvsmi_device_v12.dtd"', subset).replace("A100", "&lol;")
    with pytest.raises(ValueError, match="entities"):
        tree.parse(hostile)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        (" \n\t\n", "empty"),
        ("hello", "neither"),
        ("<html></html>", "neither"),
        (XML[: XML.index("<nvidia_smi_log>")], "breaks off"),
        (XML[: XML.index("<product_name>")], "breaks off"),
        (XML.replace("</clocks>", ""), "broken in line"),
        (XML.replace("<clocks>", "<a>" * 100 + "</a>" * 100 + "<clocks>"), "deeper"),
    ],
)
def test_what_is_no_document_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        tree.parse(text)


def mutations(document: str) -> st.SearchStrategy[str]:
    """The document with a piece cut out, replaced or put twice."""
    place = st.integers(0, len(document))
    return st.builds(
        lambda a, b, piece: document[: min(a, b)] + piece + document[max(a, b) :],
        place,
        place,
        st.one_of(st.just(""), st.text(max_size=20), st.just(document[:200]), st.just("<gpu>")),
    )


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.text(), mutations(XML), mutations(TEXT)))
@example("<nvidia_smi_log" + ">" * 3 + "</nvidia_smi_log>")
@example("==============NVSMI LOG==============\n    : \n" + " " * 500 + ":")
def test_foreign_text_raises_nothing_but_value_error(text: str) -> None:
    try:
        document = tree.parse(text)
    except ValueError as error:
        assert str(error)
    else:
        assert document.form in ("xml", "text")
