"""Nets in numbers of 8 bits: what they answer, what of them runs in 8 bits, and what is refused."""
import os
import pathlib

import numpy as np
import pytest
import thalweg as tw

DATA = pathlib.Path(os.environ["THALWEG_DATA_PATH"]) / "digits.csv"
RNG = np.random.default_rng(5)


def behind(value):
    """The types of the operations that a value needs."""
    found, stack = set(), [value.operation]
    while stack:
        operation = stack.pop()
        if operation.name not in found:
            found.add(operation.name)
            stack += [x.operation for x in operation.inputs]
    return [value.graph.operation(name).type for name in found]


def close(got, wanted, share):
    """Whether the mean error is at most that share of the mean magnitude."""
    return np.abs(got - wanted).mean() <= share * np.abs(wanted).mean()


def normal(*shape, scale=1.0):
    return (RNG.normal(size=shape) * scale).astype(np.float32)


def test_digits_lose_at_most_half_a_point():
    rows = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
    images, labels = rows[:, :64].reshape(-1, 8, 8, 1) / 16, rows[:, 64].astype(np.int32)
    tw.random.seed(1)
    net = tw.nn.Sequential(tw.nn.Conv2D(16, 3, "relu"), tw.nn.Conv2D(32, 3, "relu"), tw.nn.MaxPool2D(), tw.nn.Flatten(), tw.nn.Dense(10))
    trainer = tw.train.Trainer(net, "sparse_softmax_cross_entropy", tw.train.Adam(0.002), metrics=["accuracy"])
    trainer.fit((images, labels), epochs=4)
    small = tw.quantize(trainer, [images[k:k + 64] for k in range(0, 256, 64)])
    inputs, outputs = trainer.signature()
    given = {inputs["input"]: images}
    before, after = (trainer.session.run(v["output"], given).argmax(1) for v in (outputs, small.outputs))
    assert (before == labels).mean() > 0.9
    assert (before == labels).mean() - (after == labels).mean() <= 0.005
    types = behind(small.outputs["output"])
    assert len(small.layers) == 3 and sum(t.startswith("Quantized") for t in types) == 4
    assert types.count("QuantizeV2") == 1 and "MaxPool" not in types
    assert not {"Conv2D", "MatMul", "BiasAdd", "Relu"} & set(types)


def block(x, data_format, channels):
    """Two convolutions with batch normalisation around a shortcut that has one of its own, as in ResNet."""
    def convolved(x, size, out, stride, relu):
        inner = x.shape[1 if data_format == "NCHW" else 3]
        strides = [1, 1, stride, stride] if data_format == "NCHW" else [1, stride, stride, 1]
        weights = normal(size, size, inner, out, scale=(size * size * inner) ** -0.5)
        y = tw.ops.conv2d(x, weights, strides=strides, padding="SAME", data_format=data_format)
        scale, offset, mean, variance = RNG.uniform(0.5, 1.5, out), normal(out), normal(out, scale=0.1), RNG.uniform(0.5, 1.5, out)
        y = tw.ops.fused_batch_norm_v3(y, *(np.float32(v) for v in (scale, offset, mean, variance)), is_training=False,
                                       data_format=data_format).y
        return tw.ops.relu(y) if relu else y

    main = convolved(convolved(x, 3, channels, 2, True), 3, channels, 1, False)
    y = tw.ops.relu(main + convolved(x, 1, channels, 2, False))
    return tw.ops.relu(convolved(convolved(y, 1, channels, 1, True), 3, channels, 1, False) + y)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_blocks_with_shortcuts_stay_in_8_bits(data_format):
    shape = [None, 3, 16, 16] if data_format == "NCHW" else [None, 16, 16, 3]
    with tw.Graph() as g:
        x = tw.placeholder("float32", shape, name="x")
        y = block(x, data_format, 24)
    data = [normal(4, *shape[1:]) for _ in range(3)]
    with tw.Session(g) as s:
        small = tw.quantize(s, data, inputs={"x": x}, outputs={"y": y})
        types = behind(small.outputs["y"])
        assert types.count("QuantizedConv2DWithBiasSumAndReluAndRequantize") == 2
        assert types.count("QuantizedConv2DWithBiasAndReluAndRequantize") == 2 and types.count("QuantizedConv2DWithBiasAndRequantize") == 1
        assert types.count("QuantizeV2") == 1 and types.count("Dequantize") == 1
        got, wanted = s.run([small.outputs["y"], y], {x: data[0]})
        assert got.shape == wanted.shape and close(got, wanted, 0.05)


