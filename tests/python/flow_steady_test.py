"""Loops whose values keep their shapes, which run without looking for a plan in each iteration, and where that begins and ends."""
import numpy as np
import pytest

import thalweg as tw

from flow_cases import run

SMALL, LARGE = 3, 1000  # elements: values that are copied from iteration to iteration, and tensors


@pytest.mark.parametrize("size", [SMALL, LARGE, 0])
def test_variables_change_places(graph, size):
    first = [np.arange(size, dtype=np.float32) + k for k in range(3)]
    _, *ends = tw.while_loop(lambda i, *_: i < 4, lambda i, a, b, c: [i + 1, b, c, a], [0, *first])
    for got, wanted in zip(run(ends), (first[1], first[2], first[0])):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_variable_takes_the_place_of_one_that_is_computed_anew(graph, size):
    one = np.ones(size, np.int64)
    _, a, b = tw.while_loop(lambda i, *_: i < 50, lambda i, a, b: [i + 1, b, a + b], [0, 0 * one, one])
    np.testing.assert_array_equal(run([a, b]), [12586269025 * one, 20365011074 * one])


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_one_result_may_be_several_variables(graph, size):
    x = tw.placeholder("float32", [size])
    _, a, b, kept = tw.while_loop(lambda i, *_: i < 3, lambda i, a, b, kept: [i + 1, *[a + b] * 2, kept], [0, x, 2 * x, x])
    data = np.arange(size, dtype=np.float32)
    for got, times in zip(run([a, b, kept], {x: data}), (12, 12, 1)):
        np.testing.assert_array_equal(got, times * data)


def test_shapes_that_change_do_so_in_any_iteration(graph):
    # [1], [2], [2], [4], [4], ... and over a thousand bytes in the end.
    def body(i, y):
        return [i + 1, tw.cond(tw.ops.equal(i % 2, 0), lambda: tw.ops.concat_v2([y, y + 1], 0), lambda: y * 1)]

    _, y = tw.while_loop(lambda i, y: i < 18, body, [0, np.zeros(1, np.int32)], shape_invariants=[[], [None]])
    wanted = np.zeros(1, np.int32)
    for _ in range(9):
        wanted = np.concatenate([wanted, wanted + 1])
    np.testing.assert_array_equal(run(y), wanted)


def test_a_condition_looks_at_a_variable_that_the_body_does_not_read(graph):
    x = tw.placeholder("float32", [])
    i, y, _ = tw.while_loop(lambda i, y, most: y < most, lambda i, y, most: [i + 1, y * 2, most], [0, 1.0, x])
    with tw.Session(graph) as s:
        for most in (0.5, 1, 1000, 3):
            rounds = int(np.ceil(np.log2(max(most, 1))))
            assert s.run([i, y], {x: most}) == [rounds, 2**rounds]


def test_a_body_that_is_never_run_is_never_planned(graph):
    # Its sizes cannot be, but nobody comes there.
    x, n = tw.placeholder("float32", [None]), tw.placeholder("int32", [])
    _, y = tw.while_loop(lambda i, y: i < n, lambda i, y: [i + 1, tw.ops.reshape(tw.ops.reshape(y, [7]), [-1])], [0, x],
                         shape_invariants=[[], [None]])
    with tw.Session(graph) as s:
        assert s.run(y, {x: np.ones(3), n: 0}).tolist() == [1] * 3
        with pytest.raises(tw.InvalidArgumentError, match="in iteration 0"):
            s.run(y, {x: np.ones(3), n: 1})
        assert s.run(y, {x: np.ones(7), n: 5}).tolist() == [1] * 7


@pytest.mark.parametrize("engine", ["fixed", "counted"])
@pytest.mark.parametrize("threads", [1, 4])
def test_random_loops_give_what_numpy_gives(graph, engine, threads):
    rng = np.random.default_rng(5)
    kinds = [lambda a, b: (a + b, np.add), lambda a, b: (a - b, np.subtract), lambda a, b: (tw.ops.maximum(a, b), np.maximum)]
    for _ in range(20):
        n, rounds = int(rng.integers(1, 6)), int(rng.integers(0, 9))
        first = [rng.integers(-9, 9, (2, int(rng.choice([1, 2, 300])))) for _ in range(n)]
        width = [v.shape[1] for v in first]
        # Each variable becomes one of its size, or a sum, difference or maximum of two.
        moves = []
        for k in range(n):
            alike = [j for j in range(n) if width[j] == width[k]]
            moves.append((int(rng.choice(alike)), int(rng.choice(alike)), int(rng.integers(-1, 3))))

        def body(i, *values):
            return [i + 1, *[values[a] if kind < 0 else kinds[kind](values[a], values[b])[0] for a, b, kind in moves]]

        wanted = first
        for _ in range(rounds):
            wanted = [wanted[a] if kind < 0 else kinds[kind](0, 0)[1](wanted[a], wanted[b]) for a, b, kind in moves]
        got = run(tw.while_loop(lambda i, *_: i < rounds, body, [0, *first]), threads=threads, engine=engine)
        for a, b in zip(got[1:], wanted):
            np.testing.assert_array_equal(a, b)
