"""L2 in TensorFlow: tf.matmul, eagerly in TensorFlow 2, in a graph and a session in TensorFlow 1."""

import time

from ..probes.tensorflow import build_info, local_gpu
from .adapter import Adapter, Product
from .failures import NotSupported

_TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_STEP = 64  # between the k of one setting and the next
_CHAIN = 64  # products in one run of a session


def adapter(tf, device="/GPU:0"):
    first = str(getattr(tf, "__version__", "")).startswith("1.")
    return (Graphs if first else Eager)(tf, device)


class TensorFlow(Adapter):
    name = "TensorFlow"
    function = "tf.matmul"
    flag = "tensor_float_32_execution_enabled()"

    def __init__(self, module, device):
        Adapter.__init__(self, module, device)
        self._settings = []  # in the order in which they were first used

    def built_cuda(self):
        info = build_info(self.module)
        if not info.get("is_cuda_build", True):
            return None
        return str(info.get("cuda_version") or info.get("cuda_version_number") or "")

    def tf32(self):
        try:
            return bool(self.module.config.experimental.tensor_float_32_execution_enabled())
        except AttributeError:  # before 2.4
            return None

    def set_tf32(self, allowed):
        self.module.config.experimental.enable_tensor_float_32_execution(allowed)

    def length(self, setting, n):
        """Every setting has a k of its own, since what is planned for a shape may be kept.

        TensorFlow looks its cuBLASLt plans up by shape and type, and makes one with the switch as it was
        then: the same shape after a change could run on the plan from before it.
        """
        if setting not in self._settings:
            self._settings.append(setting)
        return max(n // 2, n - _STEP * self._settings.index(setting))

    def _array(self, data, element_type, shape):
        import numpy

        dtype = self._dtype(element_type).as_numpy_dtype
        return numpy.frombuffer(data, dtype=dtype).reshape(shape)

    def _dtype(self, element_type):
        return getattr(self.module, _TYPES[element_type])


class Eager(TensorFlow):
    """TensorFlow 2."""

    def absent(self):
        tf = self.module
        try:
            devices = tf.config.list_physical_devices("GPU")
        except AttributeError:  # 2.0
            devices = tf.config.experimental.list_physical_devices("GPU")
        if devices:
            return None
        if not tf.test.is_built_with_cuda():
            return "TensorFlow sees no GPU here: it was built without CUDA"
        return "TensorFlow sees no GPU here: tf.config.list_physical_devices('GPU') is empty"

    def product(self, setting, element_type, shape, data=None):
        tf = self.module
        m, n, k = shape
        matrices = []
        with tf.device(self.device):
            for which, size in enumerate(((m, k), (k, n))):
                if data is None:
                    made = tf.cast(tf.random.normal(size), self._dtype(element_type))
                else:
                    made = tf.identity(tf.constant(self._array(data[which], element_type, size)))
                matrices.append(made)
        return EagerProduct(self, setting, shape, matrices)

    def ping(self):
        tf = self.module
        with tf.device(self.device):
            one = tf.ones([8])
            _expect(float(tf.reduce_sum(one + one).numpy()), self.device)


class EagerProduct(Product):
    def __init__(self, adapter, setting, shape, matrices):
        Product.__init__(self, adapter, setting, shape)
        self._left, self._right = matrices

    def launch(self):
        with self.adapter.module.device(self.adapter.device):
            result = self.adapter.module.matmul(self._left, self._right)
        if not result.device.endswith(self.adapter.device.lstrip("/")):
            raise NotSupported("TensorFlow ran tf.matmul on %s" % result.device)
        return result

    def wait(self, result):
        result[:1, :1].numpy()

    def data(self, result):
        return result.numpy().tobytes()


class Graphs(TensorFlow):
    """TensorFlow 1. What was made since the last ``release`` is in one graph, and in one session."""

    function = "tf.matmul in a graph and a session"

    def __init__(self, module, device):
        TensorFlow.__init__(self, module, device)
        self._session = None

    def absent(self):
        if not self.module.test.is_built_with_cuda():
            return "TensorFlow sees no GPU here: it was built without CUDA"
        if self._described() is None:
            return "TensorFlow sees no GPU here: device_lib.list_local_devices() has none"
        return None

    def facts(self):
        found = self._described() or {}
        return {key: found[key] for key in ("name", "compute_capability") if key in found}

    def _described(self):
        """What TensorFlow says of its first GPU; None where it has none."""
        from tensorflow.python.client import device_lib

        for device in device_lib.list_local_devices():
            if device.device_type == "GPU":
                return local_gpu(device.name, device.physical_device_desc)
        return None

    @property
    def session(self):
        if self._session is None:
            v1 = self.module.compat.v1
            config = v1.ConfigProto()
            config.gpu_options.allow_growth = True
            self._session = v1.Session(graph=self.module.Graph(), config=config)
        return self._session

    def release(self):
        if self._session is not None:
            session, self._session = self._session, None
            session.close()

    def product(self, setting, element_type, shape, data=None):
        tf, (m, n, k) = self.module, shape
        with self.session.graph.as_default(), tf.device(self.device):
            matrices = []
            for which, size in enumerate(((m, k), (k, n))):
                made = None if data is None else self._array(data[which], element_type, size)
                matrices.append(self._variable(made, element_type, size))
            return GraphProduct(self, setting, shape, matrices)

    def _variable(self, array, element_type, shape):
        """A variable on the device, holding the array; random where there is none."""
        tf, v1 = self.module, self.module.compat.v1
        feed = {}
        if array is None:
            value = tf.cast(v1.random.normal(shape), self._dtype(element_type))
        else:
            value = v1.placeholder(self._dtype(element_type), shape)
            feed[value] = array
        variable = v1.Variable(value, trainable=False)
        self.session.run(variable.initializer, feed_dict=feed)
        return variable

    def ping(self):
        tf, v1 = self.module, self.module.compat.v1
        with self.session.graph.as_default(), tf.device(self.device):
            one = v1.Variable(tf.ones([8]), trainable=False)
            total = tf.reduce_sum(one + one)
        self.session.run(one.initializer)
        _expect(float(self.session.run(total)), self.device)


class GraphProduct(Product):
    """A chain of the same product, each after the one before: as much of it as is asked for, in one run."""

    def __init__(self, adapter, setting, shape, matrices):
        Product.__init__(self, adapter, setting, shape)
        tf = adapter.module
        self.session = adapter.session
        self._chain, self._corners, self._totals = [], [], {}
        for _ in range(_CHAIN):
            with tf.control_dependencies(self._chain[-1:]):
                product = tf.matmul(*matrices)
            self._chain.append(product)
            self._corners.append(product[:1, :1])

    def total(self, count):
        """A tensor for which that many products have to be made.

        It needs a number out of each: one that nothing is taken from would be optimised away.
        """
        if count not in self._totals:
            tf = self.adapter.module
            with self.session.graph.as_default(), tf.device(self.adapter.device):
                self._totals[count] = tf.add_n(self._corners[:count])
        return self._totals[count]

    def launch(self):
        return self.session.run(self._chain[0])

    def wait(self, result):
        pass  # a session's run has waited

    def data(self, result):
        return result.tobytes()

    def once(self):
        self.adapter.switch(self.setting)
        self.batch(1)

    def seconds(self, count, meanwhile=None):
        self.adapter.switch(self.setting)
        started = time.perf_counter()
        self.batch(count)
        taken = time.perf_counter() - started
        if meanwhile is not None:
            meanwhile()  # just after it: no run comes back before the GPU is done
        return taken

    def batch(self, count):
        while count > 0:
            step = min(count, _CHAIN)
            self.session.run(self.total(step))
            count -= step


def _expect(total, device):
    if total != 16.0:
        raise RuntimeError("eight times 1 + 1 is %r on %s" % (total, device))
