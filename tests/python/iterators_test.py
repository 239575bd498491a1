import numpy as np
import pytest

import thalweg as tw
from thalweg import Iterator


def test_arrays_are_cut_into_batches():
    x, y = np.arange(20, dtype=np.float32).reshape(10, 2), np.array([b"a", b"bb"] * 5, object)
    data = Iterator.of_arrays(x, y, batch=4)
    assert (data.n_tensors, data.n_batches) == (2, 3)
    parts = list(data)
    assert np.array_equal(np.concatenate([p[0] for p in parts]), x) and list(np.concatenate([p[1] for p in parts])) == list(y)
    assert list(data) == [] and data.next() is None
    data.reset(1)
    assert len(list(data)) == 3


def test_shuffled_epochs_differ_and_positions_continue():
    data = Iterator.of_arrays(np.arange(10), batch=3, shuffle=True, seed=4)
    orders = []
    for epoch in (0, 1, 0):
        data.reset(epoch)
        orders.append([int(i) for (part,) in data for i in part])
    assert orders[0] == orders[2] != orders[1] and sorted(orders[1]) == list(range(10))
    data.reset(1)
    data.next()
    position = data.save()
    rest = [part.tolist() for (part,) in data]
    other = Iterator.of_arrays(np.arange(10), batch=3, shuffle=True, seed=4)
    other.restore(position)
    assert [part.tolist() for (part,) in other] == rest
    with pytest.raises(tw.InvalidArgumentError, match="seed 5"):
        Iterator.of_arrays(np.arange(10), batch=3, shuffle=True, seed=5).restore(position)


def test_functions_give_batches_epoch_by_epoch():
    def batches(epoch):
        for i in range(2):
            yield np.full(3, epoch + i), [i]

    data = Iterator.of_batches(batches, 2)
    assert data.n_batches is None and [(a[0], b[0]) for a, b in data] == [(0, 0), (1, 1)]
    data.reset(7)
    assert [(a[0], b[0]) for a, b in data] == [(7, 0), (8, 1)]
    with pytest.raises(tw.UnimplementedError, match="no function save"):
        data.save()


def test_exceptions_of_functions_come_out():
    def batches(epoch):
        yield np.zeros(1), np.zeros(1)
        raise ZeroDivisionError("the file is torn")

    data = Iterator.of_batches(batches, 2)
    assert data.next() is not None
    with pytest.raises(ZeroDivisionError, match="the file is torn"):
        data.next()
    with pytest.raises(ValueError, match="a batch has 1 arrays; it must have 2"):
        Iterator.of_batches(lambda epoch: [(1,)], 2).next()
    with pytest.raises(TypeError, match="is no function"):
        Iterator.of_batches([1], 1)
    with pytest.raises(TypeError, match="Iterator.of_arrays"):
        Iterator()


def test_values_of_a_session_are_batches(graph):
    queue = tw.FIFOQueue(8, ["int64"], [[]])
    put, take = queue.enqueue(tw.placeholder("int64", [], name="v")), queue.dequeue()
    with tw.Session(graph) as s:
        for i in range(5):
            s.run(put, {"v:0": i})
        data = Iterator.of_fetches(s, [take], epoch_batches=2)
        assert [int(v) for (v,) in data] == [0, 1]
        data.reset(1)
        assert [int(v) for (v,) in data] == [2, 3]


def test_wrong_arrays_are_refused():
    with pytest.raises(tw.InvalidArgumentError, match=r"tensors\[1\] has 3 rows, and tensors\[0\] has 4"):
        Iterator.of_arrays(np.zeros(4), np.zeros(3))
    with pytest.raises(tw.InvalidArgumentError, match="batch is 0"):
        Iterator.of_arrays(np.zeros(4), batch=0)
