"""A model with symbolic sizes is loaded once and answers every size: batches of images, and texts of any length."""
import numpy as np
import pytest
import thalweg as tw

import onnx_writer as w

RNG = np.random.default_rng(5)


def constant(name, values):
    return w.node("Constant", [], [name], value=np.array(values, np.int64))


def loaded(tmp_path, **parts):
    file = tmp_path / "model.onnx"
    file.write_bytes(w.model(**parts))
    return tw.load(file)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def convolved(x, filters):
    """Returns a convolution of [n, c, h, w] by 3x3 filters with a border of zeros, in double."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    h, wide = x.shape[2:]
    return sum(np.einsum("nchw,oc->nohw", padded[:, :, i:i + h, j:j + wide], filters[:, :, i, j]) for i in range(3) for j in range(3))


def classifier(tmp_path):
    """A net as exporters write it: it flattens by arithmetic on the shape of its input, and adds a mask of a row for each image."""
    filters, matrix = RNG.normal(size=(4, 3, 3, 3)).astype(np.float32), RNG.normal(size=(4 * 6 * 6, 5)).astype(np.float32) / 12
    nodes = [
        w.node("Conv", ["x", "filters"], ["c"], pads=[1, 1, 1, 1]), w.node("Relu", ["c"], ["r"]),
        w.node("Shape", ["r"], ["shape"]), constant("first", [0]), w.node("Gather", ["shape", "first"], ["batch"]),
        constant("rest", [-1]), w.node("Concat", ["batch", "rest"], ["flat"], axis=0), w.node("Reshape", ["r", "flat"], ["f"]),
        w.node("MatMul", ["f", "matrix"], ["z"]), w.node("Softmax", ["z"], ["y"], axis=-1),
        constant("five", [5]), w.node("Concat", ["batch", "five"], ["wide"], axis=0),
        w.node("ConstantOfShape", ["wide"], ["ones"], value=np.ones(1, np.float32)), w.node("Add", ["y", "ones"], ["raised"]),
        constant("zero", [0]), constant("two", [2]), constant("axis", [1]), w.node("Slice", ["raised", "zero", "two", "axis"], ["part"]),
        w.node("TopK", ["y", "two"], ["best", "classes"]), w.node("Flatten", ["r"], ["g"]),
    ]
    outputs = [w.value("part", "float32", ["batch", 2]), w.value("classes", "int64", ["batch", 2]), w.value("g", "float32", ["batch", 144])]
    model = loaded(tmp_path, nodes=nodes, inputs=[w.value("x", "float32", ["batch", 3, 6, 6])], outputs=outputs,
                   weights=[("filters", filters), ("matrix", matrix)])

    def reference(x):
        r = np.maximum(convolved(x, filters.astype(np.float64)), 0).reshape(len(x), -1)
        y = softmax(r @ matrix.astype(np.float64))
        return {"part": y[:, :2] + 1, "classes": np.argsort(-y, axis=1)[:, :2], "g": r}

    return model, reference


def test_one_load_answers_every_batch(tmp_path):
    model, reference = classifier(tmp_path)
    assert [port.shape for port in model.signature.inputs] == [("batch", 3, 6, 6)]
    assert [port.shape for port in model.signature.outputs] == [("batch", 2), ("batch", 2), ("batch", 144)]
    for batch in (1, 3, 7, 1):
        x = RNG.normal(size=(batch, 3, 6, 6)).astype(np.float32)
        got, expected = model(x=x), reference(x)
        for name, value in expected.items():
            np.testing.assert_allclose(got[name], value, rtol=2e-5, atol=2e-5, err_msg=f"{name} of {batch} images")


def test_two_symbolic_sizes_and_ops_that_compute_shapes(tmp_path):
    nodes = [
        w.node("Shape", ["ids"], ["shape"]), constant("at", 1), w.node("Gather", ["shape", "at"], ["length"], axis=0),
        constant("zero", 0), constant("one", 1), w.node("Range", ["zero", "length", "one"], ["places"]),
        w.node("Gather", ["table", "ids"], ["words"]), w.node("Gather", ["positions", "places"], ["p"]), w.node("Add", ["words", "p"], ["e"]),
        constant("heads", [0, 0, 2, 3]), w.node("Reshape", ["e", "heads"], ["split"]),
        w.node("Transpose", ["split"], ["q"], perm=[0, 2, 1, 3]), w.node("Transpose", ["split"], ["k"], perm=[0, 2, 3, 1]),
        w.node("MatMul", ["q", "k"], ["scores"]), w.node("Unsqueeze", ["length", "axis0"], ["l1"]), constant("axis0", [0]),
        w.node("Concat", ["l1", "l1"], ["square"], axis=0), w.node("ConstantOfShape", ["square"], ["all"], value=np.ones(1, np.float32)),
        w.node("Trilu", ["all"], ["causal"], upper=0), w.node("Mul", ["scores", "causal"], ["masked"]),
        w.node("Split", ["masked", "halves"], ["h0", "h1"], axis=1), constant("halves", [1, 1]), w.node("CumSum", ["h1", "axis3"], ["sum"]),
        constant("axis3", 3), w.node("GatherND", ["e", "pairs"], ["picked"]), constant("pairs", [[0, -1]]),
        w.node("NonZero", ["ids"], ["places_of_words"]),
    ]
    nodes.sort(key=lambda n: b"ConstantOfShape" in n or b"Constant" not in n)  # constants come before their use
    table, positions = RNG.normal(size=(11, 6)).astype(np.float32), RNG.normal(size=(9, 6)).astype(np.float32)
    outputs = [w.value("h0", "float32", ["batch", 1, "length", "length"]), w.value("sum", "float32", ["batch", 1, "length", "length"]),
               w.value("picked", "float32", [1, 6]), w.value("places_of_words", "int64", [2, "words"])]
    model = loaded(tmp_path, nodes=nodes, inputs=[w.value("ids", "int64", ["batch", "length"])], outputs=outputs,
                   weights=[("table", table), ("positions", positions)])
    for batch, length in ((1, 4), (3, 9), (2, 1), (7, 5)):
        ids = RNG.integers(0, 11, size=(batch, length))
        e = table[ids].astype(np.float64) + positions[:length]
        split = e.reshape(batch, length, 2, 3)
        masked = np.tril(np.einsum("bqhd,bkhd->bhqk", split, split))
        got = model(ids=ids)
        np.testing.assert_allclose(got["h0"], masked[:, :1], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(got["sum"], np.cumsum(masked[:, 1:], axis=3), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(got["picked"], e[0, -1:], rtol=1e-6)
        assert np.array_equal(got["places_of_words"], np.stack(np.nonzero(ids)))


def test_a_sequence_of_unknown_length_is_read_and_changed(tmp_path):
    nodes = [
        constant("two", 2), constant("first", 0), w.node("SplitToSequence", ["x", "two"], ["parts"], axis=0),
        w.node("SequenceInsert", ["parts", "x", "first"], ["more"]), w.node("SequenceLength", ["more"], ["count"]),
        constant("last", -1), w.node("SequenceAt", ["more", "last"], ["tail"]), w.node("SequenceErase", ["more", "last"], ["less"]),
        w.node("ConcatFromSequence", ["less"], ["joined"], axis=0),
    ]
    outputs = [w.value("count", "int64", []), w.value("tail", "float32", ["n", 3]), w.value("joined", "float32", ["m", 3])]
    model = loaded(tmp_path, nodes=nodes, inputs=[w.value("x", "float32", ["rows", 3])], outputs=outputs)
    for rows in (1, 2, 5, 8):
        x = RNG.normal(size=(rows, 3)).astype(np.float32)
        parts = [x] + [x[i:i + 2] for i in range(0, rows, 2)]
        got = model(x=x)
        assert got["count"] == len(parts)
        assert np.array_equal(got["tail"], parts[-1])
        assert np.array_equal(got["joined"], np.concatenate(parts[:-1]))


def test_an_input_of_another_fixed_size_is_refused(tmp_path):
    model, _ = classifier(tmp_path)
    with pytest.raises(tw.InvalidArgumentError, match="'x'"):
        model(x=np.zeros((2, 3, 5, 6), np.float32))


if __name__ == "__main__":
    raise SystemExit(pytest.main(["-q", "-p", "no:cacheprovider", __file__]))
