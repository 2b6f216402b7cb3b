"""What can be wrong with the network between machines. Each is declared once, as those of the checks."""

from __future__ import annotations

from ...findings.causes import fail

HANGS = fail(
    "machine-hangs",
    "stops in the middle",
    "{machine} took part until round {round}, then answered no other machine, and its own"
    " answer did not come.",
    "Look at its console and its kernel's log: it hangs, or has lost power or its network.",
)
STOPS = fail(
    "machine-stops",
    "stops in the middle",
    "{machine} took part until round {round}; every later pair with it failed: {why}.",
    "Run the test again with this machine and one other, and look at its kernel's log meanwhile.",
)
MISNAMED = fail(
    "name-resolves-elsewhere",
    "offers the wrong address",
    "The name {host} of {machine} resolves to {resolves} ({by_name}), and the others reach it at {address}"
    " ({towards}): Gloo offers them the wrong address, and {failed} of {of} pairs with it fail.{proof}",
    "Correct its entry in /etc/hosts or DNS, or set GLOO_SOCKET_IFNAME={towards} in its jobs.",
)
BLACK_HOLE = fail(
    "large-messages-vanish",
    "loses large messages",
    "Small messages pass, and messages of {size} KiB {direction} {machine} never arrive, in {failed} of {of}"
    " pairs: somewhere on its way the MTU is smaller than {mtu}, and no ICMP says so.",
    "Set one MTU on its interface {towards}, its switch port and all others; let ICMP type 3 code 4 pass.",
)
CUT_OFF = fail(
    "machine-cut-off",
    "cannot be reached by the others",
    "{failed} of {of} other machines get no connection with {machine} ({address}): {why}.",
    "Check its firewall, its address and its switch port. Jobs use many ports above 1024.",
)
NO_GROUP = fail(
    "machine-fails",
    "fails with all others",
    "{failed} of {of} pairs with {machine} fail, in the step {step}: {why}.",
    "Compare its version of the framework and its network settings with the others'.",
)
SLOW = fail(
    "machine-slow",
    "is slow",
    "{machine} {verb} {rate:.0f} MB/s, in the median of its pairs; the fleet's machines reach {usual:.0f}."
    "{link}",
    "Check its cable, its link's rate and duplex, its interface's queue discipline, and its switch port.",
)
PAIR_CUT = fail(
    "pair-cut-off",
    "cannot reach each other",
    "{machine} and {other} fail with each other in the step {step}, tried twice, and reach all others:"
    " {why}.",
    "Look for a firewall rule or a route that concerns these two addresses: {address}, {other_address}.",
)
PAIR_SLOW = fail(
    "pair-slow",
    "are slow with each other",
    "{machine} sends {other} {rate:.0f} MB/s; their other pairs reach {usual:.0f}.",
    "Look at the path between these two: a link of the switches, or an uplink that others use up.",
)
DAMAGED = fail(
    "data-damaged",
    "damages data",
    "{wrong} numbers that {machine} and {other} exchanged arrived with other bits than were sent.",
    "Take both out of service until it is known which memory, adapter or cable does it.",
)
CLOCK = fail(
    "clock-off",
    "has another time than the others",
    "The clock of {machine} is {seconds} s {side} the fleet's median: TLS, Kerberos, leases and logs"
    " go by it.",
    "Start its time service.",
)
RAIL = fail(
    "rail-slow",
    "has a slow rail",
    "{machine}: with GPU {gpu} its pairs reach {rate:.0f} MB/s, with its other GPUs {usual:.0f}.",
    "Check the network adapter nearest to this GPU: its cable, port, PCIe link and firmware.",
)
