"""Sizes that follow from vectors of which some elements are unknown: shapes against those of a run."""
import itertools

import numpy as np
import pytest

import thalweg as tw


def sizes_of(x):
    """A scalar that nobody knows before a run, and the sizes of x."""
    return tw.ops.shape(x)[0]


CASES = {
    "fill": (lambda x: tw.ops.fill(tw.ops.pack([sizes_of(x), 3]), 1.0), (None, 3)),
    "fill, of the size's own op": (lambda x: tw.ops.fill(tw.ops.shape(x), 1.0), (None, 4)),
    "fill, joined": (lambda x: tw.ops.fill(tw.ops.concat_v2([tw.ops.shape(x)[:1], np.int32([5, 6])], 0), 1.0), (None, 5, 6)),
    "fill, of int64": (lambda x: tw.ops.fill(tw.ops.cast(tw.ops.pack([2, sizes_of(x), 3]), DstT="int64"), 1.0), (2, None, 3)),
    "fill, gathered": (lambda x: tw.ops.fill(tw.ops.gather_v2(tw.ops.shape(x), np.int32([1, 0, 1]), 0), 1.0), (4, None, 4)),
    "fill, computed": (lambda x: tw.ops.fill(tw.ops.pack([sizes_of(x) * 2, 3]), 1.0), (None, 3)),
    "tile": (lambda x: tw.ops.tile(np.zeros((1, 3), np.float32), tw.ops.pack([sizes_of(x), 2])), (None, 6)),
    "tile of unknown sizes": (lambda x: tw.ops.tile(x, tw.ops.pack([sizes_of(x), 2])), (None, 8)),
    "reshape": (lambda x: tw.ops.reshape(x, tw.ops.pack([sizes_of(x), 2, 2])), (None, 2, 2)),
    "broadcast": (lambda x: tw.ops.broadcast_to(np.float32([[1, 2]]), tw.ops.pack([sizes_of(x), 2])), (None, 2)),
    "random": (lambda x: tw.ops.random_uniform(tw.ops.pack([sizes_of(x), 7]), dtype="float32"), (None, 7)),
    "reshaped vector": (lambda x: tw.ops.fill(tw.ops.reshape(tw.ops.pack([[sizes_of(x)], [9]]), [-1]), 1.0), (None, 9)),
    "both unknown": (lambda x: tw.ops.fill(tw.ops.pack([sizes_of(x), sizes_of(x)]), 1.0), (None, None)),
}


@pytest.mark.parametrize("case", CASES)
def test_known_elements_become_sizes(graph, case):
    make, shape = CASES[case]
    x = tw.placeholder("float32", [None, 4])
    y = make(x)
    assert y.shape == shape
    with tw.Session(graph) as s:
        for rows in (0, 1, 3):
            got = s.run(y, {x: np.zeros((rows, 4), np.float32)})
            assert len(got.shape) == len(shape) and all(known in (None, n) for n, known in zip(got.shape, shape)), got.shape


def test_vectors_that_are_no_sizes_add_nothing(graph):
    x, small = tw.placeholder("float32", [None, 4]), tw.placeholder("float32", [10, 5])
    n = sizes_of(x)
    for y in (tw.ops.strided_slice(small, np.int32([0, 0]), tw.ops.pack([n, 3]), np.int32([1, 1])),
              tw.ops.gather_v2(small, tw.ops.pack([n, 3]), 0), tw.ops.add(tw.ops.pack([n, 3]), np.int32([1, 1])),
              tw.ops.slice(small, tw.ops.pack([n, 1]), np.int32([-1, -1])),
              tw.ops.fill(tw.ops.minimum(tw.ops.pack([n, 3]), np.int32([5, 5])), 1.0)):
        with tw.Session(graph) as s:
            for rows in (0, 1, 3, 7):
                got = s.run(y, {x: np.zeros((rows, 4), np.float32), small: np.zeros((10, 5), np.float32)})
                assert all(known in (None, size) for size, known in itertools.zip_longest(got.shape, y.shape)), (y, got.shape)


def test_a_dense_layer_takes_a_state_of_an_unknown_batch(graph):
    x = tw.placeholder("float32", [None, 4])
    state = tw.ops.fill(tw.ops.pack([sizes_of(x), 6]), 0.5)
    y = tw.nn.Dense(2)(state)
    with tw.Session(graph) as s:
        s.run(graph.initializer())
        assert s.run(y, {x: np.zeros((3, 4), np.float32)}).shape == (3, 2)
