"""The checks on RDMA ports: up, fast, without errors, and set like the others of their kind."""

from __future__ import annotations

from typing import Any

import networks
import pytest
from judged import full_text
from network_judged import judge
from networks import ETH0, LO, adapter, interface, port, rail
from whole import whole

from envcheck.attributes.difference import differences
from envcheck.collector.linux import rdma_counters
from envcheck.data import table
from envcheck.facts.base import NOT_COLLECTED, ProgramSetting, Unavailable
from envcheck.facts.network import Network
from envcheck.facts.view import SnapshotView

ABSENT = Unavailable(unavailable="absent")


def topology(digest: str) -> ProgramSetting:
    return ProgramSetting(
        name="NCCL_TOPO_FILE", value="/t.xml", source="environment", digest=digest
    )


def with_ports(changed: dict[int, Any], count: int = 8, **changes: Any) -> Network:
    rdma = [adapter(n, changed.get(n, port())) for n in range(count)]
    return networks.infiniband(**({"rdma": rdma} | changes))


@pytest.mark.parametrize(
    ("changed", "outcome", "words"),
    [
        ({3: port(state="DOWN", physical_state="Polling")}, "warn", "mlx5_3 is down (DOWN, Polling)"),
        ({3: port(state="INIT")}, "warn", "no subnet manager"),
        ({n: port(state="INIT") for n in range(8)}, "warn", "mlx5_7 has a link"),
        ({0: port(lanes=1, rate_gbps=100.0)}, "warn", "mlx5_0 is active at 100 Gb/s over one lane"),
        ({2: port(rate_gbps=40.0)}, "warn", "mlx5_2 is active at 40 Gb/s, while"),
        ({2: port(rate_gbps=200.0)}, "warn", "mlx5_2 is active at 200 Gb/s, while"),  # HDR of NDR
        ({n: port(rate_gbps=200.0) for n in range(2)}, "pass", ""),  # for storage
        ({n: port(rate_gbps=200.0) for n in range(8)}, "pass", ""),  # an older switch
        ({n: port(rate_gbps=56.0) for n in range(8)}, "warn", "its chip can have 400"),
        # as many without a cable as with one, and more: that is how it was built
        ({n: port(state="DOWN") for n in range(5)}, "pass", ""),
    ],
)  # fmt: skip
def test_ports_that_are_down_or_slow(changed: dict[int, Any], outcome: str, words: str) -> None:
    result = judge(with_ports(changed), "NET-010")
    assert result.outcome == outcome and words in full_text(result)


def test_a_ninth_adapter_may_be_for_storage() -> None:
    assert judge(with_ports({8: port(rate_gbps=200.0)}, 9), "NET-010").outcome == "pass"


def test_a_roce_port_at_half_the_rate_of_the_others() -> None:
    rails = [adapter(n, rail(n, rate_gbps=100.0 if n == 5 else 200.0)) for n in range(8)]
    (found,) = judge(networks.roce(rdma=rails), "NET-010").findings
    assert "mlx5_5 is active at 100 Gb/s, while mlx5_0" in found.message


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"link_width": 4, "max_link_width": 16, "slot_max_link_width": 16}, "4 of 16 lanes"),
        ({"link_gts": 16.0, "max_link_gts": 32.0, "slot_max_link_gts": 32.0}, "16 of 32 GT/s"),
        ({"link_gts": 16.0, "max_link_gts": 32.0, "slot_max_link_gts": 16.0}, ""),
        ({"link_gts": 16.0, "max_link_gts": 32.0}, ""),
    ],
)
def test_an_adapter_with_a_part_of_its_pcie_link(link: dict[str, Any], words: str) -> None:
    result = judge(networks.infiniband(rdma=[adapter(0, **link)]), "NET-010")
    assert [f"mlx5_0 has {words} of" in one.message for one in result.findings] == [True] * bool(
        words
    )


def test_a_card_s_second_port_may_stay_free() -> None:
    second = adapter(9, port(state="DOWN"), address="0000:18:00.1")
    found = networks.infiniband(rdma=[*(adapter(n) for n in range(8)), second])
    assert judge(found, "NET-010").outcome == "pass"


# NET-013


def test_the_table_has_what_is_collected() -> None:
    collected = [name for names in rdma_counters.COUNTERS.values() for name in names]
    assert sorted(row["counter"] for row in table("rdma_counters")) == sorted(collected)


