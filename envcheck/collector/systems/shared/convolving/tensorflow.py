"""TensorFlow's side of the convolutions: eagerly in TensorFlow 2, in a graph in TensorFlow 1."""

from ....kernels import framework_tensorflow
from ....kernels.failures import NotSupported
from . import Side, asked

_TYPES = {"FP32": "float32", "TF32": "float32", "FP16": "float16", "BF16": "bfloat16"}


class TensorFlowSide(Side):
    def __init__(self, module, device):
        Side.__init__(self, module, device)
        self.device = "/GPU:0" if self.on_gpu else "/CPU:0"
        self._first = str(getattr(module, "__version__", "")).startswith("1.")

    def absent(self):
        return (framework_tensorflow.adapter(self.module).absent() or "") if self.on_gpu else ""

    def convolve(self, shape, kind, image, filter_, gradient):
        import numpy

        self.choose(kind)
        made = self._run(
            shape,
            getattr(self.module, _TYPES[kind]),
            [numpy.array(numbers, dtype="float32") for numbers in (image, filter_, gradient)],
        )
        return [one.reshape(-1).tolist() for one in made]

    def words(self, shape, image, filter_):
        import numpy

        numbers = [numpy.frombuffer(data, dtype="float32") for data in (image, filter_)]
        return self._run(shape, self.module.float32, numbers)[0].tobytes()

    def _run(self, shape, dtype, numbers):
        """[result, image's gradient, filter's], or the first alone without a gradient; float32 arrays."""
        arrays = [
            array.reshape(size).transpose(order)
            for array, (size, order) in zip(numbers, self._orders(shape))
        ]
        made = (self._graph if self._first else self._eager)(shape, dtype, arrays)
        image, filter_, gradient = self._orders(shape)
        return [
            _back(array, order).astype("float32")
            for array, (_size, order) in zip(made, (gradient, image, filter_))
        ]

    def _orders(self, shape):
        """(size, axes of TensorFlow's order) of the image, the filter and the result: channels come last."""
        some = shape.dimensions
        edge = (shape.edge - shape.kernel) // shape.stride + 1
        last = [0] + list(range(2, 2 + some)) + [1]
        return (
            ([shape.batch, shape.inputs] + [shape.edge] * some, last),
            (
                [shape.outputs, shape.inputs] + [shape.kernel] * some,
                list(range(2, 2 + some)) + [1, 0],
            ),
            ([shape.batch, shape.outputs] + [edge] * some, last),
        )

    def _convolution(self, shape, image, filter_):
        function = self.module.nn.conv2d if shape.dimensions == 2 else self.module.nn.conv3d
        strides = [1] + [shape.stride] * shape.dimensions + [1]
        return function(image, filter_, strides=strides, padding="VALID")

    def _eager(self, shape, dtype, arrays):
        tf = self.module
        with tf.device(self.device):
            tensors = [tf.cast(tf.constant(array), dtype) for array in arrays]
            image, filter_ = tensors[:2]
            with tf.GradientTape() as tape:
                tape.watch([image, filter_])
                result = self._convolution(shape, image, filter_)
            if not result.device.endswith(self.device.lstrip("/")):
                raise NotSupported("TensorFlow ran the convolution on %s" % result.device)
            made = [result]
            if len(tensors) > 2:
                made += tape.gradient(result, [image, filter_], output_gradients=tensors[2])
            return [tf.cast(one, tf.float32).numpy() for one in made]

    def _graph(self, shape, dtype, arrays):
        tf, v1 = self.module, self.module.compat.v1
        config = v1.ConfigProto()
        config.gpu_options.allow_growth = True
        # What the rewrite for mixed precision would make of it is another system's business.
        config.graph_options.rewrite_options.auto_mixed_precision = 2  # OFF
        with tf.Graph().as_default(), tf.device(self.device):
            # Constants would be folded, on the CPU.
            given = [v1.placeholder(tf.float32, array.shape) for array in arrays]
            tensors = [tf.cast(one, dtype) for one in given]
            made = [self._convolution(shape, *tensors[:2])]
            if len(tensors) > 2:
                made += v1.gradients(made[0], tensors[:2], grad_ys=tensors[2])
            made = [tf.cast(one, tf.float32) for one in made]
            with v1.Session(config=config) as session:
                return session.run(made, feed_dict=dict(zip(given, arrays)))

    def ran_by(self):
        """Its convolutions on a GPU are cuDNN's, all of them, and it was told where to run this one."""
        return {"cudnn": 1} if self.on_gpu and self.cudnn_files() else {}

    def flag(self):
        function = getattr(
            self.module.config.experimental, "tensor_float_32_execution_enabled", None
        )
        told = asked(function) if function is not None else ""
        return "" if told == "" else "tensor_float_32_execution_enabled() is %s" % told

    def set_tf32(self, allowed):
        function = getattr(
            self.module.config.experimental, "enable_tensor_float_32_execution", None
        )
        if function is None:
            raise NotSupported("this TensorFlow has no enable_tensor_float_32_execution")
        function(allowed)


def _back(array, order):
    """Channels second again."""
    return array.transpose([order.index(axis) for axis in range(len(order))])
