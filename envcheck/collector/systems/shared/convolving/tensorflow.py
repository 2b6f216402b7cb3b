"""TensorFlow's side of the convolutions: eagerly in TensorFlow 2, in a graph in TensorFlow 1."""

from ....kernels import framework_tensorflow
from ....kernels.failures import NotSupported
from . import TYPES, Side


class TensorFlowSide(Side):
    def __init__(self, module, device):
        Side.__init__(self, module, device)
        self.device = "/GPU:0" if self.on_gpu else "/CPU:0"
        first = str(getattr(module, "__version__", "")).startswith("1.")
        self._run = self._graph if first else self._eager

    def absent(self):
        return framework_tensorflow.adapter(self.module).absent() if self.on_gpu else None

    def convolve(self, shape, kind, image, filter_, gradient=None):
        import numpy

        some = shape.dimensions
        places = list(range(2, 2 + some))
        last, filters = [0] + places + [1], places + [1, 0]  # TensorFlow's channels come last
        numbers = [image, filter_] + ([gradient] if gradient is not None else [])
        arrays = [
            numpy.array(one, dtype="float32").reshape(size).transpose(order)
            for one, size, order in zip(numbers, shape.sizes, (last, filters, last))
        ]
        made = self._run(shape, getattr(self.module, TYPES[kind]), arrays)
        back = [
            one.transpose([order.index(axis) for axis in range(2 + some)])
            for one, order in zip(made, (last, last, filters))
        ]
        return [one.astype("float32").reshape(-1).tolist() for one in back]

    def _convolution(self, shape, image, filter_):
        function = self.module.nn.conv2d if shape.dimensions == 2 else self.module.nn.conv3d
        strides = [1] + [shape.stride] * shape.dimensions + [1]
        return function(image, filter_, strides=strides, padding="VALID")

    def _eager(self, shape, dtype, arrays):
        tf = self.module
        with tf.device(self.device):
            tensors = [tf.cast(tf.constant(array), dtype) for array in arrays]
            with tf.GradientTape() as tape:
                tape.watch(tensors[:2])
                result = self._convolution(shape, *tensors[:2])
            if not result.device.endswith(self.device.lstrip("/")):
                raise NotSupported("TensorFlow ran the convolution on %s" % result.device)
            made = [result]
            if len(tensors) > 2:
                made += tape.gradient(result, tensors[:2], output_gradients=tensors[2])
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

    def by_cudnn(self):
        """Its convolutions on a GPU are cuDNN's, all of them, and it was asked to run this one there."""
        return 1 if self.on_gpu and self.cudnn_files() else None

    def set_tf32(self, allowed):
        turn = getattr(self.module.config.experimental, "enable_tensor_float_32_execution", None)
        if turn is None:
            raise NotSupported("this TensorFlow has no enable_tensor_float_32_execution")
        turn(allowed)
