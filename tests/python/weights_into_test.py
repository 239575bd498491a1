"""Weights of others in modules, sessions and variables: rules for names, conversions, and one error for all that does not fit."""
import json
import struct

import numpy as np
import pytest

import thalweg as tw

RNG = np.random.default_rng(6)


class Perceptron(tw.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = tw.nn.Dense(5, "relu"), tw.nn.Dense(3)

    def forward(self, x):
        return self.out(self.hidden(x))


# Names and layout as PyTorch's torch.nn.Linear has them: [outputs, inputs].
STATE = {"layers.0.weight": RNG.normal(size=(5, 4)).astype(np.float32), "layers.0.bias": RNG.normal(size=5).astype(np.float32),
         "head.weight": RNG.normal(size=(3, 5)).astype(np.float32), "head.bias": RNG.normal(size=3).astype(np.float32)}
NAMES = {"dense/kernel": "layers.0.weight^T", "dense/bias": "layers.0.bias", "dense_1/kernel": "head.weight^T", "dense_1/bias": "head.bias"}
X = RNG.normal(size=(7, 4)).astype(np.float32)


def wanted():
    hidden = np.maximum(X.astype(np.float64) @ STATE["layers.0.weight"].T + STATE["layers.0.bias"], 0)
    return hidden @ STATE["head.weight"].T + STATE["head.bias"]


@pytest.fixture
def path(tmp_path):
    tw.weights.save(tmp_path / "w.safetensors", STATE)
    return tmp_path / "w.safetensors"


def in_graph(net):
    graph = tw.Graph()
    with graph:
        x = tw.placeholder("float32", [None, 4])
        y = net(x)
        start = graph.initializer()
    return graph, x, y, start


def test_a_module_in_a_graph_gets_weights(path):
    net = Perceptron()
    graph, x, y, start = in_graph(net)
    with tw.Session(graph) as s:
        s.run(start)
        got = tw.weights.load(path, names=NAMES, into=net, session=s)
        assert set(got) == set(NAMES) and np.array_equal(got["dense/kernel"], STATE["layers.0.weight"].T)
        np.testing.assert_allclose(s.run(y, {x: X}), wanted(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="pass session="):
        tw.weights.load(path, names=NAMES, into=net)


def test_a_module_without_a_graph_gets_weights(path):
    net = Perceptron()
    net(X)
    tw.weights.load(path, names=NAMES, into=net)
    np.testing.assert_allclose(np.asarray(net(X)), wanted(), rtol=1e-5, atol=1e-6)


def test_a_second_module_has_the_same_names(path):
    first, second = Perceptron(), Perceptron()
    first(X), second(X)
    assert first.name != second.name
    tw.weights.load(path, names=NAMES, into=second)
    np.testing.assert_allclose(np.asarray(second(X)), wanted(), rtol=1e-5, atol=1e-6)


def test_sessions_and_variables_get_weights(path):
    with tw.Graph() as graph:
        a, b = tw.Variable(np.zeros((5, 4), np.float32), name="a"), tw.Variable(np.zeros(3, np.float32), name="b")
    with tw.Session(graph) as s:
        tw.weights.load(path, names={"a": "layers.0.weight", "b": "head.bias"}, skip=["*.1.*", "layers.0.bias", "head.weight"], into=s)
        assert np.array_equal(s.run(a), STATE["layers.0.weight"]) and np.array_equal(s.run(b), STATE["head.bias"])
        tw.weights.load(path, names={"other": "layers.0.weight"}, partial=True, into={"other": a, "none": b}, session=s)
        assert np.array_equal(s.run(b), STATE["head.bias"])
    with pytest.raises(TypeError, match="into must be"):
        tw.weights.load(path, into=3)


def test_one_error_lists_all_that_does_not_fit(path):
    net = Perceptron()
    net(X)
    before = np.array(net(X))
    names = {"dense/kernel": "layers.0.weight", "dense_1/kernel": "head.weight", "more": "head.bias"}
    with pytest.raises(tw.InvalidArgumentError) as caught:
        tw.weights.load(path, names=names, into=net)
    text = str(caught.value)
    assert "does not fit module 'perceptron" in text
    assert "missing: 'dense/bias', 'dense_1/bias'" in text and "unexpected: 'layers.0.bias', 'more'" in text
    assert "'dense/kernel' is [5, 4], the variable [4, 5]" in text and "'dense_1/kernel' is [3, 5], the variable [5, 3]" in text
    with pytest.raises(tw.InvalidArgumentError, match="of another shape or type") as caught:
        tw.weights.load(path, names=names, into=net, partial=True)
    assert "missing" not in str(caught.value)
    assert np.array_equal(np.asarray(net(X)), before)
    tw.weights.load(path, names={"dense/kernel": "layers.0.weight^T"}, into=net, partial=True)
    assert not np.array_equal(np.asarray(net(X)), before)


def test_shorter_floats_are_widened_and_longer_ones_refused(tmp_path):
    with tw.Graph() as graph:
        v = tw.Variable(np.zeros(2, np.float32), name="v")
    bits = np.uint16([0x3f80, 0xc000])
    header = json.dumps({"v": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "bf").write_bytes(struct.pack("<Q", len(header)) + header + bits.tobytes())
    with tw.Session(graph) as s:
        tw.weights.load(tmp_path / "bf", into=s)
        assert s.run(v).tolist() == [1, -2]
        tw.weights.save(tmp_path / "w", {"v": np.float16([0.5, 3])})
        tw.weights.load(tmp_path / "w", into=s)
        assert s.run(v).tolist() == [0.5, 3]
        tw.weights.save(tmp_path / "w", {"v": np.float64([0.25, 4])})
        with pytest.raises(tw.InvalidArgumentError, match="'v' is float64, the variable thalweg.float32|'v' is float64, the variable float32"):
            tw.weights.load(tmp_path / "w", into=s)
        tw.weights.load(tmp_path / "w", into=s, dtype="float32")
        assert s.run(v).tolist() == [0.25, 4]
        tw.weights.save(tmp_path / "w", {"v": np.int32([1, 2])})
        with pytest.raises(tw.InvalidArgumentError, match="'v' is int32"):
            tw.weights.load(tmp_path / "w", into=s, dtype="float32")


def test_modules_are_written_under_the_names_of_others(tmp_path, path):
    net = Perceptron()
    net(X)
    tw.weights.load(path, names=NAMES, into=net)
    for name in ("out.safetensors", "out.npz"):
        tw.weights.save(tmp_path / name, net, names=NAMES)
        got = tw.weights.load(tmp_path / name)
        assert got.keys() == STATE.keys() and all(np.array_equal(got[k], v) for k, v in STATE.items())
    graph, _, _, start = in_graph(other := Perceptron())
    with tw.Session(graph) as s:
        s.run(start)
        tw.weights.load(path, names=NAMES, into=other, session=s)
        tw.weights.save(tmp_path / "graph", other, names=NAMES, session=s)
        tw.weights.save(tmp_path / "session", s)
        assert all(np.array_equal(tw.weights.load(tmp_path / "graph")[k], v) for k, v in STATE.items())
        assert {k.split("/", 1)[1] for k in tw.weights.load(tmp_path / "session")} == set(NAMES)


def test_rules_have_parts_of_names_and_orders_of_axes(tmp_path):
    arrays = {f"enc.{i}.{part}.w": np.full((2, 3), i, np.float32) for i in range(3) for part in ("q", "k")}
    arrays |= {"conv.w": RNG.normal(size=(8, 4, 3, 2)).astype(np.float32), "wte": np.ones((3, 2), np.float32), "rest": np.float32([1]),
               "bias_*": np.float32([2])}
    arrays["a.b.c.w"] = np.float32([3])
    tw.weights.save(tmp_path / "w", arrays)
    rules = {"layer_{n}/{p}/kernel": "enc.{n}.{p}.w^T", "conv/kernel": "conv.w^(2, 3, 1, 0)", "tied": "wte", "head/kernel": "wte^T", "all/*": "a.*"}
    got = tw.weights.load(tmp_path / "w", names=rules)
    layers = {f"layer_{i}/{p}/kernel" for i in range(3) for p in "qk"}
    assert set(got) == layers | {"conv/kernel", "tied", "head/kernel", "rest", "all/b.c.w", "bias_*"}
    assert got["layer_2/q/kernel"].shape == (3, 2) and (got["layer_2/q/kernel"] == 2).all()
    assert np.array_equal(got["conv/kernel"], arrays["conv.w"].transpose(2, 3, 1, 0)) and got["head/kernel"].shape == (2, 3)
    assert got["conv/kernel"].base is not None  # a view of the file
    tw.weights.save(tmp_path / "v", got, names=rules)
    back = tw.weights.load(tmp_path / "v")
    assert back.keys() == arrays.keys() and all(np.array_equal(back[k], v) for k, v in arrays.items())


@pytest.mark.parametrize("names, error, said", [
    ({"a/*": "b"}, ValueError, "same holes"), ({"a": "b^"}, ValueError, "neither"), ({"a": "b^(0,2)"}, ValueError, "each axis once"),
    ({"a": "b^()"}, ValueError, "each axis once"), ({"*a*": "*b*"}, ValueError, "more than one star"), ({"{i}": "x.{j}"}, ValueError, "same holes"),
    ({1: "a"}, TypeError, "texts"), ({"x": "none", "y": "nor this"}, tw.NotFoundError, "'none', 'nor this'"),
    ({"x": "head.bias^T"}, tw.InvalidArgumentError, "has 1 axes"), ({"x": "head.weight^(0,1,2)"}, tw.InvalidArgumentError, "reorders 3"),
    ({"head.bias": "head.weight"}, tw.InvalidArgumentError, "two tensors would be named 'head.bias'")])
def test_wrong_rules_are_refused(path, names, error, said):
    with pytest.raises(error, match=said):
        tw.weights.load(path, names=names)


def test_two_names_for_one_place_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="two tensors would be written as 'a'"):
        tw.weights.save(tmp_path / "w", {"a": np.ones(1), "b": np.ones(1)}, names={"b": "a"})
    assert not list(tmp_path.iterdir())


def test_an_index_names_what_its_parts_have(tmp_path):
    tw.weights.save(tmp_path / "one", {"a": np.float32([1])})
    tw.weights.save(tmp_path / "two", {"b": np.float32([2])})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 8}, "weight_map": {"a": "one", "b": "two"}}))
    assert set(tw.weights.load(index)) == {"a", "b"} and tw.weights.metadata(index) == {"total_size": 8}
    index.write_text(json.dumps({"weight_map": {"a": "two", "b": "two", "c": "one"}}))
    with pytest.raises(tw.InvalidArgumentError, match="tensors that their files do not have: 'c', 'a'"):
        tw.weights.load(index)
    for bad in ({"weight_map": ["one"]}, {"weight_map": {"a": ["one"]}}, {}, [], {"weight_map": {"a": "one"}, "metadata": 3}):
        index.write_text(json.dumps(bad))
        with pytest.raises(tw.InvalidArgumentError, match="no index"):
            tw.weights.load(index)


def test_links_of_an_index_are_followed_on_demand(tmp_path):
    """As in the cache of Hugging Face's hub, where all files of a folder are links."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    tw.weights.save(tmp_path / "blobs/17", {"a": np.float32([1])})
    (tmp_path / "snapshot/model-00001-of-00001.safetensors").symlink_to("../blobs/17")
    index = tmp_path / "snapshot/model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-00001-of-00001.safetensors"}}))
    with pytest.raises(tw.InvalidArgumentError, match="links=True"):
        tw.weights.load(index)
    assert tw.weights.load(index, links=True)["a"] == 1
