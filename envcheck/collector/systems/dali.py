"""DALI: a JPEG and a PNG decoded and made smaller, by its CPU pipeline and, on a GPU, by nvJPEG.

What comes out is held against PIL, or against the pixels that the images were made of. The CPU's pipeline is
the control of the GPU's.
"""

import importlib
import io

from .running import records
from .shared import dali_images as images

SYSTEM = "dali"
MODULES = ("nvidia.dali",)
DEADLINE = 25.0


def run(_framework, params, tell):
    try:
        dali = importlib.import_module("nvidia.dali")
    except Exception as error:  # whatever its libraries miss
        raise records.CouldNotRun("import nvidia.dali: %s" % error)
    try:
        fn = importlib.import_module("nvidia.dali.fn")
    except ImportError:
        raise records.NotApplicable("DALI %s has no functional API" % dali.__version__)
    reference = _Reference()
    on_gpu = params["device"] == "gpu"

    def both(trial, device):
        trial["version"] = dali.__version__
        reference.tell(trial)
        outputs = _run(fn, device)
        trial["type"] = type(outputs[0]).__name__
        decoded, smaller = (_rows(one) for one in outputs)
        trial["jpeg_difference"] = _far(images.difference(decoded[0], reference.jpeg))
        trial["png_difference"] = _far(images.difference(decoded[1], images.pixels()))
        trial["resize_difference"] = max(
            _far(images.difference(small, images.halved(large)))
            for small, large in zip(smaller, decoded)
        )

    if on_gpu:
        with tell.trial("gpu") as trial:
            both(trial, "gpu")
    with tell.trial("cpu", control=on_gpu) as trial:
        both(trial, "cpu")


def _run(fn, device):
    """(decoded, smaller) of a batch with both images."""
    numpy = importlib.import_module("numpy")
    types = importlib.import_module("nvidia.dali.types")
    batch = [numpy.frombuffer(data, dtype=numpy.uint8) for data in (images.JPEG, images.PNG)]
    pipeline = importlib.import_module("nvidia.dali.pipeline").Pipeline(
        batch_size=len(batch),
        num_threads=1,
        device_id=0 if device == "gpu" else None,
        exec_async=False,
        exec_pipelined=False,
        prefetch_queue_depth=1,
    )
    decode = fn.decoders.image if hasattr(fn, "decoders") else fn.image_decoder
    with pipeline:
        encoded = fn.external_source(source=lambda: batch, device="cpu")
        decoded = decode(
            encoded, device="mixed" if device == "gpu" else "cpu", output_type=types.RGB
        )
        smaller = fn.resize(
            decoded,
            device=device,
            resize_x=images.WIDTH // 2,
            resize_y=images.HEIGHT // 2,
            interp_type=types.INTERP_TRIANGULAR,
        )
        pipeline.set_outputs(decoded, smaller)
    pipeline.build()
    return pipeline.run()


def _rows(output):
    """[image as lists] of a TensorListCPU or TensorListGPU."""
    numpy = importlib.import_module("numpy")
    if hasattr(output, "as_cpu"):
        output = output.as_cpu()
    return [numpy.array(output.at(place)).tolist() for place in range(len(output))]


def _far(difference):
    return 256.0 if difference is None else difference


class _Reference(object):
    """What the JPEG must be: as PIL decodes it, else as it was before it was encoded."""

    def __init__(self):
        self.name, self.off_by = "its own pixels", images.JPEG_IS_OFF_BY
        self.jpeg = images.pixels()
        try:
            version = importlib.import_module("PIL").__version__
            decoded = (
                importlib.import_module("PIL.Image").open(io.BytesIO(images.JPEG)).convert("RGB")
            )
            points = [
                [decoded.getpixel((x, y)) for x in range(images.WIDTH)]
                for y in range(images.HEIGHT)
            ]
            self.jpeg, self.name, self.off_by = points, "PIL %s" % version, 0
        except Exception:  # it is not there, or has no JPEG
            return

    def tell(self, trial):
        trial["reference"] = self.name
        trial["reference_off_by"] = self.off_by
