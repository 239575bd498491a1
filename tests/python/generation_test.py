"""thalweg.generation: draws, sequences and beam search against NumPy in float64 and against trying all sequences."""
import itertools

import numpy as np
import pytest

import thalweg as tw

rng = np.random.default_rng(5)


def log_softmax(x):
    x = np.asarray(x, np.float64)
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def test_top_k_leaves_the_largest_of_each_row(run, graph):
    logits = rng.normal(size=(4, 9)).astype(np.float32)
    got = run(tw.generation.top_k(graph.constant(logits), 3))
    for row, wanted in zip(got, logits):
        kept = np.argsort(-wanted)[:3]
        assert set(np.flatnonzero(np.isfinite(row))) == set(kept) and np.array_equal(row[kept], wanted[kept])
        assert (row[np.isinf(row)] < 0).all()
    for k in (9, 40, np.int64(9)):
        assert np.array_equal(run(tw.generation.top_k(graph.constant(logits), k)), logits)
    fed = tw.placeholder("float32", [None, None])
    assert np.array_equal(run(tw.generation.top_k(fed, 40), {fed: logits}), logits)
    equal = run(tw.generation.top_k(graph.constant(np.float32([[1, 1, 0]])), 1))
    assert equal.tolist() == [[1, 1, -np.inf]]


def test_draws_have_the_probabilities_of_the_scaled_logits(run, graph):
    logits = np.float32([0.5, 2.0, -1.0, 1.0])
    rows = graph.constant(np.tile(logits, (40_000, 1)))
    for temperature, k in ((0.7, None), (2.0, None), (1.0, 2), (np.float32(0.5), 3)):
        drawn = run(tw.generation.sample(rows, temperature if k is None else graph.constant(np.float32(temperature)), k, seed=3))
        assert drawn.dtype == np.int32
        chances = np.exp(log_softmax(logits / np.float64(temperature)))
        if k is not None:
            chances[np.argsort(-chances)[k:]] = 0
            chances /= chances.sum()
        found = np.bincount(drawn, minlength=4) / len(drawn)
        assert (np.abs(found - chances) <= 5 * np.sqrt(chances * (1 - chances) / len(drawn))).all(), (temperature, k, found, chances)
    best = run(tw.generation.sample(graph.constant(np.float32([[1, 3, 2], [0, -1, 0]])), 0))
    assert best.tolist() == [1, 0] and best.dtype == np.int32
    assert run(tw.generation.sample(graph.constant(np.float32([[1, 3, 2], [0, -1, 0]])), np.float32(0), 7)).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", ["half", "bfloat16", "double"])
def test_logits_may_have_any_type_of_real_numbers(run, graph, dtype):
    logits = graph.constant(np.float32([[1, 4, 2], [5, 0, 1]]))
    step = lambda token, i, state: (tw.ops.gather_v2(logits, token * 0, 0).astype(dtype), state)  # noqa: E731
    assert run(tw.generation.sample(logits.astype(dtype), 0.001, 2)).tolist() == [1, 0]
    assert run(tw.generation.generate(step, logits.astype(dtype), (), 3, temperature=0)).tolist() == [[1, 1, 1], [0, 1, 1]]
    tokens, scores = run(tw.generation.beam_search(step, logits.astype(dtype), (), 3, 2))
    assert tokens[:, 0].tolist() == [[1, 1, 1], [0, 1, 1]] and scores.dtype == np.float32


def test_equal_sequences_keep_the_order_of_their_tokens(run, graph):
    zeros = graph.constant(np.zeros((2, 3), np.float32))
    step = lambda token, i, state: (tw.ops.gather_v2(zeros, token * 0, 0), state)  # noqa: E731
    tokens, scores = run(tw.generation.beam_search(step, zeros, (), 2, 4))
    assert tokens.tolist() == [[[0, 0], [0, 1], [0, 2], [1, 0]]] * 2
    np.testing.assert_allclose(scores, np.full((2, 4), -2 * np.log(3)), rtol=1e-6)


def test_draws_without_a_graph(graph):
    with tw.Eager():
        assert tw.generation.sample(tw.constant(np.float32([[1, 3, 2]])), 0).numpy().tolist() == [1]
        assert tw.generation.sample(tw.constant(np.float32([[1, 90, 2]])), 1.0, 2).numpy().tolist() == [1]


