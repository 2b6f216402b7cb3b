"""What traffic between GPUs and between machines goes through: interfaces, RDMA, NCCL's settings."""

import hashlib
import os
import re
import socket
import struct

from .. import account, files
from ..facts import Facts, unavailable
from ..linux import interfaces, rdma, rdma_counters, roce

DOCUMENT = "machine"
IN_CONTAINER = True
DEADLINE = 10

SYSTEM_FILE = "/etc/nccl.conf"
# NCCL takes it where no variable names another: clouds write it for their virtual machines.
TOPOLOGY = "/var/run/nvidia-topologyd/virtualTopology.xml"
TOPOLOGIES = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")  # whose content is compared
MEMORY_PEERS = "/sys/kernel/mm/memory_peers"
ENVIRONMENT = "environment"
PREFIXES = ("NCCL_", "TORCH_NCCL_", "UCX_", "OMPI_MCA_btl", "OMPI_MCA_oob_tcp", "OMPI_MCA_pml")
NAMES = frozenset(
    (
        "GLOO_SOCKET_IFNAME TP_SOCKET_IFNAME HOROVOD_GLOO_IFACE MASTER_ADDR TORCH_DISTRIBUTED_DEBUG"
    ).split()
)
# How many machines a job has, by those who start it; or how many processes, here and in all.
_NODES = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "PET_NNODES", "NNODES", "LWS_GROUP_SIZE")
_RANKS = ("NODE_RANK", "GROUP_RANK", "LWS_WORKER_INDEX")  # of this machine, from 0 on
_PROCESSES = (
    ("WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
)
_VALUE_LIMIT = 4096  # characters
_LOCAL = re.compile(r"\|-- ([\d.]{7,15})\n +/32 host LOCAL")
_FILE_LIMIT = 1 << 20  # bytes
_WHOLE = re.compile(r"^-A ufw-user-input -s \S+ -j ACCEPT", re.M)  # every port, of some machines


def collect(context):
    facts = Facts("network probe")
    first = rdma_counters.read(context)
    facts.attempt("interfaces", interfaces.FOLDER, interfaces.interfaces, context)
    facts.attempt("rdma", rdma.FOLDER, rdma.devices, context)
    facts.attempt("libibverbs", "the loader's folders", rdma.library, context)
    opened = ["%s/%s" % (rdma.NODES, name) for name in context.names(rdma.NODES)]
    facts.put("verbs_nodes", [one for one in opened if "/uverbs" in one], rdma.NODES)
    facts.attempt("settings", "environment, nccl.conf", settings, context)
    facts.attempt("own_addresses", "/etc/hosts", own_addresses, context)
    facts.attempt("own_interface", interfaces.ROUTES, own_interface, context)
    facts.attempt("firewall", "/etc/ufw, /etc/firewalld", firewall, context)
    facts.put("nodes", nodes(context.environ), "the job's variables")
    facts.put("uptime_s", context.fact("/proc/uptime", lambda text: float(text.split()[0])))
    facts.put("memory_peers", context.names(MEMORY_PEERS), MEMORY_PEERS)
    devices = facts.get("rdma")
    if devices:
        roce.add(context, devices)
        facts.put("counted_s", rdma_counters.add(context, devices, first), rdma.FOLDER)
    return facts


def settings(context):
    """The settings that count: the environment's before the user's file, and that before the system's."""
    given = [(name, value, ENVIRONMENT) for name, value in context.environ.items()]
    own = context.environ.get("NCCL_CONF_FILE")
    for path in (own or account.home(context) + "/.nccl.conf", SYSTEM_FILE):
        lines = [line.partition("=") for line in context.text(path).splitlines()]
        given += [(name.strip(), value.strip(), path) for name, sign, value in lines if sign]
    if os.path.exists(context.path(TOPOLOGY)):
        given.append(("NCCL_TOPO_FILE", TOPOLOGY, "NCCL's default"))
    found = {}
    for name, value, source in given:
        if name not in found and (name in NAMES or name.startswith(PREFIXES)):
            setting = {"name": name, "value": value[:_VALUE_LIMIT], "source": source}
            found[name] = dict(setting, **_of_file(context, name, value))
    return [found[name] for name in sorted(found)]


def _of_file(context, name, value):
    """What is to be known of the file that a setting names, if it names any."""
    if value.startswith("/") and not os.path.exists(context.path(value)):
        return {"missing": True}
    try:
        content = files.read(context.path(value), _FILE_LIMIT) if name in TOPOLOGIES else b""
    except OSError:
        content = b""
    return {"digest": hashlib.sha256(content).hexdigest()[:12]} if content else {}


def own_addresses(context):
    """The addresses that /etc/hosts has for this machine's own name."""
    name = context.read("/proc/sys/kernel/hostname").strip()
    lines = [line.partition("#")[0].split() for line in context.text("/etc/hosts").splitlines()]
    return [words[0] for words in lines if name in words[1:] or name.split(".")[0] in words[1:]]


def own_interface(context):
    """The interface in whose network the first of these lies, by its route; "" where no interface has it."""
    given = [one for one in own_addresses(context) if one.count(".") == 3]
    if not given:
        return unavailable("absent", "/etc/hosts has no such address")
    local = _LOCAL.findall(context.text("/proc/net/fib_trie"))
    if local and given[0] not in local:
        return ""
    (address,) = struct.unpack("=I", socket.inet_aton(given[0]))
    networks = []
    for line in context.read(interfaces.ROUTES).splitlines()[1:]:
        words = line.split()
        network, gateway, mask = (int(words[column], 16) for column in (1, 2, 7))
        if not gateway and mask and address & mask == network:
            networks.append((bin(mask).count("1"), words[0]))
    return max(networks)[1] if networks else unavailable("absent", "in none of its networks")


def firewall(context):
    """The firewall that keeps other machines out by default: "ufw", "firewalld"; "" where none does."""
    policy = context.text("/etc/default/ufw")
    closed = not re.search(r'^DEFAULT_INPUT_POLICY="?ACCEPT', policy, re.M)
    if re.search(r"^ENABLED=yes", context.text("/etc/ufw/ufw.conf"), re.M) and closed:
        return "" if _WHOLE.search(context.text("/etc/ufw/user.rules")) else "ufw"
    settings = context.text("/etc/firewalld/firewalld.conf")
    runs = any(name == "firewalld" for name in _names_of_processes(context)) if settings else False
    return "firewalld" if runs and "DefaultZone=trusted" not in settings else ""


def _names_of_processes(context):
    numbers = [name for name in context.names("/proc") if name.isdecimal()]
    return [context.text("/proc/%s/comm" % number).strip() for number in numbers]


def nodes(environ):
    """How many machines at least the job that this runs in has; 1 where processes of one machine are all."""
    for name in _NODES:
        if environ.get(name, "").isdecimal():
            return int(environ[name])
    for every, local in _PROCESSES:
        counts = environ.get(every, ""), environ.get(local, "")
        if all(count.isdecimal() and int(count) for count in counts):
            return -(-int(counts[0]) // int(counts[1]))
    ranks = [int(environ[name]) for name in _RANKS if environ.get(name, "").isdecimal()]
    if any(ranks):
        return max(ranks) + 1
    return unavailable("absent", "no variable of a job's")
