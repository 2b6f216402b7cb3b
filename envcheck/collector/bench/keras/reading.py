"""Images that are read while it trains: through tf.data, or through DALI's plugin for TensorFlow."""

import importlib
import os
import time

from ...kernels.failures import NotSupported
from .. import image_folder
from ..models import IMAGE_CLASSES, IMAGE_SIDE
from . import graphs
from .training import KerasTraining, compiled

_SECONDS = 1.0  # that each of the two rates is taken for
_FEWEST, _STEPS = 2, 200
_THREADS = 4


class ReadingTraining(KerasTraining):
    """A Training (collector/bench/__init__.py) whose samples come from files."""

    def _prepare(self):
        row = self._row
        if row["together"] or not row["train"] or row["model"] != "resnet50":
            raise NotSupported("images are read for resnet50 alone, trained on one GPU")
        if not self._place.folder:
            raise ValueError("no folder of images is given")

    def _traced(self):
        tf, row = self._tf, self._row
        side = row["image"] or IMAGE_SIDE
        make = {"tf.data": _by_tf_data, "dali": _by_dali}[row["data"]]
        images = make(tf, row, self._place, side, IMAGE_CLASSES)
        if self._place.device == "gpu" and row["data"] == "tf.data":
            images = images.apply(tf.data.experimental.prefetch_to_device(self._device))
        self._images = iter(images)
        self._function = compiled(tf, self._train, row["compiled"])
        return lambda: self._function(*next(self._images))

    def _train(self, inputs, targets):
        # DALI has the classes in a column.
        return self.train([inputs], [self._tf.reshape(targets, [-1])])

    def evidence(self):
        self._example = next(self._images)
        told = KerasTraining.evidence(self)
        comes, takes = self._comes(), self._takes()
        told.update(
            input_rate=self._row["batch"] / comes,
            resident_rate=self._row["batch"] / takes,
            input_seconds_share=comes / (comes + takes),
        )
        return told

    def graph(self):
        if self._row["compiled"]:
            return graphs.compiled(self._function, *self._example)
        return graphs.ran(self._watched, self._function, *self._example)

    def _comes(self):
        """The seconds that a batch takes to come, where nothing is trained."""
        return _seconds(lambda: next(self._images), lambda: next(self._images)[1].numpy())

    def _takes(self):
        """The seconds that a step takes, with a batch that is there already."""

        def step():
            self._last = self._function(*self._example)
            self._ran += 1

        def wait():
            self._applied = self._scaling.applied()

        return _seconds(step, wait)


def _seconds(do, wait):
    """Of one, when done again and again. wait(): until all is done."""
    began = time.monotonic()
    do()
    wait()
    one = max(time.monotonic() - began, 1e-6)
    number = int(min(_STEPS, max(_FEWEST, _SECONDS / one)))
    began = time.monotonic()
    for _each in range(number):
        do()
    wait()
    return max((time.monotonic() - began) / number, 1e-9)


def _by_tf_data(tf, row, place, side, classes):
    """As ImageNet is read: a part of each image is cut out, resized, and mirrored by chance."""
    tuned = getattr(tf.data, "AUTOTUNE", None) or tf.data.experimental.AUTOTUNE  # 2.4
    paths, numbers = zip(*image_folder.found(place.folder, classes))
    files = tf.data.Dataset.from_tensor_slices((list(paths), tf.constant(numbers, dtype=tf.int64)))
    files = files.shuffle(len(paths), seed=row["seed"]).repeat()

    def read(path, number):
        return _cut(tf, tf.io.read_file(path), side), number

    images = files.map(read, num_parallel_calls=tuned)
    return images.batch(row["batch"], drop_remainder=True).prefetch(tuned)


def _cut(tf, data, side):
    """The pixels of an encoded image, as numbers around zero."""
    whole = lambda: tf.io.decode_image(data, channels=3, expand_animations=False)  # noqa: E731
    is_jpeg = tf.io.is_jpeg(data)
    shape = tf.cond(is_jpeg, lambda: tf.io.extract_jpeg_shape(data), lambda: tf.shape(whole()))
    begin, size, _box = tf.image.sample_distorted_bounding_box(
        shape,
        tf.zeros([1, 0, 4]),
        area_range=image_folder.AREA,
        aspect_ratio_range=image_folder.RATIO,
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.stack([begin[0], begin[1], size[0], size[1]])
    image = tf.cond(
        is_jpeg,
        lambda: tf.io.decode_and_crop_jpeg(data, window, channels=3),
        lambda: tf.slice(whole(), begin, size),
    )
    image = tf.image.resize(tf.reshape(image, [size[0], size[1], 3]), [side, side])
    image = tf.image.random_flip_left_right(image)
    return (image - tf.constant(image_folder.MEANS)) / tf.constant(image_folder.DEVIATIONS)


def _by_dali(tf, row, place, side, classes):
    """The same by DALI, on the GPU where there is one. Its reader takes a class from each folder's name."""
    try:
        plugin = importlib.import_module("nvidia.dali.plugin.tf")
        fn = importlib.import_module("nvidia.dali.fn")
        types = importlib.import_module("nvidia.dali.types")
        pipelines = importlib.import_module("nvidia.dali.pipeline")
    except Exception as error:  # the plugin's library is built for some TensorFlows alone
        raise NotSupported("no DALI for this TensorFlow: %s" % error)
    gpu = place.device == "gpu"
    device = "gpu" if gpu else "cpu"
    pipeline = pipelines.Pipeline(
        batch_size=row["batch"],
        num_threads=min(_THREADS, os.cpu_count() or 1),
        device_id=0 if gpu else None,
        seed=row["seed"],
    )
    paths, numbers = zip(*image_folder.found(place.folder, classes))
    with pipeline:
        encoded, labels = fn.readers.file(
            files=list(paths), labels=list(numbers), random_shuffle=True, name="reader"
        )
        images = fn.decoders.image_random_crop(
            encoded,
            device="mixed" if gpu else "cpu",
            output_type=types.RGB,
            random_area=list(image_folder.AREA),
            random_aspect_ratio=list(image_folder.RATIO),
        )
        images = fn.resize(images, device=device, resize_x=side, resize_y=side)
        images = fn.crop_mirror_normalize(
            images,
            device=device,
            dtype=types.FLOAT,
            output_layout="HWC",
            mean=list(image_folder.MEANS),
            std=list(image_folder.DEVIATIONS),
            mirror=fn.random.coin_flip(),
        )
        labels = fn.cast(labels, dtype=types.INT64)
        pipeline.set_outputs(images, labels.gpu() if gpu else labels)
    shapes = ((row["batch"], side, side, 3), (row["batch"], 1))
    with tf.device("/GPU:0" if gpu else "/CPU:0"):
        return plugin.DALIDataset(
            pipeline=pipeline,
            batch_size=row["batch"],
            output_shapes=shapes,
            output_dtypes=(tf.float32, tf.int64),
            device_id=0 if gpu else None,
        )
