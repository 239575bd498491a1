"""ParseSequenceExampleV2, ParseSequenceExample and ParseSingleSequenceExample against Python's dicts."""
import numpy as np
import pytest

import thalweg as tw
from example_bytes import field, sequence_example

F, I, S = "float32", "int64", "string"


class Features:
    """The features to parse. sparse: (key, type); dense: (key, type, shape, default) of the context, (key, type, shape, whether it may be
    missing) of lists; ragged: (key, type, type of splits)."""

    def __init__(self, sparse=(), dense=(), ragged=(), list_sparse=(), list_dense=(), list_ragged=()):
        self.parts = sparse, dense, ragged, list_sparse, list_dense, list_ragged

    def attrs(self):
        sparse, dense, ragged, list_sparse, list_dense, list_ragged = self.parts
        column = lambda part, k: [x[k] for x in part]
        return dict(Ncontext_sparse=len(sparse), context_sparse_types=column(sparse, 1), Tcontext_dense=column(dense, 1),
                    context_dense_shapes=column(dense, 2), Nfeature_list_sparse=len(list_sparse), Nfeature_list_dense=len(list_dense),
                    feature_list_sparse_types=column(list_sparse, 1), feature_list_dense_types=column(list_dense, 1),
                    feature_list_dense_shapes=column(list_dense, 2))

    def defaults(self, graph):
        return [graph.constant(d, t) for _, t, _, d in self.parts[1]]

    def keys(self, k):
        return [x[0] for x in self.parts[k]]


def texts(values):
    return np.array(list(values), object).reshape(-1)


def run(graph, op):
    with tw.Session(graph) as s:
        return flat(s.run(op))


def flat(x):
    return [y for part in x for y in flat(part)] if isinstance(x, (list, tuple)) else [x]


def parse(graph, serialized, features, names=()):
    """Runs ParseSequenceExampleV2."""
    with graph:
        ragged, list_dense, list_ragged = features.parts[2], features.parts[4], features.parts[5]
        op = graph.op("ParseSequenceExampleV2", graph.constant(serialized, S), graph.constant(texts(names), S),
                      *(graph.constant(texts(features.keys(k)), S) for k in range(6)),
                      graph.constant(np.array([x[3] for x in list_dense], bool)), features.defaults(graph), **features.attrs(),
                      context_ragged_value_types=[x[1] for x in ragged], context_ragged_split_types=[x[2] for x in ragged],
                      feature_list_ragged_value_types=[x[1] for x in list_ragged], feature_list_ragged_split_types=[x[2] for x in list_ragged])
    return run(graph, op)


def parse_batch(graph, serialized, features, names=()):
    """Runs ParseSequenceExample."""
    with graph:
        op = graph.op("ParseSequenceExample", graph.constant(serialized, S), graph.constant(texts(names), S), features.defaults(graph),
                      **features.attrs(), Ncontext_dense=len(features.parts[1]), context_sparse_keys=features.keys(0),
                      context_dense_keys=features.keys(1), feature_list_sparse_keys=features.keys(3), feature_list_dense_keys=features.keys(4),
                      feature_list_dense_missing_assumed_empty=[x[0] for x in features.parts[4] if x[3]])
    return run(graph, op)


def parse_single(graph, serialized, features, name=b""):
    """Runs ParseSingleSequenceExample."""
    with graph:
        text = lambda v: graph.constant(np.array(v, object), S)
        keys = ([text(v) for v in features.keys(k)] for k in (0, 1, 3, 4))
        attrs = features.attrs() | dict(Ncontext_dense=len(features.parts[1]))
        op = graph.op("ParseSingleSequenceExample", graph.constant(serialized, S),
                      graph.constant(texts(x[0] for x in features.parts[4] if x[3]), S), *keys, features.defaults(graph), text(name), **attrs)
    return run(graph, op)


def random_sequence(rng):
    n = lambda: int(rng.integers(0, 4))
    context = {b"f": rng.normal(size=2).astype(np.float32), b"i": rng.integers(-2 ** 63, 2 ** 63 - 1, n())}
    steps = n()
    lists = {b"words": [[rng.bytes(n()) for _ in range(n())] for _ in range(n())], b"frames": [rng.normal(size=2).astype(np.float32) for _ in range(steps)],
             b"ids": [rng.integers(0, 100, n()) for _ in range(n())], b"unused": [[b"x"]]}
    if rng.integers(3) == 0:
        del context[b"i"]
    if rng.integers(3) == 0:
        del lists[b"frames"]
    return context, lists


