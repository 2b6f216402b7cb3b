"""The container mode's stages: an image of NVIDIA's, or one's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ... import collection, json_text
from ...collection import Collected, Kernels
from ...exit_codes import Cannot, CouldNotLook, UsageError
from ...facts.base import known
from .. import survey, validate
from ..catalogue import containers
from ..engines import choose as engine_choice
from ..engines import engine_storage, inside, skopeo
from ..engines.choose import EngineChoice
from ..fit import image_driver
from ..fit.disk_space import DiskSpace, space_at
from ..fit.machine import machine_of
from ..fit.models import ImageChoice
from ..fit.select import choose_image
from ..plan import image_planning
from ..plan.models import ImagePlan
from ..registry import documents, reference
from ..registry.image import Blob, Image
from ..request import InstallOptions, Request
from ..start import start_file
from ..survey import VerifyOptions
from ..transaction import guard, layout
from ..transaction.interfaces import Artifact
from ..transaction.layout import Version
from .builder import ImageBuilder, ResolvedImage

if TYPE_CHECKING:
    from ..mode import Reporter

LOOKED_INTO = ("BND-001",)  # a container that could not be looked into is not verified


class ImageMode:
    """Holds what the stages share: the Snapshot."""

    def __init__(self, request: Request, options: InstallOptions, reporter: Reporter) -> None:
        """Raises CouldNotLook."""
        self.request = request
        self._reporter = reporter
        self._options = options
        reporter.say("looking at this machine")
        self.snapshot = survey.collecting().result().snapshot
        self.architecture = machine_of(self.snapshot).architecture
        if not self.architecture:
            raise CouldNotLook(
                "this machine's architecture is not known, and so not which image is for it"
            )

    def fit(self) -> ImageChoice:
        return choose_image(self.request, self.snapshot)

    def resolve(self, choice: ImageChoice) -> ResolvedImage:
        engine = engine_choice.choose(self.request.engine, self.snapshot)
        named = reference.parse(choice.candidate.release.reference)
        options = skopeo.options_of(named, self.request.allow_insecure)
        if self.request.held:
            image = self._stored(str(named), engine)
        else:
            program = skopeo.program(self.snapshot)
            self._reporter.say(f"asking for {named}")
            image = skopeo.resolve(program, named, self.architecture, options, engine.name)
        held = engine_storage.find(engine.program, image.config.digest) is not None
        if not held:  # an engine with room for it, where one that comes first has none
            needed = image_planning.unpacked_bytes(image) >> 20
            other = engine_choice.choose(self.request.engine, self.snapshot, needed)
            if other.name != engine.name:
                engine = other
                held = engine_storage.find(other.program, image.config.digest) is not None
        image_driver.check_driver(image, self.snapshot)
        return ResolvedImage(
            choice=choice,
            image=image,
            engine=engine,
            held=held,
            options=options,
        )

    def _stored(self, named: str, engine: EngineChoice) -> Image:
        """The same as the engine has it: of an archive, or pulled before."""
        stored = engine_storage.find(engine.program, named)
        if stored is None:
            raise UsageError(
                f"{engine.name} has no image {named}",
                f"{engine.name} load --input FILE brings one out of an archive, {engine.name} images lists"
                " them, and --engine names another engine",
            )
        wanted = documents.architecture_of(self.architecture)
        if stored.architecture != wanted:
            raise Cannot(f"{named} is for {stored.architecture}, and this machine is {wanted}")
        digest = stored.digest or stored.id
        return Image(
            reference=named,
            digest=digest,
            manifest=Blob(digest=digest, size=0),
            config=Blob(digest=stored.id, size=0),
            layers=[],
            architecture=stored.architecture,
            entrypoint=stored.entrypoint,
            user=stored.user,
            environment=stored.environment,
        )

    def plan(self, resolved: ResolvedImage) -> ImagePlan:
        choice, image, engine = resolved.choice, resolved.image, resolved.engine
        root = layout.root_of(self.request, environment_name(choice, image))
        guard.look(root)
        wanted = layout.version_id(
            choice.candidate.release.release,
            choice.stack.flavour or "image",
            image.manifest.sha256,
        )
        validate.check_path(str(root.path), wanted, self.request)
        here = image_planning.ImagePlanInputs(
            directory=str(root.path),
            version=layout.free_id(root, wanted),
            engine=engine.label,
            wiring=engine.wired,
            place=space_at(root.path),
            storage=self._storage(engine),
            held=resolved.held,
            remarks=engine.remarks,
        )
        return image_planning.plan(choice, image, here)

    def artifact(self, resolved: ResolvedImage) -> Artifact:
        image = resolved.image
        text = json_text.render({"schema": 1, "image": image})
        return Artifact(file_name="image.json", text=text, digest=image.manifest.sha256)

    def builder(self, resolved: ResolvedImage, plan: ImagePlan) -> ImageBuilder:
        return ImageBuilder(resolved, plan, self.snapshot, self._reporter)

    def verify_options(self, resolved: ResolvedImage) -> VerifyOptions:
        return VerifyOptions(
            self._look,
            must_pass=[*LOOKED_INTO, *resolved.choice.stack.must_pass],
            allow_no_gpu=self.request.allow_no_gpu,
        )

    def _look(self, directory: Path) -> Collected:
        """At a version, from inside a fresh container."""
        start = start_file.read(Version(directory).start)
        return collection.collect(
            inside=inside.of_start(start),
            kernels=Kernels(),
            deadline=self._options.deadline,
            progress=self._reporter.looking,
            seen=survey.unchanged(self.snapshot),
        )

    def _storage(self, engine: EngineChoice) -> DiskSpace | None:
        path = known(engine.engine.storage_path)
        remote = known(engine.engine.remote) is True
        return None if path is None or remote else space_at(path)


def environment_name(choice: ImageChoice, image: Image) -> str:
    """The flavour's, or "image-" and an own image's name without its registry: "image-team-tf"."""
    if choice.stack.name != containers.OWN:
        return choice.stack.name
    path = image.name.partition("/")[2].removeprefix("library/")
    return f"{containers.OWN}-{re.sub(r'[^A-Za-z0-9._-]', '-', path)}"
