"""ParseExampleV2, ParseExample and ParseSingleExample against Python's dicts."""
import numpy as np
import pytest

import thalweg as tw
from example_bytes import entry, example, field, varint


def parse(graph, serialized, sparse=(), dense=(), ragged=(), names=()):
    """sparse: (key, type); dense: (key, type, shape, default); ragged: (key, type, type of splits)."""
    text = lambda keys: np.array(list(keys), object).reshape(-1)
    with graph:
        op = graph.op("ParseExampleV2", graph.constant(serialized, "string"), graph.constant(text(names), "string"),
                      *(graph.constant(text(x[0] for x in part), "string") for part in (sparse, dense, ragged)),
                      [graph.constant(d, t) for _, t, _, d in dense], Tdense=[x[1] for x in dense], num_sparse=len(sparse),
                      sparse_types=[x[1] for x in sparse], ragged_value_types=[x[1] for x in ragged], ragged_split_types=[x[2] for x in ragged],
                      dense_shapes=[x[2] for x in dense])
    with tw.Session(graph) as s:
        return flat(s.run(op))


def flat(x):
    return [y for part in x for y in flat(part)] if isinstance(x, (list, tuple)) else [x]


def random_example(rng):
    n = lambda: int(rng.integers(0, 5))
    out = {b"f": rng.normal(size=3).astype(np.float32), b"i": rng.integers(-2 ** 63, 2 ** 63 - 1, n()), b"s": [rng.bytes(n()) for _ in range(n())],
           b"more": rng.normal(size=2 * n()).astype(np.float32), b"unused": [b"x"]}
    if rng.integers(3) == 0:
        del out[b"i"]
    if rng.integers(3) == 0:
        del out[b"f"]
    return out


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("n", [0, 1, 40])
def test_features_of_random_examples(graph, n, packed):
    rng = np.random.default_rng(n)
    examples = [random_example(rng) for _ in range(n)]
    got = parse(graph, np.array([example(e, packed) for e in examples], object).reshape(-1), sparse=[(b"i", "int64")],
                dense=[(b"f", "float32", [3], [1, 2, 3]), (b"more", "float32", [-1, 2], -5.0), (b"s", "string", [-1], b"pad")],
                ragged=[(b"i", "int64", "int32"), (b"s", "string", "int64"), (b"absent", "float32", "int32")])
    indices, values, shape, f, more, s, ints, texts, none, int_splits, text_splits, no_splits = got
    all_ints = [e.get(b"i", np.int64([])) for e in examples]
    assert indices.tolist() == [[k, j] for k, v in enumerate(all_ints) for j in range(len(v))]
    assert values.tolist() == ints.tolist() == [x for v in all_ints for x in v.tolist()]
    assert shape.tolist() == [n, max(map(len, all_ints), default=0)]
    assert int_splits.tolist() == np.cumsum([0, *map(len, all_ints)]).tolist() and int_splits.dtype == np.int32
    assert texts.tolist() == [x for e in examples for x in e[b"s"]] and text_splits.tolist() == np.cumsum([0, *(len(e[b"s"]) for e in examples)]).tolist()
    assert none.size == 0 and no_splits.tolist() == [0] * (n + 1)
    assert np.array_equal(f, np.array([e.get(b"f", [1, 2, 3]) for e in examples], np.float32).reshape(n, 3))
    rows, longest = max((len(e[b"more"]) // 2 for e in examples), default=0), max((len(e[b"s"]) for e in examples), default=0)
    padded = np.full((n, rows, 2), -5, np.float32)
    for p, e in zip(padded, examples):
        p[:len(e[b"more"]) // 2] = e[b"more"].reshape(-1, 2)
    assert np.array_equal(more, padded)
    assert s.tolist() == [e[b"s"] + [b"pad"] * (longest - len(e[b"s"])) for e in examples]


def test_one_example_without_a_batch(graph):
    e = example({b"f": np.float32([1, 2]), b"i": np.int64([5, 6, 7])})
    indices, values, shape, f = parse(graph, e, [(b"i", "int64")], [(b"f", "float32", [2], [])])
    assert (indices.tolist(), values.tolist(), shape.tolist(), f.tolist()) == ([[0], [1], [2]], [5, 6, 7], [3], [1, 2])


def test_the_last_of_equal_keys_counts_and_unknown_fields_do_not(graph):
    twice = field(1, entry(b"f", np.float32([1])) + entry(b"f", np.float32([2])) + field(9, b"other") + varint(7 << 3) + varint(300))
    more = twice + field(1, entry(b"f", np.float32([3]))) + varint(3 << 3 | 5) + b"abcd"
    got = parse(graph, np.array([twice, more], object), dense=[(b"f", "float32", [], [])])
    assert got[0].tolist() == [2, 3]


def test_errors_name_feature_and_example(graph):
    good, bad = example({b"f": np.float32([1])}), example({b"f": np.int64([1])})

    def fails(message, *args, **more):
        with pytest.raises(tw.InvalidArgumentError, match=message):
            parse(graph, *args, **more)

    two = lambda b: np.array([good, b], object)
    fails(r"feature 'f' of example 1 \('b'\) is int64; float is asked for", two(bad), dense=[(b"f", "float32", [], [])], names=[b"a", b"b"])
    fails("feature 'f' of example 1 is int64; float", two(bad), sparse=[(b"f", "float32")])
    fails("feature 'f' of example 1 is int64; float", two(bad), ragged=[(b"f", "float32", "int32")])
    fails("has 1 values; its shape .2. wants 2", good, dense=[(b"f", "float32", [2], [])])
    fails("feature 'g' of example 0 is missing and has no default", two(good), dense=[(b"g", "float32", [], [])])
    fails("they must be rows of 2", two(good), dense=[(b"f", "float32", [-1, 2], [])])
    fails("example 1 of 3 bytes is no serialized Example", two(b"abc"), dense=[(b"f", "float32", [], [])])
    fails("float, int64 or string, not int32", two(good), sparse=[(b"f", "int32")])
    fails("a scalar or a vector", np.array([[good]], object))
    fails("give one for each, or none", two(good), dense=[(b"f", "float32", [], [])], names=[b"a"])


def test_hostile_bytes_are_refused_or_parsed(graph):
    rng = np.random.default_rng(9)
    examples = []
    for _ in range(4000):
        b = bytearray(example(random_example(rng), bool(rng.integers(2))))
        for _ in range(int(rng.integers(1, 4))):
            how, at = rng.integers(4), int(rng.integers(len(b)))
            if how == 0:
                b[at] = int(rng.integers(256))
            elif how == 1:
                b[at] = int(rng.choice([0, 127, 128, 255]))
            elif how == 2:
                del b[at:at + int(rng.integers(1, 9))]
            else:
                b[at:at] = rng.bytes(int(rng.integers(1, 12)))
            b = b or bytearray(b"\0")
        examples.append(bytes(b))
    with graph:
        x = tw.placeholder("string", [])
        text = lambda *keys: graph.constant(np.array(keys, object), "string")
        op = graph.op("ParseExampleV2", x, graph.constant(np.array([], object), "string"), text(b"i", b"s"), text(b"f"),
                      text(b"more"), [graph.constant([0.0, 0.0, 0.0], "float32")], Tdense=["float32"], num_sparse=2, sparse_types=["int64", "string"],
                      ragged_value_types=["float32"], ragged_split_types=["int64"], dense_shapes=[[3]])
    with tw.Session(graph) as s:
        refused = 0
        for e in examples:
            try:
                s.run(op, {x: e})
            except tw.InvalidArgumentError:
                refused += 1
    assert 500 < refused < len(examples), refused


# ---- The ops whose keys are scalars or attributes ----


def parse_batch(graph, serialized, sparse=(), dense=(), names=()):
    """Runs ParseExample, with the arguments of `parse`."""
    with graph:
        text = lambda v: graph.constant(np.array(v, object), "string")
        op = graph.op("ParseExample", graph.constant(serialized, "string"), graph.constant(np.array(list(names), object).reshape(-1), "string"),
                      [text(x[0]) for x in sparse], [text(x[0]) for x in dense], [graph.constant(d, t) for _, t, _, d in dense],
                      Nsparse=len(sparse), Ndense=len(dense), sparse_types=[x[1] for x in sparse], Tdense=[x[1] for x in dense],
                      dense_shapes=[x[2] for x in dense])
    with tw.Session(graph) as s:
        return flat(s.run(op))


def parse_single(graph, serialized, sparse=(), dense=()):
    """Runs ParseSingleExample, with the arguments of `parse`."""
    with graph:
        op = graph.op("ParseSingleExample", graph.constant(serialized, "string"), [graph.constant(d, t) for _, t, _, d in dense],
                      num_sparse=len(sparse), sparse_keys=[x[0] for x in sparse], dense_keys=[x[0] for x in dense],
                      sparse_types=[x[1] for x in sparse], Tdense=[x[1] for x in dense], dense_shapes=[x[2] for x in dense])
    with tw.Session(graph) as s:
        return flat(s.run(op))


FEATURES = dict(sparse=[(b"i", "int64"), (b"s", "string")], dense=[(b"f", "float32", [3], [1, 2, 3]), (b"more", "float32", [-1, 2], -5.0)])


def test_parse_example_gives_what_v2_gives(graph):
    rng = np.random.default_rng(3)
    batch = np.array([example(random_example(rng)) for _ in range(7)], object)
    wanted, got = parse(graph, batch, **FEATURES), parse_batch(graph, batch, **FEATURES)
    assert len(got) == len(wanted) == 8
    for a, b in zip(got, wanted):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()


def test_parse_single_example_gives_what_v2_gives(graph):
    one = example(random_example(np.random.default_rng(4)))
    for a, b in zip(parse_single(graph, one, **FEATURES), parse(graph, one, **FEATURES), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()


def test_errors_of_the_older_ops(graph):
    good = example({b"f": np.float32([1])})

    def fails(message, run, *args, **more):
        with pytest.raises(tw.InvalidArgumentError, match=message):
            run(graph, *args, **more)

    fails("'serialized' must be a vector", parse_batch, good)
    fails("'serialized' must be a scalar", parse_single, np.array([good], object))
    fails(r"feature 'g' of example 0 \('a'\) is missing", parse_batch, np.array([good] * 2, object), dense=[(b"g", "float32", [], [])], names=[b"a", b"b"])
    fails("feature 'f' of example 0 is float; int64 is asked for", parse_single, good, sparse=[(b"f", "int64")])
    fails("give one for each, or none", parse_batch, np.array([good] * 2, object), sparse=[(b"f", "float32")], names=[b"a"])
    with pytest.raises(tw.InvalidArgumentError, match="'num_sparse' is for 2 features, 'sparse_types' for 1"), graph:
        graph.op("ParseSingleExample", graph.constant(good, "string"), [], num_sparse=2, sparse_keys=[b"f", b"g"], dense_keys=[],
                 sparse_types=["float32"], Tdense=[], dense_shapes=[])
