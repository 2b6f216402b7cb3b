"""Images that are read while it trains, through tf.data: decoded, cut out, made as large as the others."""

import time

from .. import image_folder

_SECONDS, _MOST_STEPS = 1.0, 200  # that each of the two rates is taken for


def batches(tf, row, place, model, layers):
    """(inputs, targets): the next batch whenever they are asked for. Its iterator begins as tables do."""
    side = row["image"] or model.SIDE
    paths, classes = zip(*image_folder.found(place.folder, model.CLASSES))
    tuned = tf.data.experimental.AUTOTUNE
    files = tf.data.Dataset.from_tensor_slices((list(paths), tf.constant(classes, tf.int64)))
    files = files.shuffle(len(paths), seed=row["seed"]).repeat()

    def read(path, number):
        return tf.cast(_cut(tf, tf.io.read_file(path), side), layers.dtype), number

    images = files.map(read, num_parallel_calls=tuned)
    images = images.batch(row["batch"], drop_remainder=True)
    if place.device == "gpu":
        images = images.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))
    else:
        images = images.prefetch(tuned)
    iterator = tf.data.make_initializable_iterator(images)
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    image, number = iterator.get_next()
    return [image], [number]


def rates(session, tensors, step, batch):
    """{"input_rate": images a second where nothing is trained, "resident_rate": with a batch that is there}.

    That batch comes from the host each time, so that the second is a little too low.
    """
    fed = dict(zip(tensors, session.run(tensors)))
    coming = [one.op for one in tensors]
    return {
        "input_rate": batch / _seconds(lambda: session.run(coming)),
        "resident_rate": batch / _seconds(lambda: session.run(step, fed)),
    }


def _seconds(run):
    """Of one, after the first."""
    run()
    began, number = time.monotonic(), 0
    while number < _MOST_STEPS and (number < 2 or time.monotonic() - began < _SECONDS):
        run()
        number += 1
    return max((time.monotonic() - began) / number, 1e-9)


def _cut(tf, data, side):
    """The pixels of an encoded image, as numbers around zero."""
    image = tf.image.decode_jpeg(data, channels=3)  # which decodes PNG, too
    begin, size, _box = tf.image.sample_distorted_bounding_box(
        tf.shape(image),
        tf.zeros([1, 0, 4]),
        area_range=image_folder.AREA,
        aspect_ratio_range=image_folder.RATIO,
        use_image_if_no_bounding_boxes=True,
    )
    image = tf.image.resize_images(tf.slice(image, begin, size), [side, side])
    image = tf.image.random_flip_left_right(tf.reshape(image, [side, side, 3]))
    return (image - tf.constant(image_folder.MEANS)) / tf.constant(image_folder.DEVIATIONS)
