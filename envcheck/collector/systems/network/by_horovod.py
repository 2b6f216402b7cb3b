"""A group of ranks by TensorFlow and Horovod, which meet by Gloo. Numbers are int64, in variables of one
graph: versions 1.x and 2.x of TensorFlow have sessions in common. Horovod has no send and receive, so two
ranks broadcast to each other.
"""

import functools
import os
import time

from ... import framework
from ..running.records import CouldNotRun
from ..shared.distributed.horovod import Rendezvous, gloo_environ
from . import link, meeting

_ITEM = 8  # bytes


def load():
    """((tensorflow, horovod.tensorflow, numpy), {"tensorflow", "horovod": their versions})."""
    found = []
    for name in ("tensorflow", "horovod.tensorflow", "horovod", "numpy"):
        module, problem = framework.load(name)
        if module is None:
            raise CouldNotRun("import %s: %s" % (name, problem))
        found.append(module)
    tf, hvd, horovod, numpy = found
    if not getattr(hvd, "gloo_built", bool)():
        raise CouldNotRun("its Horovod is built without Gloo, and needs mpirun to start")
    about = {"tensorflow": str(tf.__version__), "horovod": str(horovod.__version__)}
    return (tf, hvd, numpy), about


class HorovodLink(link.Link):
    def __init__(self, modules, rank, size, place, seconds, gpu, tell):
        """place: (address, port) of the first rank's rendezvous."""
        super(HorovodLink, self).__init__(rank, size, seconds, gpu, tell)
        self._tf, self._hvd, self._numpy = modules
        self._variables, self._steps = {}, {}  # by their counts, and by operations' names
        self._device = "/CPU:0" if gpu is None else "/GPU:0"
        os.environ.update(gloo_environ(rank, size, place[0], place[1], seconds))
        tell.stage("connect", "step")
        self._connect(place)
        tell.stage("group", "step")
        self._hvd.init()
        v1 = self._tf.compat.v1
        if gpu is None:
            config = v1.ConfigProto(device_count={"GPU": 0}, intra_op_parallelism_threads=1)
        else:
            options = v1.GPUOptions(visible_device_list=str(gpu), allow_growth=True)
            config = v1.ConfigProto(gpu_options=options)
        self._scope = self._tf.Graph().as_default()  # for as long as this process
        self._scope.__enter__()
        self._session = v1.Session(config=config)
        with self._tf.device("/CPU:0"):
            self._spoken = v1.placeholder(self._tf.int64, [1])
            self._words = [
                self._hvd.broadcast(self._spoken, root, name="word.%d" % root) for root in (0, 1)
            ]
            self._here = self._hvd.allreduce(self._spoken, op=self._hvd.Sum, name="here")

    def _connect(self, place):
        """Both ends of the rendezvous wait for each other, as those of torch's store do."""
        if self.rank:
            meeting.connected(place, self.seconds).close()
            return
        self._rendezvous = Rendezvous("", place[1])
        self._rendezvous.start()
        while len(self._rendezvous.came) < self.size - 1:
            time.sleep(0.01)

    def numbers(self, size, first=0):
        return self._numpy.arange(size // _ITEM, dtype="int64") % 65521 + first

    def joined(self, parts):
        return self._numpy.concatenate(parts)

    def ready(self, data):
        """The count of the numbers, which are in the variable of that count then."""
        _variable, feed, fill = self._variable(len(data))
        self._session.run(fill, {feed: data})
        return len(data)

    def _variable(self, count):
        """(the variable of so many numbers, a placeholder, what fills it from that)."""
        if count not in self._variables:
            tf, v1 = self._tf, self._tf.compat.v1
            with tf.device(self._device):
                feed, zeros = v1.placeholder(tf.int64, [count]), tf.zeros([count], tf.int64)
                name = "numbers.%d" % count
                variable = v1.get_variable(name, initializer=zeros, use_resource=True)
                self._variables[count] = variable, feed, variable.assign(feed).op
            self._session.run(variable.initializer)
        return self._variables[count]

    def _run(self, name, count, results, build):
        """Run an operation of all ranks on a variable; a function that returns its results."""
        variable, held = self._variable(count)[0], self._variable(results)[0]
        key = "%s.%d" % (name, count)
        if key not in self._steps:
            with self._tf.device(self._device):
                found = self._tf.reshape(build(variable.read_value(), name=key), [results])
                self._steps[key] = held.assign(found).op
        self._session.run(self._steps[key])
        return lambda: self._session.run(held)

    def _spread(self, root, count):
        broadcast = functools.partial(self._hvd.broadcast, root_rank=root)
        return self._run("from.%d" % root, count, count, broadcast)

    def word(self, value, root):
        return int(self._session.run(self._words[root], {self._spoken: [value]})[0])

    def gather(self):
        self._session.run(self._here, {self._spoken: [1]})

    def send(self, count):
        self._spread(self.rank, count)

    def receive(self, size):
        return self._spread(1 - self.rank, size // _ITEM)

    def collective(self, name, count):
        hvd, size = self._hvd, self.size
        if name == "all-reduce":
            return self._run(name, count, count, functools.partial(hvd.allreduce, op=hvd.Sum))
        if name == "reduce-scatter":
            build = functools.partial(hvd.reducescatter, op=hvd.Sum)
            return self._run(name, count, count // size, build)
        if name == "all-gather":
            return self._run(name, count, count * size, hvd.allgather)
        return self._run(name, count, count, hvd.alltoall)

    def close(self):
        self._hvd.shutdown()  # else the other's background thread ends its process
