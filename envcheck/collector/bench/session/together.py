"""A row on several devices as one job: by MirroredStrategy, or by Horovod."""

import importlib

from ...kernels.failures import NotSupported


def job(tf, row, place):
    if row["together"] == "":
        return OneDevice()
    if row["together"] == "mirrored":
        return MirroredSession(tf, row, place)
    if row["together"] == "horovod":
        return HorovodSession(place)
    raise NotSupported("with TensorFlow 1's sessions there is no %s" % row["together"])


class OneDevice(object):
    """What a job of one device leaves as it is; the others change some of it."""

    replicas = 1  # of this process

    def built(self, replica):
        """(the operation that trains, the loss). replica(): these, of one device: its share of the loss."""
        return replica()

    def distributed(self, optimizer):
        return optimizer

    def broadcast(self):
        """The operation that gives all ranks the weights of the first, or None."""
        return

    def configured(self, config):
        return config

    def evidence(self):
        return {}


class MirroredSession(OneDevice):
    """A replica on each GPU of the process; two of made-up CPUs, where a test wants them."""

    def __init__(self, tf, row, place):
        if not hasattr(getattr(tf, "distribute", None), "MirroredStrategy"):
            raise NotSupported("this TensorFlow has no tf.distribute.MirroredStrategy")
        self._tf = tf
        self._kind = place.device
        self.replicas = max(2, len(row["gpus"]))
        devices = ["/%s:%d" % (place.device, one) for one in range(self.replicas)]
        self._strategy = tf.distribute.MirroredStrategy(devices)

    def built(self, replica):
        strategy = self._strategy
        with strategy.scope():
            trained, losses = strategy.experimental_run_v2(replica)
            loss = strategy.reduce(self._tf.distribute.ReduceOp.SUM, losses, axis=None)
        return self._tf.group(*strategy.experimental_local_results(trained)), loss

    def configured(self, config):
        if self._kind == "cpu":
            config.device_count["CPU"] = self.replicas
        return config

    def evidence(self):
        return {"replicas": int(self._strategy.num_replicas_in_sync)}


class HorovodSession(OneDevice):
    """One rank of a job, which Horovod's own variables tell which it is."""

    def __init__(self, place):
        try:
            self._hvd = importlib.import_module("horovod.tensorflow")
        except ImportError as error:
            raise NotSupported("no Horovod for this TensorFlow: %s" % error)
        self._hvd.init()
        self._place = place
        if self._hvd.size() != place.ranks:
            raise RuntimeError(
                "Horovod has %d ranks, and %d were started" % (self._hvd.size(), place.ranks)
            )

    def distributed(self, optimizer):
        return self._hvd.DistributedOptimizer(optimizer)

    def broadcast(self):
        return self._hvd.broadcast_global_variables(0)

    def configured(self, config):
        if self._place.device == "gpu" and len(self._place.gpus) > 1:
            config.gpu_options.visible_device_list = str(self._hvd.local_rank())
        return config

    def evidence(self):
        return {"ranks": int(self._hvd.size()), "rank": int(self._hvd.rank())}