class Chain:
    """A model whose logits depend on the token, the place and, by its state, on all tokens before."""

    def __init__(self, classes, seed):
        random = np.random.default_rng(seed)
        self.first = random.normal(0, 2, (3, classes)).astype(np.float32)
        self.table, self.mix = (random.normal(0, 1.5, s).astype(np.float32) for s in ((classes, 6), (6, classes)))
        self.keep, self.places = random.normal(0, 0.6, (6, 6)).astype(np.float32), random.normal(0, 1, (10, classes)).astype(np.float32)

    def step(self, token, i, state):
        """In the graph."""
        h = tw.ops.tanh(tw.ops.gather_v2(self.table, token, 0) + state["h"][0] @ self.keep)
        return h @ self.mix + tw.ops.gather_v2(self.places, i, 0), {"h": [h]}

    def numpy(self, tokens):
        """The logits behind tokens, from a state of zeros, in float64."""
        h = np.zeros(6)
        for token in tokens:
            h = np.tanh(self.table[token].astype(np.float64) + h @ self.keep)
        return h @ self.mix + self.places[len(tokens) - 1]

    def logits(self, example, tokens):
        return self.numpy(tokens) if len(tokens) else self.first[example].astype(np.float64)

    def score(self, example, tokens):
        return sum(log_softmax(self.logits(example, tokens[:i]))[t] for i, t in enumerate(tokens))


def begun(graph, chain, fed):
    """Logits and state behind the prompt; fed: the number of examples is known only in the run."""
    if not fed:
        return graph.constant(chain.first), {"h": [graph.constant(np.zeros((3, 6), np.float32))]}, {}
    logits, h = tw.placeholder("float32", [None, chain.first.shape[1]]), tw.placeholder("float32", [None, 6])
    return logits, {"h": (h,)}, {logits: chain.first, h: np.zeros((3, 6), np.float32)}


@pytest.mark.parametrize("fed", [False, True])
def test_greedy_sequences_take_the_best_token_each_time(run, graph, fed):
    chain = Chain(7, 1)
    logits, state, feeds = begun(graph, chain, fed)
    length = tw.placeholder("int32", [])
    fixed, free = (tw.generation.generate(chain.step, logits, state, n, temperature=0) for n in (6, length))
    got, again = run([fixed, free], {**feeds, length: 4})
    wanted = []
    for example in range(3):
        tokens = []
        while len(tokens) < 6:
            tokens.append(int(np.argmax(chain.logits(example, tokens))))
        wanted.append(tokens)
    assert got.tolist() == wanted and got.dtype == np.int32
    assert again.tolist() == [tokens[:4] for tokens in wanted]
    end = wanted[0][2]  # the sequences end where they first have it
    ended = run(tw.generation.generate(chain.step, logits, state, 6, temperature=0, end=end), feeds)
    for row, tokens in zip(ended, wanted):
        n = tokens.index(end) + 1 if end in tokens else 6
        assert row.tolist() == tokens[:n] + [end] * (6 - n)


def test_sequences_stop_when_all_have_ended(run, graph):
    logits, calls = graph.constant(np.float32([[9, 0]] * 2)), tw.Variable(np.int32(0), trainable=False)

    def step(token, i, state):
        with tw.control_dependencies([calls.assign_add(1)]):
            return tw.ops.identity(logits), state

    text = tw.generation.generate(step, logits, (), 50, temperature=0, end=0)
    run(graph.initializer())
    assert not run(text).any() and run(calls) == 1


def test_a_seed_repeats_what_is_drawn(graph):
    chain = Chain(7, 2)
    logits, state, _ = begun(graph, chain, False)
    texts = [tw.generation.generate(chain.step, logits, state, 10, temperature=2.0, k=5, seed=seed) for seed in (1, 1, 2)]
    a, b, c = tw.Session(graph).run(texts)
    assert np.array_equal(a, b) and not np.array_equal(a, c) and a.max() < 7


@pytest.mark.parametrize("fed", [False, True])
def test_a_search_with_all_beams_finds_the_likeliest_sequences(run, graph, fed):
    chain, length, beams = Chain(4, 3), 3, 4 ** 3
    logits, state, feeds = begun(graph, chain, fed)
    tokens, scores = run(tw.generation.beam_search(chain.step, logits, state, length, beams), feeds)
    assert tokens.shape == (3, beams, length) and tokens.dtype == np.int32
    for example in range(3):
        every = {t: chain.score(example, t) for t in itertools.product(range(4), repeat=length)}
        np.testing.assert_allclose(scores[example], sorted(every.values(), reverse=True), atol=1e-4)
        np.testing.assert_allclose([every[tuple(t)] for t in tokens[example]], scores[example], atol=1e-4)
        assert len({tuple(t) for t in tokens[example]}) == beams


