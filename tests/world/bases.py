"""Healthy machines, into which faults go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .gpus import gpu
from .machine import Machine
from .pci import bridge, pci
from .products import A100, RTX_4090, T4

H100_ADDRESSES = [f"0000:{bus}:00.0" for bus in ("18", "2a", "3a", "5d", "9a", "ab", "ba", "db")]
DRIVER_570 = "570.86.15"


def _ubuntu_packages(driver: str, flavour: str = "-open") -> dict[str, str]:
    branch, version = driver.partition(".")[0], f"{driver}-0ubuntu1"
    return {
        f"nvidia-driver-{branch}{flavour}": version,
        f"nvidia-dkms-{branch}{flavour}": version,
        f"nvidia-utils-{branch}": version,
        f"libnvidia-compute-{branch}": version,
        f"nvidia-kernel-common-{branch}": version,
    }


def trained(speed: str, width: int = 16) -> dict[str, str]:
    """The files of a link that runs as fast as it can, at so many GT/s."""
    return {
        f"{when}_link_{what}": value
        for when in ("current", "max")
        for what, value in (("speed", f"{speed} GT/s PCIe"), ("width", str(width)))
    }


def h100(
    driver: str = DRIVER_570,
    cuda: tuple[int, int] = (12, 8),
    addresses: Sequence[str] = H100_ADDRESSES,
) -> Machine:
    """8 × H100 SXM on four NVSwitches, bare metal."""
    m = Machine("8 × H100 SXM", driver=driver, cuda=cuda, packages=_ubuntu_packages(driver))
    m.packages[f"nvidia-fabricmanager-{driver.partition('.')[0]}"] = f"{driver}-1"
    m.packages["nvidia-persistenced"] = f"{driver}-1"
    m.services = ["/usr/bin/nv-fabricmanager", "/usr/bin/nvidia-persistenced"]
    m.files["/usr/bin/nv-fabricmanager"] = "#!/bin/sh\n"
    m.files["/usr/bin/nvidia-persistenced"] = "#!/bin/sh\n"
    m.files["/usr/lib/systemd/system/nvidia-fabricmanager.service"] = "[Unit]\n"
    for index, address in enumerate(addresses):
        bus = int(address[5:7], 16)
        root = f"pci0000:{bus - 3:02x}/0000:{bus - 3:02x}:01.0"
        m.gpus.append(gpu(index, address, gsp=driver))
        m.devices.append(bridge(root, numa_node=str(index // 4)))
        m.devices.append(pci(f"{root}/{address}", numa_node=str(index // 4)))
    m.devices.append(bridge("pci0000:00/0000:00:1c.0", **trained("32.0", 4)))
    for switch in range(4):
        m.devices.append(
            pci(
                f"pci0000:00/0000:00:1c.{switch + 1}/0000:{switch + 5:02x}:00.0",
                **{"class": "0x068000"},
                device="0x22a3",
                driver="nvidia-nvswitch",
                **trained("16.0", 2),
            )
        )
        m.devices.append(bridge(f"pci0000:00/0000:00:1c.{switch + 1}", **trained("16.0", 2)))
    return m


def rtx4090() -> Machine:
    """2 × RTX 4090 in a workstation."""
    driver = "570.124.04"
    m = Machine(
        "2 × RTX 4090",
        driver=driver,
        kernel="6.8.0-52-generic",
        os_version="24.04",
        os_name="Ubuntu 24.04.1 LTS",
        vendor="ASUS",
        memory_gib=128,
        available_gib=110,
        cpus=32,
        shm="size=64g",
        packages=_ubuntu_packages(driver),
        pair_level=30,
        p2p=1,
    )
    for index, address in enumerate(("0000:01:00.0", "0000:02:00.0")):
        port = f"pci0000:00/0000:00:01.{index}"
        m.gpus.append(gpu(index, address, gsp=driver, **RTX_4090))
        m.devices.append(bridge(port))
        m.devices.append(
            pci(
                f"{port}/{address}",
                device="0x2684",
                **{"class": "0x030000"},
                current_link_speed="2.5 GT/s PCIe",
                max_link_speed="16.0 GT/s PCIe",
            )
        )
        m.devices.append(
            pci(
                f"{port}/{address[:-1]}1",
                device="0x22ba",
                **{"class": "0x040300"},
                driver="snd_hda_intel",
                max_link_speed="16.0 GT/s PCIe",
            )
        )
    return m


def t4() -> Machine:
    """A cloud's virtual machine with a T4 passed through to it."""
    driver = "550.144.03"
    m = Machine(
        "T4 in a VM",
        driver=driver,
        cuda=(12, 4),
        flavour="proprietary",
        kernel="6.1.0-28-cloud-amd64",
        os_id="debian",
        os_version="12",
        os_name="Debian GNU/Linux 12 (bookworm)",
        vendor="Google",
        hypervisor=True,
        memory_gib=15,
        available_gib=13,
        cpus=4,
        shm="size=7g",
        packages={
            "cuda-drivers-550": f"{driver}-1",
            "libcuda1": f"{driver}-1",
            "nvidia-kernel-dkms": f"{driver}-1",
        },
    )
    m.files["/sys/class/dmi/id/product_name"] = "Google Compute Engine\n"
    address = "0000:00:04.0"
    m.gpus.append(gpu(0, address, gsp=driver, **T4))
    m.devices.append(
        pci(
            f"pci0000:00/{address}",
            device="0x1eb8",
            current_link_speed="2.5 GT/s PCIe",
            max_link_speed="8.0 GT/s PCIe",
            numa_node="-1",
        )
    )
    return m


