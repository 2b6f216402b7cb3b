"""DALI: a JPEG and a PNG decoded, by its CPU pipeline and, on a GPU, by nvJPEG.

What comes out is held against the pixels that the images were made of. The CPU's pipeline is the control of
the GPU's.
"""

import importlib

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
    on_gpu = params["device"] == "gpu"
    for device in ("gpu", "cpu") if on_gpu else ("cpu",):
        with tell.trial(device, control=on_gpu and device == "cpu") as trial:
            trial["version"] = dali.__version__
            output = _decoded(fn, device)
            trial["type"] = type(output).__name__
            for name, rows in zip(("jpeg", "png"), _rows(output)):
                trial[name + "_difference"] = images.difference(rows, images.pixels())


def _decoded(fn, device):
    """Both images, as DALI's pipeline gives them."""
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
        how = "mixed" if device == "gpu" else "cpu"
        pipeline.set_outputs(decode(encoded, device=how, output_type=types.RGB))
    pipeline.build()
    return pipeline.run()[0]


def _rows(output):
    """[image as lists] of a TensorListCPU or TensorListGPU."""
    numpy = importlib.import_module("numpy")
    if hasattr(output, "as_cpu"):
        output = output.as_cpu()
    return [numpy.array(output.at(place)).tolist() for place in range(len(output))]
