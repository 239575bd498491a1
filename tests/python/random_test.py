"""One seed for a program, and a seed of its own for each operation."""
import numpy as np
import pytest

import thalweg as tw


@pytest.fixture(autouse=True)
def none_after_the_test():
    yield
    tw.random.seed(None)


def drawn(build):
    """What a new graph draws in two steps of its first session."""
    with tw.Graph() as g:
        found = build()
    with tw.Session(g) as s:
        return [np.asarray(s.run(x)).tolist() for x in found for _ in range(2)]


def layers():
    """Operations of every kind that draws, in a graph and in a function of it."""
    noise = [tw.ops.random_uniform([4], dtype="float32"), tw.ops.random_standard_normal([4], dtype="float32"),
             tw.ops.random_uniform([4], dtype="float32"), tw.ops.random_shuffle(np.arange(20)), tw.ops.random_uniform_int([4], 0, 10**6)]
    inside = tw.cond(tw.ops.random_uniform([], dtype="float32") >= 0, lambda: tw.ops.random_uniform([4], dtype="float32"), lambda: tw.constant([0.0] * 4))
    weights = tw.Variable(np.ones((20, 3), np.float32)), tw.Variable(np.ones(20, np.float32))
    loss = tw.losses.sampled_softmax(*weights, [[1], [2]], np.ones((2, 3), np.float32), 4)
    cell = tw.recurrent.LSTMCell(2, 3)
    start = tw.current_graph().initializer()
    kernel = cell.variables[0].read()
    return [start, *noise, inside, loss, kernel]


def test_a_seed_makes_every_run_of_a_program_draw_the_same():
    tw.random.seed(7)
    first, second = drawn(layers), drawn(layers)
    assert first == second
    tw.random.seed(8)
    assert all(a != b for a, b in zip(first[2:12], drawn(layers)[2:12]))


def test_without_one_every_session_draws_otherwise():
    assert all(a != b for a, b in zip(drawn(layers)[2:14], drawn(layers)[2:14]))


def test_operations_of_one_seed_differ_from_each_other():
    tw.random.seed(0)
    found = drawn(lambda: [tw.ops.truncated_normal([8], dtype="float32") for _ in range(50)])
    assert len({tuple(f) for f in found}) == 100
    cells = drawn(lambda: [tw.recurrent.GRUCell(2, 3).variables[0].graph.initializer(), *(v.read() for v in tw.current_graph().variables()[:1])])
    assert cells[2] == cells[3]


def test_what_an_operation_is_given_it_keeps(graph):
    tw.random.seed(3)
    seeds = [(o["seed"], o["seed2"]) for o in (tw.ops.random_uniform([2], dtype="float32", **given).operation.attributes
                                               for given in ({}, {"seed": 5}, {"seed2": 6}, {}))]
    assert seeds == [(3, 1), (5, 0), (0, 6), (3, 2)]
    tw.random.seed(None)
    assert tw.ops.random_uniform([2], dtype="float32").operation.attributes["seed"] == 0


@pytest.mark.parametrize("wrong", [1.5, "1", True, 2**63, [1]], ids=str)
def test_a_seed_is_a_whole_number(wrong):
    with pytest.raises(TypeError, match="a seed is a whole number of 64 bits, or None, not"):
        tw.random.seed(wrong)
