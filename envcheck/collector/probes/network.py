"""What traffic between GPUs and between machines goes through: interfaces, RDMA, NCCL's settings."""

from .. import account
from ..facts import Facts, unavailable
from ..linux import interfaces, rdma

DOCUMENT = "machine"
IN_CONTAINER = True
DEADLINE = 5

SYSTEM_FILE = "/etc/nccl.conf"
ENVIRONMENT = "environment"
NAMES = frozenset(
    (
        "NCCL_SOCKET_IFNAME NCCL_SOCKET_FAMILY NCCL_IB_HCA NCCL_IB_DISABLE NCCL_IB_GID_INDEX "
        "NCCL_IB_CUDA_SUPPORT NCCL_P2P_DISABLE NCCL_P2P_LEVEL NCCL_SHM_DISABLE NCCL_NET "
        "NCCL_NET_GDR_LEVEL NCCL_IB_GDR_LEVEL NCCL_DMABUF_ENABLE "
        "GLOO_SOCKET_IFNAME TP_SOCKET_IFNAME HOROVOD_GLOO_IFACE UCX_NET_DEVICES "
        "OMPI_MCA_btl_tcp_if_include OMPI_MCA_btl_tcp_if_exclude OMPI_MCA_oob_tcp_if_include"
    ).split()
)
# How many machines a job has, by those who start it; or how many processes, here and in all.
_NODES = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "PET_NNODES")
_PROCESSES = (
    ("WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
)
_VALUE_LIMIT = 4096  # characters


def collect(context):
    facts = Facts("network probe")
    facts.attempt("interfaces", interfaces.FOLDER, interfaces.interfaces, context)
    facts.attempt("rdma", rdma.FOLDER, rdma.devices, context)
    facts.attempt("libibverbs", "the loader's folders", rdma.library, context)
    opened = ["%s/%s" % (rdma.NODES, name) for name in context.names(rdma.NODES)]
    facts.put("verbs_nodes", [one for one in opened if "/uverbs" in one], rdma.NODES)
    facts.attempt("settings", "environment, nccl.conf", settings, context)
    facts.put("nodes", nodes(context.environ), "the job's variables")
    return facts


def settings(context):
    """The settings that count: the environment's before the user's file, and that before the system's."""
    found = {
        name: {"name": name, "value": value[:_VALUE_LIMIT], "source": ENVIRONMENT}
        for name, value in sorted(context.environ.items())
        if name in NAMES
    }
    own = context.environ.get("NCCL_CONF_FILE")
    for path in (own or account.home(context) + "/.nccl.conf", SYSTEM_FILE):
        for line in context.text(path).splitlines():
            name, sign, value = line.partition("=")
            if sign and name.strip() in NAMES:
                setting = {
                    "name": name.strip(),
                    "value": value.strip()[:_VALUE_LIMIT],
                    "source": path,
                }
                found.setdefault(name.strip(), setting)
    return [found[name] for name in sorted(found)]


def nodes(environ):
    """How many machines the job that this runs in has; 1 where processes of one machine are all."""
    for name in _NODES:
        if environ.get(name, "").isdecimal():
            return int(environ[name])
    for every, local in _PROCESSES:
        counts = environ.get(every, ""), environ.get(local, "")
        if all(count.isdecimal() and int(count) for count in counts):
            return -(-int(counts[0]) // int(counts[1]))
    return unavailable("absent", "no variable of a job's")
