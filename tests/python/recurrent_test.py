import numpy as np
import pytest

import thalweg as tw

rng = np.random.default_rng(3)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, c, h, kernel, bias, forget_bias):
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ kernel + bias, 4, 1)
    c = sigmoid(f + forget_bias) * c + sigmoid(i) * np.tanh(j)
    return c, sigmoid(o) * np.tanh(c)


def gru(x, h, gates_kernel, gates_bias, candidate_kernel, candidate_bias):
    r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ gates_kernel + gates_bias), 2, 1)
    return u * h + (1 - u) * np.tanh(np.concatenate([x, r * h], 1) @ candidate_kernel + candidate_bias)


def followed(step, states, inputs, lengths):
    """Outputs and last states of a sequence whose rows end early."""
    outputs = []
    for t, x in enumerate(inputs):
        going = (t < lengths)[:, None]
        after = step(x, *states)
        states = tuple(np.where(going, new, old) for new, old in zip(after, states))
        outputs.append(np.where(going, after[-1], 0))
    return outputs, states


@pytest.mark.parametrize("lengths", [None, [3, 0, 2, 1]])
def test_unrolled_cells_follow_their_formulas(run, graph, lengths):
    inputs = rng.normal(size=(3, 4, 5)).astype(np.float32)
    cells = tw.recurrent.LSTMCell(5, 6, seed=1, forget_bias=0.5), tw.recurrent.GRUCell(5, 6, seed=2)
    (outputs, state), (gru_outputs, gru_state) = (cell.unroll(list(inputs), lengths) for cell in cells)
    assert [v.name for cell in cells for v in cell.variables] == [
        "lstm/kernel", "lstm/bias", "gru/gates/kernel", "gru/gates/bias", "gru/candidate/kernel", "gru/candidate/bias"]
    run(graph.initializer())
    kernel, bias, *of_gru = run([v for cell in cells for v in cell.variables])
    ends, zero = np.array(lengths or [3] * 4), np.zeros((4, 6))
    wanted, last = followed(lambda x, c, h: lstm(x, c, h, kernel, bias, 0.5), (zero, zero), inputs, ends)
    np.testing.assert_allclose(run(outputs), wanted, atol=1e-5)
    np.testing.assert_allclose(run(list(state)), last, atol=1e-5)
    wanted, last = followed(lambda x, h: (gru(x, h, *of_gru),), (zero,), inputs, ends)
    np.testing.assert_allclose(run(gru_outputs), wanted, atol=1e-5)
    np.testing.assert_allclose(run(gru_state), last[0], atol=1e-5)


def test_steps_are_what_sequences_are_made_of(run, graph):
    inputs = list(rng.normal(size=(3, 2, 4)).astype(np.float32))
    first, second = tw.recurrent.LSTMCell(4, 3, seed=1), tw.recurrent.GRUCell(4, 3, name="another", seed=1)
    outputs, state = first.unroll(inputs)
    gru_outputs, gru_state = second.unroll(inputs)
    at, gru_at = None, None
    for x in inputs:
        output, at = first.step(x, at)
        gru_at = second.step(x, gru_at)
    run(graph.initializer())
    np.testing.assert_array_equal(*run([outputs[-1], output]))
    np.testing.assert_array_equal(*run([state[0], at[0]]))
    np.testing.assert_array_equal(*run([gru_state, gru_at]))


def test_cells_of_one_name_are_two(graph):
    names = [tw.recurrent.LSTMCell(2, 2).variables[0].name for _ in range(2)]
    assert names == ["lstm/kernel", "lstm_1/kernel"]
    with pytest.raises(tw.InvalidArgumentError, match="cell_size 0"):
        tw.recurrent.GRUCell(2, 0)
    with pytest.raises(tw.InvalidArgumentError, match="no steps"):
        tw.recurrent.LSTMCell(2, 2).unroll([])