@pytest.mark.parametrize(
    ("counted", "changes", "key"),
    [
        ({"counters": {"symbol_error": 90_000}}, {}, "rdma-link-errors"),
        # since a year: ten an hour
        ({"counters": {"symbol_error": 90_000}}, {"uptime_s": 365 * 86_400.0}, ""),
        ({"counters": {"symbol_error": 90_000}}, {"uptime_s": ABSENT}, "rdma-link-errors"),
        ({"counters": {"link_downed": 37}}, {}, "rdma-link-errors"),
        ({"counters": {"link_downed": 12}}, {}, ""),
        ({"counters": {"no_such_counter": 90_000}, "growth": {"no_such_counter": 9}}, {}, ""),
        ({"growth": {"link_downed": 1}}, {}, "rdma-link-errors-now"),
        ({"growth": {"symbol_error": 4}}, {}, ""),  # 8 a second
        ({"growth": {"symbol_error": 6}}, {}, "rdma-link-errors-now"),
        (
            {"counters": {"symbol_error": 90_000}, "growth": {"symbol_error": 600}},
            {},
            "rdma-link-errors-now",
        ),
        ({"growth": {"symbol_error": 600}}, {"counted_s": 0.0}, ""),
        ({"growth": {"local_ack_timeout_err": 2}}, {}, "rdma-packets-lost-now"),
        ({"growth": {"port_xmit_discards": 40}}, {}, ""),
        ({"growth": {"rp_cnp_handled": 4000, "port_xmit_wait": 90_000}}, {}, ""),
    ],
)
def test_what_a_port_counts(counted: dict[str, Any], changes: dict[str, Any], key: str) -> None:
    result = judge(with_ports({1: port(**counted)}, **changes), "NET-013")
    assert [one.cause.key for one in result.findings] == [key] * bool(key)
    assert not key or "mlx5_1" in result.findings[0].message
    assert ("congestion now: mlx5_1" in full_text(result)) is ("rp_cnp_handled" in str(counted))


def test_counters_that_an_older_collector_did_not_read() -> None:
    found = with_ports({}, counted_s=NOT_COLLECTED)
    assert judge(found, "NET-013").outcome == "skipped"


def test_a_switch_that_rebooted_is_no_port_s_fault() -> None:
    every = {n: port(counters={"link_downed": 99}) for n in range(8)}
    assert judge(with_ports(every), "NET-013").outcome == "pass"


# NET-014


@pytest.mark.parametrize(
    ("changed", "said", "command"),
    [
        ({"pfc": []}, "has none as its priorities with flow control", "3:on 4:off"),
        ({"ecn": []}, "has none as its priorities with congestion", "grep . /sys/class/net/rdma4/"),
        ({"trust": "pcp"}, "has pcp as its trust state", "mlnx_qos -i rdma4 --trust dscp"),
        ({"routed_gids": []}, "has none as its GIDs of RoCE v2", "ip -br addr show dev rdma4"),
        ({"interfaces": ["odd0"]}, "has 1500 as its MTU", "ip link set dev odd0 mtu 9000"),
        ({"interfaces": []}, "", ""),
        ({"pfc": ABSENT, "trust": ABSENT, "routed_gids": ABSENT}, "", ""),
    ],
)
def test_a_roce_port_that_is_set_differently(
    changed: dict[str, Any], said: str, command: str
) -> None:
    found = networks.roce()
    assert isinstance(found.rdma, list) and isinstance(found.interfaces, list)
    found.rdma[4] = adapter(4, rail(4, **changed))
    found.interfaces.append(interface("odd0", 40))
    findings = judge(found, "NET-014").findings
    assert len(findings) == bool(said)
    for one in findings:
        assert one.message.startswith("mlx5_4 ") and said in one.message
        assert one.remedy is not None and command in one.remedy.commands[0]


def test_two_that_differ_may_be_for_storage() -> None:
    found = networks.roce()
    assert isinstance(found.rdma, list)
    found.rdma[4:6] = [adapter(n, rail(n, pfc=[])) for n in (4, 5)]
    assert judge(found, "NET-014").outcome == "pass"


# What machines are compared by


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (networks.infiniband(), networks.roce(), None),
        (networks.infiniband(), networks.infiniband(interfaces=[LO, ETH0, interface("ib0", 3, mtu=2044)]),
         ("interfaces.mtu", "1500", "2044", ["ib0"])),
        (networks.roce(), networks.roce(rdma=[adapter(n, rail(n, pfc=[])) for n in range(2)]),
         ("nics.pfc", "3", "none", ["mlx5_0", "mlx5_1"])),
        (networks.roce(), networks.roce(rdma=[adapter(0, rail(0, routed_gids=[3, 5]))]),
         ("nics.roce_v2_gids", "3", "3, 5", ["mlx5_0"])),
        (networks.network(settings=[topology("0a1b")]), networks.network(settings=[topology("2c3d")]),
         ("network_settings.NCCL_TOPO_FILE", "/t.xml (0a1b)", "/t.xml (2c3d)", [])),
    ],
)  # fmt: skip
def test_what_differs_between_two_machines(
    before: Network, after: Network, changed: tuple[str, str, str, list[str]] | None
) -> None:
    found = differences(SnapshotView(whole(network=before)), SnapshotView(whole(network=after)))
    facts = [(one.key, one.before, one.after, one.devices) for one in found.facts]
    assert (changed in facts) if changed else len(facts) > 1
