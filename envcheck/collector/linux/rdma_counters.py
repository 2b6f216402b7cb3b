"""Counters of RDMA ports, read twice: what grows is happening now, what stands still is history."""

import time

from .rdma import FOLDER

APART = 0.3  # seconds between the two reads, at least
# By their folder. rdma_counters.csv says what is judged of each.
COUNTERS = {
    "counters": (
        "symbol_error link_error_recovery link_downed port_rcv_errors port_xmit_discards port_xmit_wait"
        " local_link_integrity_errors excessive_buffer_overrun_errors"
    ).split(),
    "hw_counters": (
        "out_of_sequence packet_seq_err local_ack_timeout_err rnr_nak_retry_err roce_slow_restart"
        " req_transport_retries_exceeded np_cnp_sent rp_cnp_handled"
    ).split(),
}


def read(context):
    """(when, {(adapter, port): {counter: number}})"""
    found = {}
    for name in context.names(FOLDER):
        for port in context.names("%s/%s/ports" % (FOLDER, name)):
            found[name, port] = _of_port(context, "%s/%s/ports/%s/" % (FOLDER, name, port))
    return time.monotonic(), found


def _of_port(context, folder):
    every = [(name, folder + part) for part, names in COUNTERS.items() for name in names]
    found = {name: context.fact("%s/%s" % (path, name), int) for name, path in every}
    return {name: number for name, number in found.items() if isinstance(number, int)}


def add(context, devices, first):
    """Read them once more for the adapters' ports; seconds between the reads. ``first``: what read() gave."""
    before, old = first
    time.sleep(max(0, before + APART - time.monotonic()))
    now, new = read(context)
    for device in devices:
        for port in device["ports"]:
            place = device["name"], str(port["port"])
            was, counted = old.get(place, {}), new.get(place, {})
            grown = {name: number - was.get(name, number) for name, number in counted.items()}
            port["counters"] = {name: number for name, number in counted.items() if number}
            port["growth"] = {name: number for name, number in grown.items() if number > 0}
    return round(now - before, 3)