@pytest.mark.parametrize("make", [tw.recurrent.LSTMCell, tw.recurrent.GRUCell])
def test_cells_learn_what_came_first(run, graph, make):
    """The sign of the first number, five steps later."""
    x, wanted = tw.placeholder("float32", [None, 5, 1]), tw.placeholder("float32", [None])
    cell = make(1, 8, seed=4)
    outputs, _ = cell.unroll([x[:, t] for t in range(5)])
    w = tw.Variable(np.full((8, 1), 0.1, np.float32), name="w")
    said = (outputs[-1] @ w)[:, 0]
    loss = ((said - wanted) ** 2).mean()
    step = tw.train.Adam(0.02).minimize(loss)
    run(graph.initializer())
    for _ in range(200):
        numbers = rng.normal(size=(32, 5, 1)).astype(np.float32)
        run(step, {x: numbers, wanted: np.sign(numbers[:, 0, 0])})
    numbers = rng.normal(size=(500, 5, 1)).astype(np.float32)
    got = run(said, {x: numbers})
    assert (np.sign(got) == np.sign(numbers[:, 0, 0])).mean() > 0.95


def test_half_sequences(run, graph):
    cell = tw.recurrent.LSTMCell(2, 3, dtype="float16", seed=1)
    outputs, (c, h) = cell.unroll([np.ones((2, 2), np.float16)] * 2, np.array([2, 1], np.int64))
    run(graph.initializer())
    first, last, kept = run([outputs[0], outputs[1], h])
    assert last.dtype == np.float16 and not last[1].any() and last[0].any()
    np.testing.assert_array_equal(kept, [last[0], first[1]])


CELLS = {"lstm": (tw.recurrent.LSTMCell, lambda state: list(state)), "gru": (tw.recurrent.GRUCell, lambda state: [state])}


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("lengths", [None, [4, 0, 9]])
def test_a_loop_gives_the_numbers_of_the_unrolled_steps(run, graph, kind, lengths):
    make, parts = CELLS[kind]
    inputs = tw.placeholder("float32", [None, 3, 4])
    data = rng.normal(size=(4, 3, 4)).astype(np.float32)
    cell = make(4, 5, seed=3)
    unrolled, at = cell.unroll([inputs[t] for t in range(4)], lengths)
    outputs, last = cell.loop(inputs, lengths)
    made = [tw.ops.pack(unrolled), *parts(at)], [outputs, *parts(last)]
    slopes = [tw.gradients([(v * v * v).sum() + v.sum() for v in values], [inputs, *cell.variables]) for values in made]
    run(graph.initializer())
    for a, b in zip(*(run(values + slope, {inputs: data}) for values, slope in zip(made, slopes))):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert outputs.shape == (None, 3, 5)
    if lengths:
        assert not run(outputs, {inputs: data})[:, 1].any()


def test_a_cell_goes_on_from_a_state_inside_loops_of_all_kinds(run, graph):
    """Steps inside a loop, a fold and a condition read the cell's variables from around."""
    cell = tw.recurrent.LSTMCell(2, 3, seed=5)
    inputs, zero = tw.constant(rng.normal(size=(6, 2, 2)).astype(np.float32)), np.zeros((2, 3), np.float32)
    begin = (tw.constant(zero + 0.5), tw.constant(zero - 0.25))
    outputs, (c, h) = cell.loop(inputs, state=begin)

    def step(i, c, h):
        _, (c, h) = cell.step(inputs[i], (c, h))
        return [i + 1, c, h]

    looped = tw.while_loop(lambda i, c, h: i < 6, step, [0, *begin])[1:]
    folded = tw.foldl(lambda state, x: list(cell.step(x, tuple(state))[1]), inputs, list(begin))
    chosen = tw.cond(tw.constant(True), lambda: list(cell.loop(inputs, state=begin)[1]), lambda: list(begin))
    slopes = [tw.gradients(h, cell.variables) for h in (h, looped[1], folded[1], chosen[1])]
    run(graph.initializer())
    wanted = run([c, h])
    for found in (looped, folded, chosen):
        for a, b in zip(run(found), wanted):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    for slope in slopes[1:]:
        for a, b in zip(run(slope), run(slopes[0])):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_cell_in_a_loop_learns_from_sequences_of_many_lengths(run, graph):
    """The sum of the numbers of a sequence, which may end early."""
    x, ends, wanted = tw.placeholder("float32", [None, None, 1]), tw.placeholder("int32", [None]), tw.placeholder("float32", [None])
    cell = tw.recurrent.GRUCell(1, 8, seed=4)
    _, state = cell.loop(x, ends)
    w = tw.Variable(np.full((8, 1), 0.1, np.float32), name="w")
    loss = (((state @ w)[:, 0] - wanted) ** 2).mean()
    step = tw.train.Adam(0.02).minimize(loss)
    run(graph.initializer())
    losses = []
    for i in range(200):
        numbers, lengths = rng.normal(size=(3 + i % 3, 32, 1)).astype(np.float32), rng.integers(1, 4, 32)
        sums = (numbers[:, :, 0] * (np.arange(len(numbers))[:, None] < lengths)).sum(0)
        losses.append(run([loss, step], {x: numbers, ends: lengths, wanted: sums})[0])
    assert np.mean(losses[-20:]) < 0.1 * np.mean(losses[:20])