def test_products_keep_what_is_between_them_in_float():
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None, 20], name="x")
        hidden = tw.ops.relu6(tw.ops.mat_mul(x, normal(30, 20), transpose_b=True) + (normal(30) + 3))
        y = tw.ops.mat_mul(tw.ops.tanh(hidden), normal(30, 7)) * 2
    data = [{"x": normal(16, 20)} for _ in range(4)]
    with tw.Session(g) as s:
        small = tw.quantize(s, data, inputs={"x": x}, outputs={"y": y, "hidden": hidden})
        got, wanted = s.run([small.outputs, {"y": y, "hidden": hidden}], {x: data[0]["x"]})
        assert close(got["y"], wanted["y"], 0.05) and close(got["hidden"], wanted["hidden"], 0.05)
        assert [layer.output_range for layer in small.layers][0] == 6 and "Tanh" in behind(small.outputs["y"])


def test_padding_may_be_explicit(tmp_path):
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None, 3, 9, 9], name="x")
        y = tw.ops.conv2d(x, normal(3, 3, 3, 8), strides=[1, 1, 2, 2], padding="EXPLICIT", explicit_paddings=[0, 0, 0, 0, 2, 1, 0, 2],
                          data_format="NCHW")
    data = [normal(2, 3, 9, 9)]
    with tw.Session(g) as s:
        small = tw.quantize(s, data, inputs={"x": x}, outputs={"y": y})
        got, wanted = s.run([small.outputs["y"], y], {x: data[0]})
        assert got.shape == wanted.shape and close(got, wanted, 0.05)
        # The net in 8 bits is a graph like any other: it can be saved, and loaded elsewhere.
        tw.save(s, tmp_path / "small.model", {"serving_default": (small.inputs, small.outputs)})
    assert np.array_equal(tw.load(tmp_path / "small.model")(x=data[0])["y"], got)


def test_a_model_from_a_file_knows_its_values(tmp_path):
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None, 6], name="x")
        w = tw.Variable(normal(6, 4), name="w")
        y = tw.ops.mat_mul(x, w)
    with tw.Session(g) as s:
        s.run(g.initializer())
        tw.save(s, tmp_path / "m", {"serving_default": ({"x": x}, {"y": y})})
    model, data = tw.load(tmp_path / "m"), normal(32, 6)
    small = tw.quantize(model, [data])
    got = model.session.run(small.outputs["y"], {small.inputs["x"]: data})
    assert close(got, model(x=data)["y"], 0.05)


def test_a_percentile_ignores_rare_numbers():
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None, 50], name="x")
        y = tw.ops.mat_mul(x, normal(50, 5))
    data = RNG.uniform(-1, 1, (400, 50)).astype(np.float32)
    data[0, 0] = 1000
    with tw.Session(g) as s:
        ranges = [tw.quantize(s, [data[k:k + 100] for k in order], inputs={"x": x}, outputs={"y": y}, **how).layers[0].input_range
                  for order, how in (((0, 100, 200, 300), {}), ((0, 100, 200, 300), dict(method="percentile", percentile=99.9)),
                                     ((300, 200, 100, 0), dict(method="percentile", percentile=99.9)))]
    assert ranges[0] == 1000 and ranges[1] < 2 and ranges[2] < 2


def test_operations_may_be_skipped_and_their_layers_follow_no_training():
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None, 6], name="x")
        with tw.name_scope("head"):
            y = tw.ops.mat_mul(x, normal(6, 4))
        z = tw.ops.mat_mul(y, normal(4, 3))
    with tw.Session(g) as s:
        small = tw.quantize(s, [normal(9, 6)], inputs={"x": x}, outputs={"z": z}, skip=["head/*"])
        assert [layer.name for layer in small.layers] == [z.operation.name] and "MatMul" in behind(small.outputs["z"])