ALL = Features([(b"i", I)], [(b"f", F, [2], [])], [(b"i", I, "int32")], [(b"words", S), (b"ids", I)], [(b"frames", F, [2], True)],
               [(b"ids", I, "int64"), (b"words", S, "int32")])
OLDER = Features(*ALL.parts[:2], [], *ALL.parts[3:5])


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("n", [0, 1, 30])
def test_features_of_random_sequences(graph, n, packed):
    rng = np.random.default_rng(n)
    drawn = [random_sequence(rng) for _ in range(n)]
    got = parse(graph, texts(sequence_example(*x, packed) for x in drawn), ALL)
    (indices, i, shape, f, ragged_i, i_splits, word_at, id_at, words, ids, word_shape, id_shape, frames, lengths, ragged_ids, ragged_words,
     id_outer, word_outer, id_inner, word_inner) = got
    numbers = [c.get(b"i", []) for c, _ in drawn]
    assert indices.tolist() == [[k, j] for k, v in enumerate(numbers) for j in range(len(v))]
    assert i.tolist() == ragged_i.tolist() == [x for v in numbers for x in v]
    assert shape.tolist() == [n, max(map(len, numbers), default=0)]
    assert i_splits.tolist() == np.cumsum([0, *map(len, numbers)]).tolist() and i_splits.dtype == np.int32
    assert np.array_equal(f, np.array([c[b"f"] for c, _ in drawn]).reshape(n, 2))

    for key, at, values, size, ragged, outer, inner in ((b"words", word_at, words, word_shape, ragged_words, word_outer, word_inner),
                                                        (b"ids", id_at, ids, id_shape, ragged_ids, id_outer, id_inner)):
        of = [x[key] for _, x in drawn]
        assert at.tolist() == [[k, s, j] for k, steps in enumerate(of) for s, v in enumerate(steps) for j in range(len(v))]
        assert values.tolist() == ragged.tolist() == [x for steps in of for v in steps for x in v]
        assert size.tolist() == [n, max(map(len, of), default=0), max((len(v) for steps in of for v in steps), default=0)]
        assert outer.tolist() == np.cumsum([0, *map(len, of)]).tolist()
        assert inner.tolist() == np.cumsum([0, *(len(v) for steps in of for v in steps)]).tolist()
    assert (id_outer.dtype, word_inner.dtype) == (np.int64, np.int32)
    steps = [x.get(b"frames", []) for _, x in drawn]
    padded = np.zeros((n, max(map(len, steps), default=0), 2), np.float32)
    for to, v in zip(padded, steps):
        to[:len(v)] = np.reshape(v, (-1, 2))
    assert np.array_equal(frames, padded) and lengths.tolist() == [*map(len, steps)]


def same(got, wanted):
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()


def test_the_op_with_keys_as_attributes_gives_the_same(graph):
    rng = np.random.default_rng(5)
    batch = texts(sequence_example(*random_sequence(rng)) for _ in range(6))
    same(parse_batch(graph, batch, OLDER), parse(graph, batch, OLDER))


def test_the_op_for_one_message_gives_the_same_but_the_lengths(graph):
    context, lists = random_sequence(np.random.default_rng(8))
    one = sequence_example(context, lists | {b"frames": [np.float32([1, 2])] * 3})
    wanted = parse(graph, one, OLDER)
    assert wanted[-1].tolist() == 3 and wanted[-2].shape == (3, 2)
    same(parse_single(graph, one, OLDER, b"name"), wanted[:-1])


def test_one_message_without_a_batch(graph):
    one = sequence_example({b"i": np.int64([7, 8])}, {b"ids": [np.int64([1]), np.int64([]), np.int64([2, 3])]})
    features = Features([(b"i", I)], ragged=[(b"i", I, "int64")], list_sparse=[(b"ids", I)], list_ragged=[(b"ids", I, "int64")])
    got = [x.tolist() for x in parse(graph, one, features)]
    assert got == [[[0], [1]], [7, 8], [2], [7, 8], [], [[0, 0], [2, 0], [2, 1]], [1, 2, 3], [3, 2], [1, 2, 3], [], [0, 1, 1, 3]]


