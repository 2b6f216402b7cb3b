"""A row on several GPUs as one job: MirroredStrategy in one process, or a rank of Horovod's."""

import importlib

from ...kernels.failures import NotSupported
from .training import KerasSamples, KerasTraining


def kind(row):
    kinds = {"mirrored": MirroredTraining, "horovod": HorovodTraining}
    if row["together"] not in kinds:
        raise NotSupported("Keras has no %s" % row["together"])
    if row["compiled"] or not row["train"]:
        words = "with XLA" if row["compiled"] else "forward alone"
        raise NotSupported("%s is not run %s here" % (row["together"], words))
    return kinds[row["together"]]


class MirroredTraining(KerasTraining):
    """A replica on each GPU; on two made-up CPUs, where a test wants them."""

    def _prepare(self):
        tf, device = self._tf, self._place.device.upper()
        self.replicas = max(2, len(self._place.gpus))
        if device == "CPU":
            config = tf.config.experimental
            (cpu,) = config.list_physical_devices("CPU")[:1]
            parts = [config.VirtualDeviceConfiguration() for _each in range(self.replicas)]
            config.set_virtual_device_configuration(cpu, parts)
        names = ["/%s:%d" % (device, number) for number in range(self.replicas)]
        self._strategy = tf.distribute.MirroredStrategy(names)
        self._on_each = getattr(self._strategy, "run", None) or self._strategy.experimental_run_v2

    def _scope(self):
        return self._strategy.scope()

    def _made_samples(self):
        return KerasSamples(self._tf, self._row, parts=self.replicas)

    def _traced(self):
        tf, samples = self._tf, self._samples

        def replica():
            own = tf.distribute.get_replica_context().replica_id_in_sync_group
            return self.train(*samples.batch(own))

        def step():
            with self._strategy.scope():
                losses = self._on_each(replica)
                samples.advance()
                return self._strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)

        return tf.function(step)

    def evidence(self):
        found = KerasTraining.evidence(self)
        weight = self.model.trainable_variables[0]
        if hasattr(weight, "value") and not callable(weight.value):  # of Keras 3's own
            weight = weight.value
        weights = self._strategy.experimental_local_results(weight)
        found["replicas"] = int(self._strategy.num_replicas_in_sync)
        found["devices"] = [str(one.device) for one in weights]
        # The all-reduce keeps them the same.
        first = weights[0].numpy()
        found["weights_differ"] = sum(bool((one.numpy() != first).any()) for one in weights)
        return found


class HorovodTraining(KerasTraining):
    """One rank of a job; Horovod's own variables say which."""

    def _prepare(self):
        try:
            self._hvd = importlib.import_module("horovod.tensorflow")
        except ImportError as error:
            raise NotSupported("no Horovod for this TensorFlow: %s" % error)
        self._hvd.init()
        if self._hvd.size() != self._place.ranks:
            raise RuntimeError(
                "Horovod has %d ranks, and %d were started" % (self._hvd.size(), self._place.ranks)
            )

    def _made_samples(self):
        return KerasSamples(self._tf, self._row, int(self._hvd.rank()), int(self._hvd.size()))

    def _traced(self):
        variables = getattr(self._optimizer, "variables", [])
        variables = variables() if callable(variables) else variables
        self._hvd.broadcast_variables(self.model.variables, root_rank=0)
        self._hvd.broadcast_variables(variables, root_rank=0)
        return KerasTraining._traced(self)

    def _tape(self, tape):
        return self._hvd.DistributedGradientTape(tape)

    def evidence(self):
        found = KerasTraining.evidence(self)
        found.update(ranks=int(self._hvd.size()), rank=int(self._hvd.rank()))
        found["mean_loss"] = float(self._hvd.allreduce(self._last).numpy())
        return found
