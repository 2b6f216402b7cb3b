"""What checks read a Snapshot with: the view, its facts, and the reasons why one cannot be judged."""

from ..facts.base import NOT_COLLECTED, Maybe, Probe, Unavailable, is_absent, known
from ..facts.gpu import CudaDriver, Gpu, Nvml
from ..facts.kernel import Kernel, KernelEvent
from ..facts.missing import CannotJudge, CouldNotRun, NotKnown, Skip
from ..facts.pci import PciDevice
from ..facts.target import FRAMEWORKS, Distribution, Framework, Library
from ..facts.view import SnapshotView, fact, facts_of, facts_or, is_container, need, or_else, show