def searched(chain, example, length, beams, end, alpha):
    """Beam search in NumPy: (tokens up to `end`, log probability) kept, best first; then by the score with the penalty."""
    kept = [((), 0.0)]
    for _ in range(length):
        longer = []
        for tokens, score in kept:
            if tokens and tokens[-1] == end:
                longer.append((tokens, score))
            else:
                steps = log_softmax(chain.logits(example, tokens))
                longer += [((*tokens, t), score + steps[t]) for t in range(len(steps))]
        kept = sorted(longer, key=lambda one: -one[1])[:beams]

    def penalised(one):
        return one[1] / ((5 + len(one[0])) / 6) ** alpha

    return sorted(((tokens, penalised((tokens, score))) for tokens, score in kept), key=lambda one: -one[1])


@pytest.mark.parametrize("beams,end,alpha", [(1, None, 0.0), (3, None, 0.0), (3, 2, 0.0), (4, 0, 0.6), (5, 1, 2.0)])
def test_a_search_keeps_the_best_beams_of_each_step(run, graph, beams, end, alpha):
    chain, length = Chain(6, 4), 7
    logits, state, _ = begun(graph, chain, False)
    tokens, scores = run(tw.generation.beam_search(chain.step, logits, state, length, beams, end=end, alpha=alpha))
    for example in range(3):
        wanted = searched(chain, example, length, beams, -1 if end is None else end, alpha)
        assert tokens[example].tolist() == [[*t, *[end] * (length - len(t))] for t, _ in wanted]
        np.testing.assert_allclose(scores[example], [score for _, score in wanted], atol=1e-4)


def test_rows_beyond_the_number_of_sequences_have_no_score(run, graph):
    logits = graph.constant(np.float32([[1, 0]]))
    step = lambda token, i, state: (token[:, None].astype("float32") * np.zeros((1, 2), np.float32), state)  # noqa: E731
    tokens, scores = run(tw.generation.beam_search(step, logits, (), 1, 5))
    assert np.isfinite(scores[0]).tolist() == [True, True, False, False, False] and tokens[0, :2].tolist() == [[0], [1]]


def test_mistakes_are_told(graph):
    logits, state = graph.constant(np.float32([[1, 2]])), graph.constant(np.zeros((1, 3), np.float32))
    step = lambda token, i, state: (logits, state)  # noqa: E731
    with pytest.raises(ValueError, match="top_k: k is 0; it must be a whole number above 0"):
        tw.generation.top_k(logits, 0)
    with pytest.raises(ValueError, match="temperature is -1; it must be 0 or a finite number above it"):
        tw.generation.sample(logits, -1)
    with pytest.raises(ValueError, match="beams is 0"):
        tw.generation.beam_search(step, logits, state, 3, 0)
    with pytest.raises(ValueError, match="beam_search: length is -1; it must be a whole number of 0 or more"):
        tw.generation.beam_search(step, logits, state, -1, 2)
    for length in (-1, np.int64(-1), 2.5, True):
        with pytest.raises(ValueError, match="generate: length is .*; it must be a whole number of 0 or more"):
            tw.generation.generate(step, logits, state, length)
    with pytest.raises(ValueError, match="temperature is -1; it must be 0 or"):
        tw.generation.sample(logits, np.float32(-1))
    with pytest.raises(ValueError, match="alpha is nan; it must be a finite number"):
        tw.generation.beam_search(step, logits, state, 3, 2, alpha=float("nan"))
    for what, search in (("generate", tw.generation.generate), ("beam_search", lambda *a, **how: tw.generation.beam_search(*a, 2, **how))):
        with pytest.raises(ValueError, match=f"{what}: end is 2; it must be one of the 2 tokens, below 2"):
            search(step, logits, state, 3, end=2)
        with pytest.raises(ValueError, match=f"{what}: end is -1; it must be a whole number of 0 or more"):
            search(step, logits, state, 3, end=-1)
        with pytest.raises(ValueError, match=f"{what}: the logits .* must have two axes, .batch, classes."):
            search(step, graph.constant(np.float32([1, 2])), state, 3)
        with pytest.raises(TypeError, match=f"{what}: step gives .*; it must give a pair"):
            search(lambda token, i, state: logits, logits, state, 3)
    with pytest.raises(ValueError, match="the number of classes of .* must be known"):
        tw.generation.beam_search(step, tw.placeholder("float32", [1, None]), state, 3, 2)
    with pytest.raises(TypeError, match="generate: step gives a state of another form than the first one"):
        tw.generation.generate(lambda token, i, state: (logits, [state]), logits, state, 3)
