"""Copies: pickle and copy.deepcopy of modules, variables and optimizers; arrays of other libraries; DLPack."""
import copy
import pickle

import numpy as np
import pytest

import thalweg as tw

WAYS = {"deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x))}


def net():
    tw.random.seed(3)
    return tw.nn.Sequential(tw.nn.Conv2D(4, 3, "relu"), tw.nn.BatchNorm(), tw.nn.Flatten(), tw.nn.Dense(5, "tanh"))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_copied_module_computes_the_same_and_is_its_own(way):
    x = np.random.default_rng(1).normal(size=(2, 5, 5, 3)).astype(np.float32)
    with tw.Eager():
        first = net()
        before = first(x).numpy()
        first.parts[3].freeze()
        second = way(first)
        assert second(x).numpy().tobytes() == before.tobytes()
        assert [v.trainable for v in second.parameters()] == [v.trainable for v in first.parameters()]
        assert not {id(v) for v in first.parameters()} & {id(v) for v in second.parameters()}
        second.parts[3].freeze(False)
        assert second.parts[3].kernel.trainable and not first.parts[3].kernel.trainable
        second.parts[0].kernel.assign(second.parts[0].kernel.read() * 2)
        assert first(x).numpy().tobytes() == before.tobytes() != second(x).numpy().tobytes()
        other = np.concatenate([x, x])  # of another shape, which a program of its own serves
        assert way(first)(other).numpy()[:2].tobytes() == before.tobytes()
        with tw.Tape() as tape:
            loss = second(x).sum()
        assert all(g is not None for g in tape.gradient(loss, second.parameters(trainable=True)) if g is not False)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_shared_layer_stays_shared_and_a_new_module_has_no_variables(way):
    with tw.Eager():
        layer = tw.nn.Dense(3)
        both = way([layer, tw.nn.Sequential(layer)])
        assert both[1].parts[0] is both[0]
        x = np.ones((1, 2), np.float32)
        assert both[1](x).numpy().tobytes() == both[0](x).numpy().tobytes()
        embedding = tw.nn.Embedding(4, 2)
        ids = np.array([1, 3], np.int32)
        assert embedding(ids).numpy().tobytes() == way(embedding)(ids).numpy().tobytes()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_optimizers_are_copied(way):
    for optimizer in (tw.train.SGD(0.5, weight_decay=0.1), tw.train.Momentum(0.1, nesterov=True), tw.train.Adam(0.01), tw.train.RMSProp(0.1),
                      tw.train.LossScale(tw.train.Adam(0.1))):
        same = way(optimizer)
        assert type(same) is type(optimizer) and same is not optimizer
        results = []
        for o in (optimizer, same):
            with tw.Graph() as g:
                w = tw.Variable([1.0, -2.0])
                step = o.minimize((w * w).sum())
            with tw.Session(g) as s:
                s.run(g.initializer())
                for _ in range(3):
                    s.run(step)
                results.append(s.run(w))
        np.testing.assert_array_equal(*results)


def test_what_is_in_a_graph_is_refused(graph):
    x = tw.placeholder("float32", [1, 2])
    layer = tw.nn.Dense(3)
    again = copy.deepcopy(layer)
    layer(x)
    again(x)
    for way in WAYS.values():
        with pytest.raises(TypeError, match="module 'dense' has its variables in a graph, .*; save it by thalweg.save"):
            way(layer)


class OnlyDLPack:
    """An array of a library that knows no NumPy."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **how):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class NoNumPyType(OnlyDLPack):
    """One of PyTorch's bfloat16, which NumPy does not have."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Got unsupported ScalarType BFloat16")


class OnlyArray:
    """An array as JAX's."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


@pytest.mark.parametrize("kind", [OnlyDLPack, NoNumPyType, OnlyArray])
def test_arrays_of_other_libraries_are_taken_where_arrays_are(kind):
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    other = kind(data)
    with tw.Eager():
        value = tw.constant(other)
        assert value.dtype == tw.float32 and value.numpy().tolist() == data.tolist()
        np.testing.assert_array_equal((value + other).numpy(), 2 * data)
        np.testing.assert_array_equal(tw.ops.sum(other, 0).numpy(), data.sum(0))
        np.testing.assert_array_equal(tw.function(lambda x: x * 2)(other).numpy(), 2 * data)
        w = tw.Variable(other)
        data[0, 0] = 99  # the program may write to its array
        assert value.numpy()[0, 0] == 0 and w.read().numpy()[0, 0] == 0
    with tw.Graph() as g:
        x = tw.placeholder("float32", [2, 3])
        y = x * 3
    np.testing.assert_array_equal(tw.Session(g).run(y, {x: other}), 3 * data)


def test_values_and_variables_go_out_by_dlpack(graph):
    with tw.Eager():
        value, w = tw.constant([1.0, 2.0]) * 2, tw.Variable([3.0])
        assert np.from_dlpack(value).tolist() == [2, 4] and np.from_dlpack(w).tolist() == [3]
        assert tw.from_dlpack(value).numpy().tolist() == [2, 4]
        assert np.asarray(w).tolist() == [3]
    x = tw.placeholder("float32", [2])
    with pytest.raises(BufferError, match="has no elements before a session runs it"):
        np.from_dlpack(x)
