"""A row on several GPUs as one job: MirroredStrategy in one process, or a rank of Horovod's."""

import importlib

from ...kernels.failures import NotSupported
from .training import KerasSamples, KerasTraining, taken


def job(tf, row, place, model):
    kinds = {"mirrored": MirroredTraining, "horovod": HorovodTraining}
    if row["together"] not in kinds:
        raise NotSupported("Keras has no %s" % row["together"])
    if row["compiled"] or not row["train"]:
        words = "with XLA" if row["compiled"] else "forward alone"
        raise NotSupported("%s is not run %s here" % (row["together"], words))
    return kinds[row["together"]](tf, row, place, model)


class MirroredTraining(KerasTraining):
    """A replica on each GPU; on two made-up CPUs, where a test wants them."""

    def _prepare(self):
        tf = self._tf
        distribute = getattr(tf, "distribute", None)
        if not hasattr(distribute, "MirroredStrategy"):
            raise NotSupported("it has no tf.distribute.MirroredStrategy")
        kind = self._place.device.upper()
        self.replicas = max(2, len(self._place.gpus))
        if kind == "CPU":
            _split_cpu(tf, self.replicas)
        names = ["/%s:%d" % (kind, number) for number in range(self.replicas)]
        self._strategy = distribute.MirroredStrategy(names)
        self._run = getattr(self._strategy, "run", None) or self._strategy.experimental_run_v2

    def _scope(self):
        return self._strategy.scope()

    def _traced(self):
        tf, row, model = self._tf, self._row, self._file
        epoch = model.epoch(row) if hasattr(model, "epoch") else 0
        begin = tf.Variable(
            0,
            dtype=tf.int64,
            trainable=False,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )

        def made():
            return model.samples(tf, row, epoch or row["batch"])

        samples = self._run(tf.function(made))  # on each device its own

        def replica(inputs, targets):
            if epoch:
                own = tf.distribute.get_replica_context().replica_id_in_sync_group
                place = begin + tf.cast(own, tf.int64) * row["batch"]
                inputs, targets = taken(tf, (inputs, targets), place, row["batch"])
            return self.train(inputs, targets)

        def step():
            with self._strategy.scope():
                losses = self._run(replica, args=samples)
                begin.assign_add(row["batch"] * self.replicas)
                return self._strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)

        return tf.function(step)

    def evidence(self):
        found = KerasTraining.evidence(self)
        mine = self._strategy.experimental_local_results
        weight = self.model.trainable_variables[0]
        weight = mine(getattr(weight, "value", weight) if _is_of_keras(weight) else weight)
        found["replicas"] = int(self._strategy.num_replicas_in_sync)
        found["devices"] = [str(one.device) for one in weight]
        # The all-reduce keeps them the same.
        first = weight[0].numpy()
        found["weights_differ"] = sum(bool((one.numpy() != first).any()) for one in weight)
        return found


class HorovodTraining(KerasTraining):
    """One rank of a job; Horovod's own variables tell which."""

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

    def _traced(self):
        tf, hvd = self._tf, self._hvd
        variables = getattr(self._optimizer, "variables", [])
        variables = variables() if callable(variables) else variables
        hvd.broadcast_variables(self.model.variables, root_rank=0)
        hvd.broadcast_variables(variables, root_rank=0)
        samples = KerasSamples(
            tf, self._row, self._file, self._device, int(hvd.rank()), int(hvd.size())
        )
        return tf.function(lambda: self.train(*samples.batch()))

    def _tape(self, tape):
        return self._hvd.DistributedGradientTape(tape)

    def evidence(self):
        found = KerasTraining.evidence(self)
        found.update(ranks=int(self._hvd.size()), rank=int(self._hvd.rank()))
        found["mean_loss"] = float(self._hvd.allreduce(self._last).numpy())
        return found


def _split_cpu(tf, number):
    config = tf.config.experimental
    (cpu,) = config.list_physical_devices("CPU")[:1]
    config.set_virtual_device_configuration(
        cpu, [config.VirtualDeviceConfiguration() for _each in range(number)]
    )


def _is_of_keras(variable):
    """Whether it is one of Keras 3's own, around TensorFlow's."""
    return hasattr(variable, "value") and not callable(variable.value)
