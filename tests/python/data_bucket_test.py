"""Windows of elements with one key, and buckets by length, against Python's lists; positions between any two elements."""
import numpy as np
import pytest

import thalweg as tw
from thalweg import data

INFINITY = 2 ** 62


def rows(lengths):
    """Elements (number, row): row k has lengths[k] numbers of k + 1."""
    def made(k, n):
        return k, tw.ops.fill(tw.ops.expand_dims(n, 0), tw.ops.cast(k + 1, DstT="float32"))
    return data.arrays(np.arange(len(lengths)), np.int64(lengths)).map(made)


def buckets(lengths, boundaries, sizes, drop=False):
    """The numbers of the elements of each batch: TensorFlow's definition, in Python."""
    held, out = {}, []
    for k, n in enumerate(lengths):
        bucket = sum(n >= b for b in boundaries)
        held.setdefault(bucket, []).append(k)
        if len(held[bucket]) == sizes[bucket]:
            out.append((bucket, held.pop(bucket)))
    return out + ([] if drop else [(b, held[b]) for b in sorted(held)])


def padded(batch, lengths, to):
    return [[k + 1.0] * lengths[k] + [0.0] * (to - lengths[k]) for k in batch]


LENGTHS = np.random.default_rng(3).integers(1, 12, 60).tolist()
BOUNDARIES, SIZES = [3, 5, 9], [4, 3, 2, 5]


def length(k, row):
    return tw.ops.shape(row)[0]


@pytest.mark.parametrize("drop", [False, True])
def test_buckets_are_those_of_the_definition(drop):
    got = list(rows(LENGTHS).bucket_by_sequence_length(length, BOUNDARIES, SIZES, drop_remainder=drop))
    want = buckets(LENGTHS, BOUNDARIES, SIZES, drop)
    assert len(got) == len(want) > 15
    for (numbers, batch), (_, ks) in zip(got, want):
        assert numbers.numpy().tolist() == ks
        assert batch.numpy().tolist() == padded(ks, LENGTHS, max(LENGTHS[k] for k in ks))


def test_padding_to_the_boundary():
    short = [n for n in LENGTHS if n < 9]
    got = list(rows(short).bucket_by_sequence_length(length, BOUNDARIES, SIZES, padding=(0, 0.0), pad_to_boundary=True))
    for (_, batch), (bucket, ks) in zip(got, buckets(short, BOUNDARIES, SIZES), strict=True):
        assert batch.numpy().tolist() == padded(ks, short, BOUNDARIES[bucket] - 1)
    with pytest.raises(tw.InvalidArgumentError, match="a length must be below 9, the last boundary; it is.*10"):
        list(rows([2, 10]).bucket_by_sequence_length(length, BOUNDARIES, SIZES, pad_to_boundary=True))


def test_without_padding_and_with_another_value():
    even = [n + n % 2 for n in LENGTHS]
    got = list(rows(even).bucket_by_sequence_length(length, [3, 5, 7, 9, 11], [2] * 6, no_padding=True))
    assert all(len(set(np.count_nonzero(b.numpy(), axis=1))) == 1 for _, b in got) and len(got) > 25
    with pytest.raises(tw.InvalidArgumentError, match="use padded_batch"):
        list(rows([1, 2]).bucket_by_sequence_length(length, [5], [2, 2], no_padding=True))
    batch = next(rows([1, 2]).bucket_by_sequence_length(length, [5], [2, 2], padding=(0, -1.0)).iterator())[1]
    assert batch.numpy().tolist() == [[1, -1], [2, 2]]


def test_a_position_between_any_two_elements_continues_with_the_next():
    d = rows(LENGTHS).shuffle(7, seed=2).bucket_by_sequence_length(length, BOUNDARIES, SIZES)
    plain = [n.numpy().tolist() for n, _ in d]
    for cut in range(len(plain) + 1):
        first, second = d.iterator(), d.iterator()
        begun = [next(first)[0].numpy().tolist() for _ in range(cut)]
        second.restore(first.save())
        assert begun + [n.numpy().tolist() for n, _ in second] == plain
    # A position inside of a window whose dataset has several elements, too.
    d = data.range(20).group_by_window(lambda x: x % 3, lambda key, window: window.map(lambda x: x * 10), 4)
    plain = [int(x) for x in d]
    assert sorted(plain) == [10 * k for k in range(20)]
    for cut in range(21):
        first, second = d.iterator(), d.iterator()
        begun = [int(next(first)) for _ in range(cut)]
        second.restore(first.save())
        assert begun + [int(x) for x in second] == plain
    with pytest.raises((tw.DataLossError, tw.InvalidArgumentError)):
        d.iterator().restore(first.save()[:-9])


def test_windows_whose_sizes_depend_on_the_key():
    d = data.range(12).group_by_window(lambda x: x % 2, lambda key, w: w.batch(9).map(lambda b: (key, b)), lambda key: key * 2 + 1)
    got = [(int(k), b.numpy().tolist()) for k, b in d]
    want, held = [], {0: [], 1: []}
    for x in range(12):
        held[x % 2].append(x)
        if len(held[x % 2]) == (3 if x % 2 else 1):
            want.append((x % 2, held[x % 2]))
            held[x % 2] = []
    assert got == want
    assert [b.numpy().tolist() for b in data.range(5).group_by_window(lambda x: x % 2, lambda _, w: w.batch(2), INFINITY)] == [[0, 2], [4], [1, 3]]


@pytest.mark.parametrize("boundaries,sizes,message", [
    ([], [1], r"boundaries is \[\]; it must have at least one number"), ([3, 3], [1] * 3, r"boundaries is \[3, 3\].*must grow"),
    ([3], [1], r"batch_sizes is \[1\]; it must have 2 numbers"), ([3], [1, 0], r"batch_sizes is \[1, 0\].*at least 1"),
])
def test_wrong_buckets_are_refused(boundaries, sizes, message):
    with pytest.raises(ValueError, match=message):
        rows([1]).bucket_by_sequence_length(length, boundaries, sizes)


def test_wrong_functions_are_refused():
    d = data.range(3)
    with pytest.raises(TypeError, match="the key is float32.*int64"):
        list(d.group_by_window(lambda x: tw.ops.cast(x, DstT="float32"), lambda k, w: w, 2))
    with pytest.raises(TypeError, match="must give a Dataset"):
        list(d.group_by_window(lambda x: x, lambda k, w: k, 2))
    with pytest.raises(tw.InvalidArgumentError, match="gives the window size 0 for key 0; it must be at least 1"):
        list(d.group_by_window(lambda x: x, lambda k, w: w, lambda k: k))
    with pytest.raises(ValueError, match="no_padding is True"):
        d.bucket_by_sequence_length(lambda x: x, [3], [1, 1], no_padding=True, pad_to_boundary=True)