def test_texts_are_padded_with_nothing(graph):
    batch = texts([sequence_example({}, {b"s": [[b"a"], [b"b"]]}), sequence_example({}, {b"s": [[b"c"]]}), sequence_example({}, {})])
    values, lengths = parse(graph, batch, Features(list_dense=[(b"s", S, [], True)]))
    assert values.tolist() == [[b"a", b"b"], [b"c", b""], [b"", b""]] and lengths.tolist() == [2, 1, 0]


def test_errors_name_feature_step_and_message(graph):
    good, none = sequence_example({b"f": np.float32([1])}, {b"s": [np.float32([1, 2])] * 2}), sequence_example({}, {})

    def fails(message, serialized, features=Features(), by=parse, **more):
        with pytest.raises(tw.InvalidArgumentError, match=message):
            by(graph, serialized, features, **more)

    two = lambda b: texts([good, b])
    dense = Features(list_dense=[(b"s", F, [2], False)])
    for by in (parse, parse_batch):
        fails("feature list 's' of example 1 is missing; .* feature_list_dense_missing_assumed_empty", two(none), dense, by)
        fails("example 1 of 3 bytes is no serialized SequenceExample", two(b"abc"), dense, by)
        fails("feature 'f' of example 1 .*is missing and has no default", two(none), Features(dense=[(b"f", F, [1], [])]), by)
        fails("give one for each, or none", two(good), dense, by, names=[b"a"])
    fails("feature list 's' of example 0 is missing", none, dense, parse_single)
    fails(r"step 1 of feature list 's' of example 0 \('x'\) has 3 values; its shape .2. wants 2",
          sequence_example({}, {b"s": [np.float32([1, 2]), np.float32([1, 2, 3])]}), dense, parse_single, name=b"x")
    wrong = sequence_example({}, {b"s": [np.float32([1, 2]), np.int64([1, 2])]})
    fails("step 1 of feature list 's' of example 0 is int64; float is asked for", wrong, dense)
    fails("step 1 of feature list 's' of example 0 is int64; float is asked for", wrong, Features(list_sparse=[(b"s", F)]))
    fails("step 1 of feature list 's' of example 0 is int64; float is asked for", wrong, Features(list_ragged=[(b"s", F, "int64")]))
    fails("feature list 's' of example 0 is damaged", field(2, field(1, field(1, b"s") + field(2, b"\x0a\x05ab"))), dense)
    fails("the shape of a step must be known", good, Features(list_dense=[(b"s", F, [-1, 2], False)]))
    fails("a scalar or a vector", np.array([[good]], object))
    fails("'serialized' must be a vector", good, by=parse_batch)
    fails("'serialized' must be a scalar", two(none), by=parse_single)
    with pytest.raises(tw.InvalidArgumentError, match="'Nfeature_list_sparse' has 2 and 'feature_list_sparse_types' has 1"), graph:
        graph.op("ParseSequenceExample", graph.constant(two(none), S), graph.constant(texts([]), S), [], context_sparse_keys=[],
                 context_dense_keys=[], feature_list_sparse_keys=[b"a", b"b"], feature_list_dense_keys=[],
                 feature_list_dense_missing_assumed_empty=[], Nfeature_list_sparse=2, feature_list_sparse_types=[F])


def test_hostile_bytes_are_refused_or_parsed(graph):
    rng = np.random.default_rng(9)
    with graph:
        x = tw.placeholder("string", [])
        text = lambda *keys: graph.constant(texts(keys), S)
        op = graph.op("ParseSequenceExampleV2", x, text(), text(b"i"), text(b"f"), text(b"i"), text(b"words"), text(b"frames"), text(b"ids"),
                      graph.constant(np.array([True])), [graph.constant([0.0, 0.0], F)], Ncontext_sparse=1, context_sparse_types=[I],
                      Tcontext_dense=[F], context_dense_shapes=[[2]], context_ragged_value_types=[I], context_ragged_split_types=[I],
                      Nfeature_list_sparse=1, feature_list_sparse_types=[S], Nfeature_list_dense=1, feature_list_dense_types=[F],
                      feature_list_dense_shapes=[[2]], feature_list_ragged_value_types=[I], feature_list_ragged_split_types=[I])
    refused, count = 0, 2000
    with tw.Session(graph) as s:
        for _ in range(count):
            b = bytearray(sequence_example(*random_sequence(rng), bool(rng.integers(2))))
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
            try:
                s.run(op, {x: bytes(b)})
            except tw.InvalidArgumentError:
                refused += 1
    assert count // 8 < refused < count, refused
