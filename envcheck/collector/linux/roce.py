"""What makes Ethernet fit for RoCE at this end of the cable: PFC, ECN, and by what priorities are known."""

import re

from ..facts import unavailable
from ..runtime import programs
from .interfaces import FOLDER

DEADLINE = 2  # seconds, for each question
PRIORITIES = range(8)
# iproute2's dcb, else mlnx-tools' mlnx_qos, which answers both questions at once.
_QUESTIONS = {"dcb": ("pfc show dev", "app show dev"), "mlnx_qos": ("-i",)}
_PFC = re.compile(r"^prio-pfc (.+)", re.M)  # "0:off 1:off 2:off 3:on"
_PFC_OF_MLNX_QOS = re.compile(r"^[ \t]+enabled((?: +[01]){8})", re.M)
_TRUST = re.compile(r"^Priority trust state: (pcp|dscp)", re.M)


def add(context, devices):
    """Add "pfc", "ecn" and "trust" to the Ethernet ports of these adapters."""
    program = next((name for name in _QUESTIONS if programs.find(context, name)), None)
    for device in devices:
        for port in device["ports"]:
            if port["link_layer"] != "Ethernet" or not port["interfaces"]:
                continue
            folder = "%s/%s/" % (FOLDER, port["interfaces"][0])
            answer = _ask(context, program, port["interfaces"][0])
            if isinstance(answer, dict) and answer["unavailable"] == "timeout":
                program = None  # the other ports would take as long
            port["ecn"] = _ecn(context, folder)
            port["pfc"] = answer if isinstance(answer, dict) else _pfc(answer)
            port["trust"] = _trust(context.text(folder + "qos/trust").strip(), answer)


def _ask(context, program, interface):
    """What the program says of an interface; or why that is not known."""
    if program is None:
        return unavailable("absent", "neither dcb nor mlnx_qos answers here")
    text = ""
    path = context.path(programs.find(context, program))
    for question in _QUESTIONS[program]:
        result = context.run([path] + question.split() + [interface], DEADLINE)
        if not result.ok:
            reason = "timeout" if result.outcome == "timeout" else "not-supported"
            return unavailable(reason, "%s %s: %s" % (program, result.describe(), result.tail(1)))
        text += result.stdout.decode("utf-8", "replace")
    return text


def _pfc(text):
    of_dcb, of_mlnx_qos = _PFC.search(text), _PFC_OF_MLNX_QOS.search(text)
    if of_dcb:
        return [int(number) for number in re.findall(r"([0-7]):on", of_dcb.group(1))]
    if of_mlnx_qos:
        enabled = of_mlnx_qos.group(1).split()
        return [number for number in PRIORITIES if enabled[number] == "1"]
    return unavailable("not-supported", text.strip()[:200])


def _trust(own, answer):
    """``own``: what MLNX_OFED's driver says. Without that, entries for DSCP decide, as in mlnx_qos."""
    if own or isinstance(answer, dict):
        return own or answer
    state = _TRUST.search(answer)
    return state.group(1) if state else "dscp" if "dscp-prio" in answer else "pcp"


def _ecn(context, folder):
    """The priorities at which this port both marks congestion for others and slows down for them."""
    if not context.names(folder + "ecn"):
        return unavailable("absent", "the driver has no ecn folder")
    files = [folder + "ecn/roce_%s/enable/" % way for way in ("np", "rp")]
    return [
        number
        for number in PRIORITIES
        if all(context.text(file + str(number)).strip() == "1" for file in files)
    ]