def test_inputs_of_a_loop_are_a_sequence_of_batches(graph):
    with pytest.raises(tw.InvalidArgumentError, match=r"inputs has rank 2; it must be \[steps, batch, input\]"):
        tw.recurrent.LSTMCell(2, 2).loop(np.zeros((3, 2), np.float32))


def projected(x, c, h, kernel, bias, projection, forget_bias=1.0):
    c, whole = lstm(x, c, h, kernel, bias, forget_bias)
    return c, whole @ projection


@pytest.mark.parametrize("lengths", [None, [3, 0, 2, 1]])
@pytest.mark.parametrize("fed", [False, True])
def test_a_projected_cell_follows_its_formula_unrolled_and_in_a_loop(run, graph, lengths, fed):
    inputs = rng.normal(size=(3, 4, 5)).astype(np.float32)
    cell = tw.recurrent.ProjectedLSTMCell(5, 6, 2, seed=1, forget_bias=0.5)
    assert [(v.name, v.shape) for v in cell.variables] == [("lstm/kernel", (7, 24)), ("lstm/bias", (24,)), ("lstm/projection", (6, 2))]
    x = tw.placeholder("float32", [None, None, 5]) if fed else graph.constant(inputs)
    feeds = {x: inputs} if fed else {}
    outputs, state = cell.unroll([x[t] for t in range(3)], lengths)
    looped, last = cell.loop(x, lengths)
    assert looped.shape == ((None, 4 if lengths else None, 2) if fed else (3, 4, 2))
    run(graph.initializer())
    kernel, bias, projection = run(cell.variables)
    assert (np.abs(kernel) <= np.sqrt(6 / 31)).all() and kernel.std() > 0.2 and not bias.any()
    ends, zeros = np.array(lengths or [3] * 4), (np.zeros((4, 6)), np.zeros((4, 2)))
    wanted, after = followed(lambda x, c, h: projected(x, c, h, kernel, bias, projection, 0.5), zeros, inputs, ends)
    np.testing.assert_allclose(run(outputs, feeds), wanted, atol=1e-5)
    np.testing.assert_allclose(run(looped, feeds), wanted, atol=1e-5)
    for found in (state, last):
        for got, value in zip(run(list(found), feeds), after):
            np.testing.assert_allclose(got, value, atol=1e-5)


def test_gradients_of_a_projected_cell_are_those_of_its_steps(run, graph):
    inputs = graph.constant(rng.normal(size=(4, 3, 5)).astype(np.float32))
    cell, at, steps = tw.recurrent.ProjectedLSTMCell(5, 6, 2, seed=1), None, []
    for t in range(4):
        output, at = cell.step(inputs[t], at)
        steps.append(output)
    weights = graph.constant(rng.normal(size=(4, 3, 2)).astype(np.float32))
    one, other = (tw.gradients((outputs * weights).sum(), cell.variables) for outputs in (tw.ops.pack(steps), cell.loop(inputs)[0]))
    run(graph.initializer())
    for a, b in zip(run(one), run(other)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        assert np.abs(a).max() > 1e-3


def test_a_projected_cell_tells_mistakes(graph):
    for projection in (0, 2.5, True):
        with pytest.raises(ValueError, match=f"ProjectedLSTMCell: projection is {projection}; it must be a whole number above 0"):
            tw.recurrent.ProjectedLSTMCell(3, 4, projection)
    cell, x = tw.recurrent.ProjectedLSTMCell(3, np.int64(4), 2), graph.constant(np.zeros((1, 3), np.float32))
    for call, given in ((cell.step, x), (cell.unroll, [x]), (cell.loop, x[None])):
        with pytest.raises(ValueError, match=r"state is array.*; it must be a pair \(c .batch, 4., h .batch, 2.\)"):
            call(given, state=np.zeros((1, 4), np.float32))
    with pytest.raises(ValueError, match="there are no inputs"):
        cell.unroll([])
