"""Tests of the largest valid sizes: windows that reach far beyond an image, and tensors without elements whose other axes are long. They
cost no time and give right results. error_test.py tests sizes that are too large."""
import sys

import numpy as np

import cases
import tw
from arrays import i32, i64, zeros
from attempts import accepts, alone, case, limit

rng = np.random.default_rng(23)
RANGES = [np.float32(end) for end in (-1, 1, -1, 1)]


def eight(kind, *shape):
    """Returns quantised zeros."""
    return np.zeros(shape, tw.ABSENT[kind])


def windows_that_reach_far():
    """The largest valid strides, dilations and windows: few elements take part, and the results are right."""
    big = 2**31 - 1
    image, kernel = rng.normal(size=(2, 4, 5, 3)), rng.normal(size=(2, 1, 3, 2))
    first = np.tensordot(image[:, :2, :1], kernel, ([1, 2, 3], [0, 1, 2]))[:, None, None]  # the window at the corner
    for op, inputs, wanted, attrs in (
            ("Conv2D", [image, kernel], first, dict(strides=[1, big, big, 1], padding="VALID")),
            ("Conv2D", [image, kernel], np.zeros((2, 4, 5, 2)), dict(strides=[1, 1, 1, 1], dilations=[1, big, 1, 1], padding="SAME")),
            ("Conv2D", [image, kernel[:1]], image @ kernel[0, 0], dict(strides=[1, 1, 1, 1], dilations=[1, big, big, 1], padding="VALID"))):
        case(f"{op} {attrs}")
        cases.expect(op, inputs, [wanted], **attrs)
        dy = rng.normal(size=wanted.shape)
        x, k = (np.array(a.shape, np.int32) for a in inputs)
        for name, sizes, mine in (("Conv2DBackpropInput", [x, inputs[1]], inputs[0]), ("Conv2DBackpropFilter", [inputs[0], k], inputs[1])):
            case(f"{name} {attrs}")
            got = tw.run(name, sizes + [dy], **attrs)[0]
            cases.equal(f"{name} {attrs}", (got * mine).sum(), (wanted * dy).sum())
    for stride in (1, 2, big):
        attrs = dict(ksize=[1, big, big, 1], strides=[1, stride, stride, 1], padding="SAME")
        shape = (2, -(-4 // stride), -(-5 // stride), 3)
        largest, mean = image.max((1, 2), keepdims=True), image.mean((1, 2), keepdims=True)
        case(f"pooling {attrs}")
        cases.expect("MaxPool", [image], [np.broadcast_to(largest, shape)], **attrs)
        cases.expect("AvgPool", [image], [np.broadcast_to(mean, shape)], **attrs)
        dy = rng.normal(size=shape)
        cases.expect("AvgPoolGrad", [np.array(image.shape, np.int32), dy],
                     [np.broadcast_to(dy.sum((1, 2), keepdims=True) / 20, image.shape)], **attrs)
        cases.expect("MaxPoolGrad", [image, np.broadcast_to(largest, shape), dy],
                     [np.where(image == largest, dy.sum((1, 2), keepdims=True), 0)], **attrs)


def long_and_empty():
    """Tensors without elements whose other axes have the largest valid size: there is nothing to compute, and that takes no time."""
    long = 2**59
    for shape in ((0, long), (long, 0), (long, 0, 2), (2, 0, long)):
        for dtype in (np.float32, np.float16, np.int32):
            def empty(*shape):  # NumPy's own functions would iterate over the axes
                return np.zeros(shape, dtype)
            x = empty(*shape)
            for op in ("Neg", "Relu", "Identity", "ZerosLike", "Softmax", "LogSoftmax")[:6 if dtype != np.int32 else 4]:
                accepts(op, [x], x)
            for op in ("AddV2", "Maximum"):
                accepts(op, [x, x], x)
                accepts(op, [x, dtype(1)], x)
            for axis, size in enumerate(shape):
                before, after = shape[:axis], shape[axis + 1:]
                for reverse in (False, True):
                    accepts("Cumsum", [x, np.int32(axis)], x, reverse=reverse)
                accepts("GatherV2", [x, np.zeros(0, np.int32), np.int32(axis)], empty(*before, 0, *after))
                if size == 2:
                    part, row = empty(*before, 1, *after), empty(*before, *after)
                    accepts("ConcatV2", [part, part, np.int32(axis)], x, N=2)
                    accepts("Split", [np.int32(axis), x], part, num_split=2)
                    accepts("Pack", [row, row], x, axis=axis, N=2)
                    accepts("Unpack", [x], row, axis=axis, num=2)
                if size != 0:
                    accepts("Sum", [x, i32(axis)], empty(*before, *after))
                    accepts("Max", [x, i32(axis)], empty(*before, *after))
                    accepts("ArgMax", [x, np.int32(axis)], np.zeros(before + after, np.int64))
            axes = np.arange(x.ndim, dtype=np.int32)
            accepts("Sum", [x, axes], 0)
            accepts("Transpose", [x, axes[::-1]], empty(*shape[::-1]))
            accepts("Reshape", [x, i64(1, 0, long)], empty(1, 0, long))
            accepts("Tile", [x, np.ones_like(axes)], x)
            accepts("Pad", [x, i32(*[[0, 0]] * x.ndim)], x)
            accepts("BroadcastTo", [empty(*[1 if size == long else size for size in shape]), i64(*shape)], x)
            accepts("AddN", [x, x, x], x, N=3)
            if dtype != np.int32:
                accepts("L2Loss", [x], 0)
                accepts("ReluGrad", [x, x], x)
            accepts("Slice", [x, np.zeros_like(axes), i32(*[-1] * x.ndim)], x)
            accepts("StridedSlice", [x, i64(0), i64(long), i64(1)], x)
            accepts("Select", [np.zeros(shape, bool), x, x], x)
            accepts("Cast", [x], x, SrcT=dtype, DstT=np.float32)
            accepts("Where", [np.zeros(shape, bool)], np.zeros((0, x.ndim), np.int64))
    accepts("Tile", [zeros(0, 2**54, 1), i64(1, 0, 2**40)], zeros(0, 0, 2**40))
    accepts("Tile", [zeros(2**54, 0), i64(1, 2**40)], zeros(2**54, 0))
    accepts("UnsortedSegmentSum", [zeros(2, long, 0), i32(0, -1), np.int32(3)], zeros(3, long, 0))
    accepts("UnsortedSegmentSum", [zeros(0, long), i32(), np.int32(0)], zeros(0, long))
    accepts("OneHot", [np.zeros((long, 0), np.int32), np.int32(3), np.float32(1), np.float32(0)], zeros(long, 0, 3))
    accepts("GatherNd", [zeros(0, 3), np.zeros((long, 0), np.int32)], zeros(long, 0, 3))
    accepts("ScatterNd", [np.zeros((long, 0), np.int32), zeros(long, 0, 3), i32(0, 3)], zeros(0, 3))
    for m, k, n in ((long, 0, 0), (0, long, 0), (0, 0, long), (2, 0, 0)):
        a, b = zeros(m, k), zeros(k, n)
        accepts("MatMul", [a, b], zeros(m, n))
        accepts("MatMul", [np.zeros((k, m), np.int32), np.zeros((n, k), np.int32)], zeros(m, n), transpose_a=True, transpose_b=True)
        accepts("BatchMatMulV2", [zeros(1, m, k), zeros(1, k, n)], zeros(1, m, n))
        for kind in ("quint8", "qint8"):
            accepts("QuantizedMatMul", [eight(kind, m, k), eight("qint8", k, n), *RANGES], eight("qint32", m, n))
    big = 2**31 - 1
    accepts("QuantizedConv2D", [eight("quint8", 1, 4, 4, 2), eight("qint8", big, big, 2, 0), *RANGES], eight("qint32", 1, 4, 4, 0),
            strides=[1, 1, 1, 1], padding="SAME")
    accepts("BatchMatMulV2", [zeros(0, 2**20, 2**30), zeros(0, 2**30, 2**20)], zeros(0, 2**20, 2**20))
    for rows, columns in ((0, long), (long, 0)):
        x = zeros(rows, columns)
        if rows == 0:
            accepts("SoftmaxCrossEntropyWithLogits", [x, x], zeros(0))
            accepts("SoftmaxCrossEntropyWithLogits", [x, zeros(1, 1)], zeros(0))
            accepts("SparseSoftmaxCrossEntropyWithLogits", [x, np.zeros(0, np.int64)], zeros(0))
        else:
            accepts("BiasAdd", [x, zeros(0)], x)
            accepts("BiasAddGrad", [x], zeros(0))
            accepts("BiasAddGrad", [zeros(long, 2, 0)], zeros(2), data_format="NCHW")
    attrs = dict(strides=[1, 1, 1, 1], padding="SAME")
    far = 2**31 - 1
    for batch, rows, columns, channels in ((0, far, 2**27, 1), (1, far, 0, 1), (1, 0, far, 2), (far, 0, 0, 1), (1, 2**30, 2**28, 0)):
        shape = (batch, rows, columns, channels)
        x = zeros(*shape)
        for ksize in ([1, 2, 2, 1], [1, far, far, 1]):
            accepts("MaxPool", [x], x, ksize=ksize, **attrs)
            accepts("MaxPoolGrad", [x, x, x], x, ksize=ksize, **attrs)
            accepts("MaxPoolGradGrad", [x, x, x], x, ksize=ksize, **attrs)
            accepts("AvgPool", [x], x, ksize=ksize, **attrs)
            accepts("AvgPoolGrad", [i32(*x.shape), x], x, ksize=ksize, **attrs)
        if channels:
            for dtype in (np.float32, np.int32, np.float16):
                x, y, kernel = np.zeros(shape, dtype), np.zeros((*shape[:3], 2), dtype), np.zeros((3, 3, channels, 2), dtype)
                accepts("Conv2D", [x, kernel], y, **attrs)
                accepts("Conv2DBackpropInput", [i32(*shape), kernel, y], x, **attrs)
                if dtype != np.int32:
                    accepts("Conv2DBackpropFilter", [x, i32(*kernel.shape), y], kernel, **attrs)
    for dtype in (np.float32, np.int32, np.float16):
        x, y, kernel = np.zeros((1, 4, 5, 2), dtype), np.zeros((1, 4, 5, 0), dtype), np.zeros((2**30, 2**28, 2, 0), dtype)
        accepts("Conv2D", [x, kernel], y, **attrs)
        accepts("Conv2DBackpropInput", [i32(*x.shape), kernel, y], x, **attrs)
        if dtype != np.int32:
            accepts("Conv2DBackpropFilter", [x, i32(*kernel.shape), y], kernel, **attrs)


def worker():
    limit()
    windows_that_reach_far()
    long_and_empty()
    cases.finish()


if __name__ == "__main__":
    worker() if sys.argv[1:2] == ["worker"] else alone(__file__)
