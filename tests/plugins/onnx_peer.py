"""Compares models with ONNX Runtime on inputs of their own: ten of the larger cases of ONNX's test data on new numbers, and a net with a
symbolic batch. A result may differ by 1e-5 of the largest expected element.

usage: onnx_peer.py
Exit status: 0 equal, 1 not, 77 the test data or ONNX Runtime is not installed."""
import pathlib
import sys
import tempfile

import numpy as np
import thalweg as tw

import onnx_cases
import onnx_messages
import onnx_writer as w

CASES = ("pytorch-converted/test_Conv2d_depthwise_with_multiplier", "pytorch-converted/test_Conv3d_dilated_strided",
         "pytorch-converted/test_Conv3d_groups", "pytorch-converted/test_ConvTranspose2d", "pytorch-converted/test_PixelShuffle",
         "pytorch-operator/test_operator_conv", "pytorch-operator/test_operator_convtranspose",
         "pytorch-operator/test_operator_symbolic_override", "simple/test_sequence_model3", "simple/test_sequence_model5")


def net():
    """Returns the bytes of a net of convolutions, pools, a recurrent layer and attention, and its input's shape beyond the batch."""
    rng = np.random.default_rng(3)

    def weights(*shape):
        return (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    nodes = [
        w.node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]), w.node("InstanceNormalization", ["c0", "s", "b0"], ["n0"]),
        w.node("LeakyRelu", ["n0"], ["r0"], alpha=0.1), w.node("AveragePool", ["r0"], ["p0"], kernel_shape=[2, 2], strides=[2, 2]),
        w.node("Conv", ["p0", "w1"], ["c1"], group=8, dilations=[2, 2], pads=[2, 2, 2, 2], kernel_shape=[3, 3]),
        w.node("Resize", ["c1", "", "scales"], ["z"], mode="linear"), w.node("Shape", ["z"], ["shape"]),
        w.node("Slice", ["shape", "zero", "two", "zero"], ["head"]), w.node("Concat", ["head", "minus"], ["flat"], axis=0),
        w.node("Reshape", ["z", "flat"], ["f"]), w.node("MatMul", ["f", "wq"], ["q"]), w.node("Transpose", ["q"], ["steps"], perm=[1, 0, 2]),
        w.node("LSTM", ["steps", "wl", "wr", "bl"], ["h"], hidden_size=5), w.node("Squeeze", ["h", "one"], ["hs"]),
        w.node("ReduceMean", ["hs"], ["m"], axes=[0], keepdims=0), w.node("Gemm", ["m", "wg"], ["g"], transB=1), w.node("Softmax", ["g"], ["y"], axis=1),
    ]
    given = {"w0": weights(8, 3, 3, 3), "b0": weights(8, 1)[:, 0], "s": np.ones(8, np.float32), "w1": weights(8, 1, 3, 3), "wq": weights(256, 6),
             "scales": np.array([1, 1, 2, 2], np.float32), "zero": np.array([0]), "one": np.array([1]), "two": np.array([2]),
             "minus": np.array([-1]), "wl": weights(1, 20, 6), "wr": weights(1, 20, 5), "bl": weights(1, 40), "wg": weights(7, 5)}
    return w.model(nodes, [w.value("x", "float32", ["batch", 3, 16, 16])], [w.value("y", "float32", ["batch", 7])], given.items()), (3, 16, 16)


def compare(name, got, expected):
    """Prints the largest difference of each output. Returns whether all are small."""
    good = True
    for key, value in expected.items():
        scale = max(1.0, float(np.abs(value).max())) if value.size else 1.0
        error = float(np.abs(got[key].astype(np.float64) - value).max()) / scale if value.size else 0.0
        fits = got[key].shape == value.shape and got[key].dtype == value.dtype and error <= 1e-5
        print(f"{name} '{key}' {list(value.shape)}: {error:.1e}{'' if fits else ' DIFFERS'}")
        good &= fits
    return good


def check(name, file, feeds):
    import onnxruntime
    onnxruntime.set_default_logger_severity(3)  # it warns of old opsets
    peer = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    outputs = [o.name for o in peer.get_outputs()]
    model, good = tw.load(file), True
    for fed in feeds:
        good &= compare(name, model.run(fed), dict(zip(outputs, peer.run(None, fed))))
    return good


def cases():
    """Yields name, file and a list of one feed for each case, with floats drawn anew."""
    rng = np.random.default_rng(11)
    for name in CASES:
        folder = onnx_cases.DATA / name
        inputs, _ = onnx_messages.interface((folder / "model.onnx").read_bytes())
        files = onnx_cases.files(folder / "test_data_set_0", "input")
        fed = {key: onnx_messages.value(file.read_bytes(), kind) for (key, kind), file in zip(inputs, files)}
        for key, value in fed.items():
            if value.dtype == np.float32:
                fed[key] = rng.normal(size=value.shape).astype(np.float32)
        yield name, folder / "model.onnx", [fed]


def main():
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        print("skipped: there is no ONNX Runtime; tools/setup --peers installs it")
        return 77
    if not onnx_cases.DATA.is_dir():
        print(f"skipped: there is no {onnx_cases.DATA}; tools/setup installs libonnx-testdata")
        return 77
    good = True
    for name, file, feeds in cases():
        good &= check(name, file, feeds)
    data, shape = net()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "model.onnx"
        file.write_bytes(data)
        rng = np.random.default_rng(13)
        good &= check("net", file, [{"x": rng.normal(size=(batch, *shape)).astype(np.float32)} for batch in (1, 4, 9)])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
