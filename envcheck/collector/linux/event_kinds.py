"""By which words a line of the kernel log is known to be about a GPU, and of which kind it then is."""

import re

# Of each kind: a word, and what comes somewhere behind it. In one pattern, "NVRM:.*failed" would look through
# the rest of the line at each "NVRM:". The first that fits counts.
KINDS = (
    ("driver-load", "NVRM:", re.compile(r"loading NVIDIA UNIX ")),
    ("fallen-off-bus", "NVRM:", re.compile(r"fallen off the bus")),
    (
        "module-rejected",
        "nvidia",
        re.compile(r"Key was rejected by service|Required key not available"),
    ),
    (
        "module-rejected",
        "Loading of ",
        re.compile(r"(?:unsigned module|module with un\w{1,20} (?:key|hash|crypto)) is rejected"),
    ),
    ("module-rejected", "Lockdown: ", re.compile(r"[Uu]nsigned module(?: loading)? is restricted")),
    (
        "module-error",
        "",
        re.compile(
            r"^nvidia[\w-]*: (?:version magic|Unknown symbol|disagrees about version of symbol"
            r"|exports duplicate symbol|module verification failed|Invalid module|unknown relocation"
            r"|module using GPL-only symbols)"
        ),
    ),
    (
        "nvrm",
        "NVRM:",
        re.compile(
            r"(?:RmInitAdapter|rm_init_adapter) failed|Can't find an IRQ|already bound to"
            r"|API mismatch|PCI I/O region assigned to your NVIDIA device"
            r"|requires use of the NVIDIA open kernel modules|not supported by open nvidia\.ko"
            r"|not supported by the (?:\d[\d.]{2,20} )?NVIDIA|Legacy drivers"
            r"|No NVIDIA (?:GPU|devices|graphics adapter)"
            r"|probe routine (?:failed|was not called)|necessary power cables connected"
            r"|only ready for use on Data Center GPUs|No firmware image found"
            r"|Failed to copy vbios to system memory|request_mem_region failed"
            r"|This is a 64-bit BAR|re-allocate BAR1"
        ),
    ),
    (
        "nvrm",
        "",
        re.compile(
            r"^nvidia(?: [0-9a-f:.]+)?: (?:probe (?:of \S+ failed|with driver nvidia failed)"
            r"|Direct firmware load for nvidia/)"
        ),
    ),
    (
        "gsp",
        "NVRM:",
        re.compile(
            r"Cannot initialize GSP|GSP_FW init failed|GspRmControl failed"
            r"|WPR2 already up|(?:[Ff]ailed|[Uu]nable) to [a-z -]{2,40} GSP"
            r"|gsp_\w{1,30}\.bin failed|GSP[\w -]{0,40} (?:failed to|did not|has failed|heartbeat)"
        ),
    ),
    (
        "reset-required",
        "NVRM:",
        re.compile(
            r"NV_ERR_RESET_REQUIRED|(?:likely|may) needs? to be reset|GPU (?:requires|needs) (?:a )?reset"
            r"|GPU is likely in a bad state"
        ),
    ),
    (
        "gpu-lost",
        "NVRM:",
        re.compile(
            r"NV_ERR_GPU_IS_LOST|GPU (?:is|was|has been) lost|[ :]has been lost|lost its memory"
        ),
    ),
    (
        "nvlink",
        "NVRM:",
        re.compile(
            r"(?i)postRxDet\w{0,20}Link.{0,60}failed|failed to update Rx Detect Link mask"
            r"|failed to train|training (?:has )?failed|link training (?:error|failure|timed out)"
        ),
    ),
    ("stuck", "NVRM:", re.compile(r"watchdog found GPU \d+ stuck")),
    ("oops", "RIP: ", re.compile(r"^\w{1,8}:[\w.+/]{1,120} \[nvidia(?:_\w{1,20})?\]")),
    (
        "stuck",
        "INFO: task ",
        re.compile(r"^(?:nvidia|nv_queue)[\w-]{0,30}:\d+ blocked for more than"),
    ),
    (
        "stuck",
        "soft lockup - CPU#",
        re.compile(r"stuck for \d+s! \[(?:irq/\d+-)?(?:nvidia|nv_queue)"),
    ),
    ("read-only", "", re.compile(r"[Rr]emounting filesystem read-only")),
    ("out-of-memory", "", re.compile(r"^(?:Memory cgroup out|Out) of memory: Kill")),
    ("out-of-memory", "__vm_enough_memory: ", re.compile(r"not enough memory")),
    ("file-server", "", re.compile(r"^(?:nfs: server |CIFS: VFS: ).{1,120}(?:respond|OK$)")),
    ("uvm", "nvidia-uvm", re.compile(r"global fatal error")),
    (
        "peermem",
        "",
        re.compile(
            r"^nv\w{0,10}[-_](?:peer)?mem[ :].{0,60}?(?:invalid (?:context|page_table)"
            r"|Unknown symbol ib_)"
        ),
    ),
    ("modeset", "nvidia-modeset:", re.compile(r"ERROR: ")),
    (
        "pcie",
        "",
        re.compile(
            r"^[\w-]{1,40} [0-9a-f:]{7,13}\.[0-7]: (?:AER: |PCIe Bus Error: |DPC: "
            r"|BAR \d[: ].{0,80}no space|pciehp: Slot\([\w-]{1,20}\): Link Down"
            r"|(?:Unable to|Refused to|can't) change power state)"
        ),
    ),
    (
        "iommu",
        "",
        re.compile(
            r"^(?:DMAR: \[[\w -]{1,40}\] (?:Request device|PASID)"
            r"|[\w-]{1,40} [0-9a-f:]{7,13}\.[0-7]: AMD-Vi: Event logged \[IO_PAGE_FAULT)"
        ),
    ),
    (
        "machine-check",
        "[Hardware Error]: ",
        re.compile(r"[Uu]ncorrected|Deferred error|event severity: (?:fatal|recoverable)"),
    ),
    ("processor-hot", "mce: CPU", re.compile(r"temperature (?:is )?above threshold")),
    ("suspend", "", re.compile(r"^PM: (?:suspend|hibernation:?) (?:exit|hibernation exit)")),
    ("ibt", "Missing ENDBR", re.compile(r"\[nvidia")),
    (
        "driver-error",
        "NVRM:",
        re.compile(
            r"(?i)fail|error|unable|can(?:not|'t)|invalid|time(?:d )?out|mismatch|incompatible"
            r"|unsupported|not supported|unexpected|missing|assert"
        ),
    ),
    (
        "driver-error",
        "",
        re.compile(
            r"(?i)^(?:nv_?peer_?mem|nvidia[-_](?:peermem|fs|uvm|nvswitch\d{0,2})|gdrdrv|nova_?(?:core|drm)?)"
            r"[: ].{0,200}?(?:fail|error|unable|cannot|invalid|timed out|unknown symbol|GPL-)"
        ),
    ),
)
KERNELS_OWN = ("pcie", "iommu")  # what the kernel writes, not the driver: these name any device
# Most lines of a log have none of these words: they are not looked at any further.
WORDS = re.compile(
    rb"NVRM|nvidia|PM: suspend|PM: hiber|is rejected|unsigned module|AER: |PCIe Bus Error|DPC: |Link Down"
    rb"|nv_mem|nv_?peer_?mem|gdrdrv|nova|change power state|no space|RIP: |blocked for more than"
    rb"|soft lockup|DMAR: \["
    rb"|ut of memory: Kill|above threshold|__vm_enough_memory|nfs: server|CIFS: VFS"
    rb"|filesystem read-only|IO_PAGE_FAULT|Hardware Error|Missing ENDBR"
)


def kind_of(text):
    """The kind of event that a message is, or None."""
    return next((kind for kind, word, words in KINDS if words.search(_after(word, text))), None)


def _after(word, text):
    """What comes after the word; "" where it does not come."""
    return text.partition(word)[2] if word else text