def test_values_that_broadcast_are_not_joined():
    """A sum of higher rank, or of a value with one row for all images, is no bias and no summand."""
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None, 6], name="x")
        images = tw.placeholder("float32", [None, 5, 5, 2], name="images")
        high = tw.ops.mat_mul(x, normal(6, 4)) + normal(1, 1, 4)
        kernel, ways = normal(1, 1, 2, 3), dict(strides=[1, 1, 1, 1], padding="SAME")
        first = tw.ops.mean(images, np.int32([0]), keep_dims=True)
        sums = tw.ops.relu(tw.ops.conv2d(images, kernel, **ways) + tw.ops.conv2d(first, kernel, **ways))
        none = tw.ops.mat_mul(x, normal(6, 0))
    data = {"x": normal(8, 6), "images": normal(3, 5, 5, 2)}
    with tw.Session(g) as s:
        wanted = {"high": high, "sums": sums, "none": none}
        small = tw.quantize(s, [data], inputs={"x": x, "images": images}, outputs=wanted)
        got, exact = s.run([small.outputs, wanted], {x: data["x"], images: data["images"]})
        assert len(small.layers) == 4
        assert got["high"].shape == (1, 8, 4) and close(got["high"], exact["high"], 0.05)
        assert got["sums"].shape == (3, 5, 5, 3) and close(got["sums"], exact["sums"], 0.05)
        assert got["none"].shape == (8, 0)


def test_weights_must_be_finite():
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None, 6], name="x")
        y = tw.ops.mat_mul(x, np.float32([[np.inf, 1]] * 6), name="head")
        z = tw.ops.bias_add(tw.ops.mat_mul(x, normal(6, 2), name="tail"), np.float32([0, np.nan]))
    with tw.Session(g) as s:
        for name, value in (("head", y), ("tail", z)):
            with pytest.raises(tw.InvalidArgumentError, match=f"weights of '{name}'.*not finite.*skip"):
                tw.quantize(s, [normal(2, 6)], inputs={"x": x}, outputs={"y": value})


def test_what_cannot_be_done_is_said():
    with tw.Graph() as g:
        x, w = tw.placeholder("float32", [None, 6], name="x"), tw.placeholder("float32", [6, 2], name="w")
        y = tw.ops.mat_mul(x, w)
        z = tw.ops.mat_mul(x, normal(6, 3))
    with tw.Session(g) as s:
        with pytest.raises(tw.InvalidArgumentError, match="no operation can run in 8 bits"):
            tw.quantize(s, [(normal(2, 6), normal(6, 2))], inputs={"x": x, "w": w}, outputs={"y": y})
        with pytest.raises(tw.InvalidArgumentError, match="no batches"):
            tw.quantize(s, [], inputs={"x": x}, outputs={"z": z})
        with pytest.raises(tw.InvalidArgumentError, match=r"batch 0 .*\['v'\].*\['x'\]"):
            tw.quantize(s, [{"v": normal(2, 6)}], inputs={"x": x}, outputs={"z": z})
        with pytest.raises(tw.InvalidArgumentError, match=r"batch 0 has 2 values.*\['x'\]"):
            tw.quantize(s, [(normal(2, 6), normal(2))], inputs={"x": x}, outputs={"z": z})
        with pytest.raises(tw.InvalidArgumentError, match="not finite"):
            tw.quantize(s, [np.full((2, 6), np.inf, np.float32)], inputs={"x": x}, outputs={"z": z})
        with pytest.raises(ValueError, match="inputs="):
            tw.quantize(s, [normal(2, 6)])
        with pytest.raises(ValueError, match="'median'"):
            tw.quantize(s, [normal(2, 6)], inputs={"x": x}, outputs={"z": z}, method="median")
    with pytest.raises(TypeError, match="no session"):
        tw.quantize(g, [normal(2, 6)])


if __name__ == "__main__":
    raise SystemExit(pytest.main(["-q", "-p", "no:cacheprovider", __file__]))
