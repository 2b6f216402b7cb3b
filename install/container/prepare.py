"""From a request to an image, an engine and a plan: everything that happens before anything is touched."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack

import msgspec

from ...exit_codes import CouldNotLook
from ...facts.snapshot import Snapshot
from ...facts.view import known
from .. import survey, validate
from ..catalogue import containers
from ..engine import EngineImage
from ..engines import choose as engine_choice
from ..engines import engine_storage
from ..engines.choose import EngineChoice
from ..fit.disk_space import DiskSpace
from ..fit.machine import machine_of
from ..fit.models import ImageChoice
from ..fit.select import choose_image
from ..images import image_lock
from ..images.archive import ImageArchive
from ..plan import image_planning
from ..plan.models import ImagePlan
from ..registry import reference
from ..registry.image import Image, RegistryAccess
from ..request import Request
from ..store import fetch_rate
from ..store.fetch_rate import Meter
from ..store.progress import Fetching
from ..transaction import guard, layout
from ..transaction.layout import Root

Say = Callable[[str], None]


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """All that an installation or a plan needs.

    held: the engine has the image already. access: to the registry, as far as the engine has to be told.
    archive: what the engine loads, in place of a registry.
    """

    request: Request
    choice: ImageChoice
    snapshot: Snapshot
    image: Image
    engine: EngineChoice
    held: bool
    access: RegistryAccess
    meter: Meter
    archive: ImageArchive | None = None

    @property
    def root(self) -> Root:
        return layout.root_of(self.request, name_of(self.choice, self.image))

    def plan(self) -> ImagePlan:
        """Raises UsageError for a path that cannot be, or is somebody else's; Cannot for want of room."""
        root = self.root
        guard.look(root)
        wanted = layout.image_version_id(
            release_of(self.choice, self.image),
            self.choice.stack.flavour or "image",
            image_lock.digest(self.image),
        )
        here = image_planning.ImageSurroundings(
            directory=str(root.path),
            version=layout.free_id(root, wanted),
            place=self._room(str(root.path)),
            storage=self._storage(),
            temporary=self._room(str(root.path)),
            held=self.held,
            remarks=self.engine.remarks,
            offline=self.archive is not None,
            rate=fetch_rate.read(),
        )
        return image_planning.plan(
            self.choice,
            self.image,
            engine=engine_label(self.engine),
            wiring=wiring_sentence(self.engine),
            surroundings=here,
        )

    def _storage(self) -> DiskSpace | None:
        path = known(self.engine.engine.storage_path)
        remote = known(self.engine.engine.remote) is True
        return None if path is None or remote or self.engine.files else self._room(path)

    def _room(self, path: str) -> DiskSpace:
        return survey.room_for(path, self.snapshot)


def prepare(
    request: Request, jobs: int, say: Say, fetching: Callable[[Fetching], None], exits: ExitStack
) -> Prepared:
    """Look, choose, and hold the tag to a digest. ``exits`` closes what is opened.

    Only from the main thread.
    """
    validate.check(request)
    say("looking at this machine")
    collected = survey.collecting()
    # Which take longer to import than all the rest: meanwhile the collector runs.
    from ..network.session import Session
    from ..registry import client as registry

    session = exits.enter_context(Session(request.allow_insecure))
    meter = Meter(fetching)
    snapshot = collected.result().snapshot
    machine = machine_of(snapshot).architecture
    if not machine:
        raise CouldNotLook(
            "this machine's architecture is not known, and so not which image is for it"
        )
    archive = ImageArchive(request.offline, machine) if request.offline else None
    wish = request if archive is None else _of_archive(request, archive.image)
    choice = choose_image(wish, snapshot)
    engine = engine_choice.choose(request.engine, snapshot)
    access = RegistryAccess()
    if archive is not None:
        image = archive.image
    else:
        say(f"asking for {choice.candidate.release.reference}")
        asked = reference.parse(choice.candidate.release.reference)
        image = registry.resolve(session, asked, machine)
        access = registry.access(session, asked)
    held = engine_storage.has(held_as(engine, image))
    if not held:  # an engine with room for it, where one that comes first has none
        needed = image_planning.unpacked_bytes(image) >> 20
        other = engine_choice.choose(request.engine, snapshot, needed)
        held = other.name != engine.name and engine_storage.has(held_as(other, image))
        engine = other
    return Prepared(
        request=request,
        choice=choice,
        snapshot=snapshot,
        image=image,
        engine=engine,
        held=held,
        access=access,
        meter=meter,
        archive=archive,
    )


def held_as(engine: EngineChoice, image: Image, file: str = "", tag: str = "") -> EngineImage:
    """What the engine will hold. file: the image file of an engine that keeps no images."""
    return EngineImage(
        engine=engine.name,
        program=engine.program,
        image_id=file if engine.files else image.config.digest,
        tag="" if engine.files else tag,
        reference=image.pinned,
        before=False,
    )


def name_of(choice: ImageChoice, image: Image) -> str:
    """The environment's: the flavour's, or "image-" and the last word of an own image's name."""
    if choice.stack.name != containers.OWN:
        return choice.stack.name
    word = re.sub(r"[^A-Za-z0-9._-]", "-", image.name.rpartition("/")[2])
    return f"{containers.OWN}-{word}"


def release_of(choice: ImageChoice, image: Image) -> str:
    return choice.candidate.release.release or "untagged"


def engine_label(engine: EngineChoice) -> str:
    """ "podman 4.3.1"."""
    version = known(engine.engine.server_version) or known(engine.engine.version)
    return f"{engine.name} {version}" if version else engine.name


def wiring_sentence(engine: EngineChoice) -> str:
    return engine.wiring.sentence if engine.wiring.kind != "none" else ""


def _of_archive(request: Request, image: Image) -> Request:
    """The wish that an archive stands for: NVIDIA's release where it holds one, whose needs are known."""
    found = containers.by_reference(image.reference)
    if found is None:
        return msgspec.structs.replace(request, image=image.reference)
    stack, release = found
    return msgspec.structs.replace(request, flavour=stack.flavour, release=release.release)