def a100_mig() -> Machine:
    """4 × A100 PCIe, the first with MIG on and three instances."""
    driver = "535.230.02"
    m = Machine(
        "A100 with MIG",
        driver=driver,
        cuda=(12, 2),
        flavour="proprietary",
        kernel="5.14.0-503.15.1.el9_5.x86_64",
        os_id="rocky",
        os_version="9.5",
        os_name="Rocky Linux 9.5 (Blue Onyx)",
        vendor="Dell Inc.",
        memory_gib=512,
        available_gib=480,
        cpus=64,
        shm="size=256g",
        p2p=0,
        pair_level=40,
    )
    packages = {
        "nvidia-driver": driver,
        "nvidia-driver-cuda": driver,
        "kmod-nvidia-latest-dkms": driver,
        "nvidia-persistenced": driver,
    }
    listing = "\\n".join(f"{name} {version}-1.el9" for name, version in packages.items())
    m.files["/usr/bin/rpm"] = f"#!/bin/sh\nprintf '{listing}\\n'\n"
    m.files["/usr/bin/dnf"] = "#!/bin/sh\nexit 0\n"
    m.files["/usr/bin/nvidia-persistenced"] = "#!/bin/sh\n"
    m.services = ["/usr/bin/nvidia-persistenced"]
    for index, address in enumerate(
        ("0000:31:00.0", "0000:4b:00.0", "0000:b1:00.0", "0000:ca:00.0")
    ):
        port = f"pci0000:{int(address[5:7], 16) - 1:02x}/0000:{int(address[5:7], 16) - 1:02x}:02.0"
        m.gpus.append(gpu(index, address, gsp=driver, **A100))
        m.devices.append(bridge(port, **trained("16.0")))
        m.devices.append(
            pci(f"{port}/{address}", device="0x20b5", **trained("16.0"), numa_node=str(index // 2))
        )
    m.gpu(0).change(mig=(True, True), mig_instances=instances((3, 5, 6)))
    for minor in (0, 1, 2, 30, 31, 39, 40, 48, 49):
        m.files[f"/dev/nvidia-caps/nvidia-cap{minor}"] = ""
    return m


def instances(numbers: tuple[int, ...]) -> list[dict[str, Any]]:
    """MIG instances of two slices each."""
    return [
        {
            "gi": number,
            "uuid": f"4a5b6c7d-0000-5e1f-9a8b-00000000000{number}",
            "sms": 28,
            "mib": 19968,
        }
        for number in numbers
    ]


def container() -> Machine:
    """A container that was given one H100 of such a machine."""
    m = h100()
    m.name = "container with one H100"
    m.gpus = m.gpus[:1]
    m.devices = [device for device in m.devices if device.place]  # /sys is the host's
    m.services = []
    for path in list(m.files):
        if "fabricmanager" in path or "persistenced" in path:
            del m.files[path]
    m.packages = {}
    m.memory_gib, m.available_gib = 2048, 1900
    m.files |= {
        "/.dockerenv": "",
        f"/lib/modules/{m.kernel}/updates/dkms/nvidia.ko": None,
        f"/lib/modules/{m.kernel}/kernel/drivers/.keep": None,
        "/dev/kmsg": None,
        "/usr/bin/systemctl": None,
        "/run/systemd/system/.keep": None,
    }
    m.shm = "size=8g"
    m.environment = {"NVIDIA_VISIBLE_DEVICES": "0", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    return m


BASES = {"h100": h100, "rtx4090": rtx4090, "t4": t4, "a100-mig": a100_mig, "container": container}
