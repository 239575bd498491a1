"""Nothing leaks, and nothing is freed too early."""
import gc
import os
import resource
import weakref

import numpy as np
import pytest

import thalweg as tw
from thalweg import _dlpack, _low, errors, tensor

counts_memory = pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer keeps freed memory")


def megabytes():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / 2**20


def cycle():
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None, 8], name="x")
        v = tw.Variable(np.zeros((8, 4), np.float32), name="v")
        y = tw.ops.softmax(x @ v)
    with tw.Session(g) as s:
        s.run(g.initializer())
        s.run(y, {x: np.ones((2000, 8), np.float32)})
        f = s.callable(y, feeds=[x])
        for _ in range(2):
            f(np.ones((2000, 8), np.float32))
        try:
            f(np.ones((2, 9)))
        except tw.Error:
            pass
    return weakref.ref(g), weakref.ref(s)


def test_graphs_and_sessions_go_with_their_last_reference():
    gc.disable()
    try:
        graph, session = cycle()
        assert graph() is None and session() is None and not _dlpack._lent and not tensor._parked
    finally:
        gc.enable()


@counts_memory
def test_memory_stays_as_it_is_over_1000_cycles():
    for _ in range(100):
        cycle()
    before = megabytes()
    for _ in range(1000):
        cycle()
    assert megabytes() - before < 8  # a leaked session of this graph has more than 64 KiB, 1,000 of them 64 MiB
    assert not _dlpack._lent


@counts_memory
def test_memory_stays_as_it_is_over_many_steps():
    with tw.Graph() as g:
        x, s = tw.placeholder("float32", [None]), tw.Session(g)
        v = tw.Variable(np.zeros(20000, np.float32), name="many_steps")
        step, y = v.assign(x), x * 2
    array, text = np.ones(20000, np.float32), np.array([b"text" * 100] * 100, object)
    for i in range(3000):
        if i == 500:
            before = megabytes()
        s.run(y, {x: array})
        s.run(step, {x: array})
        s.run(v)
        tw.Tensor(text).numpy()
        tw.from_dlpack(np.from_dlpack(tw.Tensor(array)).copy())
    assert megabytes() - before < 8


@counts_memory
def test_memory_stays_as_it_is_over_errors_and_buffers():
    with tw.Graph() as g:
        tw.constant(np.zeros(2**18, np.float32))
    before = megabytes()
    for _ in range(100):
        assert len(g.to_bytes()) > 2**20
        for _ in range(20):
            with pytest.raises(tw.NotFoundError):
                errors.check(_low.tw_status_create(_low.TW_NOT_FOUND, b"x" * 20000))
    assert megabytes() - before < 8


def test_results_outlive_everything():
    with tw.Graph() as g:
        y = tw.constant(np.arange(100000)) + 1
    result, same = tw.Session(g).run(y), tw.Session(g).run(y, as_tensors=True)
    del g, y
    gc.collect()
    np.testing.assert_array_equal(result, np.arange(1, 100001))
    np.testing.assert_array_equal(same.numpy(), result)


def test_values_keep_their_graph_and_callables_their_session():
    x = tw.Graph().placeholder("float32", [])
    y = x * 2
    f = tw.Session(y.graph).callable(y, feeds=[x])
    gc.collect()
    assert f(3) == 6


def test_failed_constructors_leave_nothing_to_destroy():
    for make in (lambda: tw.Session(tw.Graph(), nonsense=1), lambda: tw.Runtime(nonsense=1), lambda: tw.Checkpoint("/nowhere/x"),
                 lambda: tw.Tensor(object())):
        try:
            make()
        except (tw.Error, TypeError):
            pass
        else:
            raise AssertionError("that should have failed")
    gc.collect()
