"""Horovod in TensorFlow: a rank a GPU, or two on the CPU; TensorFlow 1 in a session, 2 at once."""

from .shared.distributed import horovod

SYSTEM = "horovod"
FRAMEWORKS = ("tensorflow",)
MODULES = ("horovod",)
DEADLINE = horovod.DEADLINE
GPUS = 2
ON_CPU = "few"
BY_RANKS = True


def run(_framework, params, tell):
    horovod.run(params, tell)


def rank(tf, params, tell):
    first = str(tf.__version__).startswith("1.")
    in_session = _Session(tf) if first else None

    def work(hvd, local_rank, whole=True):
        return (
            in_session.work(hvd, local_rank, whole) if first else _eager(tf, hvd, local_rank, whole)
        )

    def prepared(hvd, local_rank, numbers, value):
        if first:
            return in_session.prepared(hvd, local_rank, numbers, value)
        with tf.device("/CPU:0" if local_rank is None else "/GPU:0"):
            tensor = tf.fill([numbers], value)

        def once():
            with tf.device(tensor.device):
                return float(hvd.allreduce(tensor, op=hvd.Sum)[0])

        return once

    return horovod.rank("horovod.tensorflow", params, work, prepared)


def _eager(tf, hvd, local_rank, whole):
    device = "/CPU:0"
    if local_rank is not None:
        gpus = tf.config.experimental.list_physical_devices("GPU")
        tf.config.experimental.set_visible_devices(gpus[local_rank], "GPU")
        device = "/GPU:0"
    number = hvd.rank() + 1.0
    with tf.device(device):
        total = hvd.allreduce(tf.fill([1024], number), op=hvd.Sum)
        told = {"sum": float(tf.reduce_max(total)), "gpu": local_rank is not None}
        if float(tf.reduce_min(total)) != told["sum"]:
            told["sum"] = float(tf.reduce_min(total))
        if whole:
            weight = tf.Variable(number)
            hvd.broadcast_variables([weight], root_rank=0)
            told["broadcast"] = float(weight)
            with tf.GradientTape() as tape:
                loss = weight * number
            gradient = hvd.DistributedGradientTape(tape).gradient(loss, [weight])
            weight.assign_sub(gradient[0])
            told["weight"] = float(weight)
    return told


class _Session(object):
    def __init__(self, tf):
        self._tf = tf.compat.v1
        self._tf.disable_eager_execution()

    def prepared(self, hvd, local_rank, numbers, value):
        tf = self._tf
        with tf.Graph().as_default(), tf.device("/CPU:0" if local_rank is None else "/GPU:0"):
            tensor = tf.get_variable("tensor", initializer=tf.fill([numbers], value))
            first = hvd.allreduce(tensor.read_value(), op=hvd.Sum, name="by_size_%d" % numbers)[0]
            session = tf.Session(config=self._config(local_rank))
            session.run(tf.global_variables_initializer())
        return lambda: float(session.run(first))

    def _config(self, local_rank):
        config = self._tf.ConfigProto()
        if local_rank is not None:
            config.gpu_options.visible_device_list = str(local_rank)
            config.gpu_options.allow_growth = True
        return config

    def work(self, hvd, local_rank, whole):
        tf = self._tf
        config = self._config(local_rank)
        number = hvd.rank() + 1.0
        told = {"gpu": local_rank is not None}
        with tf.Graph().as_default(), tf.device("/GPU:0" if told["gpu"] else "/CPU:0"):
            total = hvd.allreduce(tf.fill([1024], number), op=hvd.Sum, name="envcheck")
            ends = [tf.reduce_min(total), tf.reduce_max(total)]
            if whole:
                weight = tf.get_variable("weight", initializer=number, use_resource=True)
                spread = hvd.broadcast_global_variables(0)
                optimizer = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(1.0))
                step = optimizer.minimize(weight * number)
            with tf.Session(config=config) as session:
                least, most = session.run(ends)
                told["sum"] = float(most if least == most else least)
                if whole:
                    session.run(weight.initializer)
                    session.run(spread)
                    told["broadcast"] = float(session.run(weight))
                    session.run(step)
                    told["weight"] = float(session.run(weight))
        return told
