import collections
import weakref

import numpy as np
import pytest

import thalweg as tw
from thalweg import tensor

LARGE = tensor.COPIED_BYTES // 4 + 16
Pair = collections.namedtuple("Pair", "first second")


def test_the_answer_has_the_form_of_the_fetches(run, graph):
    x = tw.placeholder("float32", [], name="x")
    y, noop = x + 1, tw.ops.no_op(name="n")
    feeds = {x: 1}
    assert run(y, feeds) == 2 and run([y, x], feeds) == [2, 1] and run((y,), feeds) == (2,) and run([], feeds) == []
    assert run({"a": y, "b": [x, (noop, "x", "x:0", "n")]}, feeds) == {"a": 2, "b": [1, (None, 1, 1, None)]}
    assert run(Pair(x, y), feeds) == Pair(1, 2) and run(noop) is None and run([y, y], feeds) == [2, 2]


def test_scalars_are_numpys_and_arrays_are_arrays(run):
    number, text, vector = run([tw.constant(1.5), tw.constant("a"), tw.constant([1])])
    assert type(number) is np.float32 and f"{number:.1f}" == "1.5" and text == b"a" and isinstance(vector, np.ndarray)


def test_feeds_by_name_and_of_values_in_between(run):
    x = tw.placeholder("float32", [None], name="x")
    y = (x * 2).named("y")
    np.testing.assert_array_equal(run(y + 1, {"x": [1, 2]}), [3, 5])
    np.testing.assert_array_equal(run(y + 1, {y: [5]}), [6])


def test_feeds_are_converted_where_nothing_is_lost(run):
    x, n = tw.placeholder("float32"), tw.placeholder("int32")
    assert run(x, {x: np.float64(0.1)}) == np.float32(0.1) and run(x, {x: 3}) == 3 and run(n, {n: np.int64(7)}) == 7
    assert run(tw.placeholder("string", name="s"), {"s": "é"}) == "é".encode()
    for value, feed, message in ((1.5, n, "1.5 .*is no int32"), (2**40, n, "does not fit"), ("a", x, "is no float32"),
                                 (1j, x, "is no float32")):
        with pytest.raises(TypeError, match=f"feed 'Placeholder(_1)?:0': .*{message}"):
            run(feed, {feed: value})


@pytest.mark.parametrize("fetch, feeds, error, message", [
    (3, {}, TypeError, "3 cannot be fetched"), (np.zeros(2), {}, TypeError, "cannot be fetched"), ("nope", {}, tw.NotFoundError, "nope"),
    ("x:3", {}, tw.InvalidArgumentError, "x"), ("y", {}, tw.InvalidArgumentError, "x"), ("y", {3: 1}, TypeError, "3 cannot be fed"),
    ("y", {"x": np.zeros(3)}, tw.InvalidArgumentError, "'x' has shape \\[3\\]"), (None, {}, TypeError, "None cannot be fetched")])
def test_wrong_steps_say_what_is_wrong_and_the_session_goes_on(run, fetch, feeds, error, message):
    (tw.placeholder("float32", [2], name="x") + 1).named("y")
    with pytest.raises(error, match=message):
        run(fetch, feeds)
    np.testing.assert_array_equal(run("y", {"x": [1, 2]}), [2, 3])


def test_values_of_another_graph_are_refused(run):
    with tw.Graph():
        other = tw.constant(1)
    for fetches, feeds in ((other, {}), ([], {other: 1})):
        with pytest.raises(ValueError, match="not of the session's graph"):
            run(fetches, feeds)


def test_callables(run, graph):
    x, v = tw.placeholder("float32", [], name="x"), tw.Variable(0.0, name="v")
    run(graph.initializer())
    f = run.session.callable({"x": x * 2}, feeds=[x], targets=[v.assign_add(x)])
    assert f(3) == {"x": 6} and f(4) == {"x": 8} and run(v) == 7
    assert isinstance(f(1, as_tensors=True)["x"], tw.Tensor)
    with pytest.raises(TypeError, match="takes 1 feeds, not 2"):
        f(1, 2)
    with pytest.raises(tw.InvalidArgumentError):
        run.session.callable(x, feeds=[x, x])


def test_new_operations_run_at_once(run):
    x = tw.constant(2.0)
    assert run(x) == 2
    assert run(x * 3) == 6


def test_sessions_close(graph):
    x = tw.constant(1)
    with tw.Session(graph, threads=1) as s:
        f = s.callable(x)
        assert s.run(x) == 1 and f() == 1
    for step in (lambda: s.run(x), f):
        with pytest.raises(tw.FailedPreconditionError, match="closed"):
            step()
    s.close()


def test_options(graph):
    engine = tw.Session.options()["engine"]
    assert (engine.kind, engine.default, engine.choices) == ("choice", "auto", ("auto", "fixed", "counted")) and engine.doc
    with pytest.raises(tw.InvalidArgumentError, match="no session option 'thread'"):
        tw.Session(graph, thread=1)
    with pytest.raises(tw.InvalidArgumentError, match="threads"):
        tw.Session(graph, threads="many")
    tw.Session(graph, container="a").run(tw.Variable(1.0, name="v").assign(4.0))
    assert tw.Session(graph, container="a").run(graph.variables()[0]) == 4
    with pytest.raises(tw.FailedPreconditionError):
        tw.Session(graph, container="b").run(graph.variables()[0])


def test_timeouts_and_cancelling(run):
    x = tw.placeholder("float32", [600, 600])
    for _ in range(200):
        x = x @ x
    first = x.graph["Placeholder"]
    with pytest.raises(tw.DeadlineExceededError):
        run(x, {first: np.zeros((600, 600))}, timeout=0.001)
    token = tw.CancelToken()
    token.cancel()
    assert token.cancelled and not tw.CancelToken().cancelled
    with pytest.raises(tw.CancelledError):
        run(x, {first: np.zeros((600, 600))}, cancel=token)


def test_tensors_are_fetched_and_fed(run, graph):
    v, x = tw.Variable([1.0, 2], name="v"), tw.placeholder("float32", [2])
    run(graph.initializer())
    contents, handle = run([v, v.handle], as_tensors=True)
    assert isinstance(contents, tw.Tensor) and handle.dtype == "resource" and "resource" in repr(handle)
    np.testing.assert_array_equal(run(x * 2, {x: contents}), [2, 4])
    with pytest.raises(tw.InvalidArgumentError, match="resource and cannot be fed"):
        run(v.read(), {v.handle: handle})
    with pytest.raises(TypeError, match="as_tensors=True"):
        run(v.handle)
    small = tw.placeholder("bfloat16")
    assert run(small.astype("float32"), {small: run(tw.constant(2.5, "bfloat16"), as_tensors=True)}) == 2.5


# ---- Whose memory ----

def test_large_feeds_are_shared_from_the_second_step_on(run, monkeypatch):
    x, given = tw.placeholder("float32", [None]), []
    share = tensor.shared
    monkeypatch.setattr(tensor, "shared", lambda array: given.append(array) or share(array))
    array, y = np.ones(LARGE, np.float32), x.sum()
    for i in range(3):
        assert run(y, {x: array}) == LARGE and len(given) == i
    run(y, {x: np.ones(4, np.float32)})
    assert len(given) == 2 and given[0] is array and given[1] is array
    there = weakref.ref(array)
    given.clear()
    del array
    assert there() is None


@pytest.mark.parametrize("make", [lambda a: a[::2], lambda a: a[::-1], lambda a: a.astype(">f4"), lambda a: a.astype("float64"),
                                  lambda a: np.frombuffer(b"x" + a.tobytes(), np.float32, offset=1), lambda a: a.tolist()],
                         ids=["strided", "reversed", "big-endian", "double", "misaligned", "list"])
def test_large_feeds_of_every_layout(run, make):
    x, feed = tw.placeholder("float32", [None]), make(np.arange(2 * LARGE, dtype=np.float32))
    y = x + 1
    for _ in range(3):
        np.testing.assert_array_equal(run(y, {x: feed}), np.asarray(feed, np.float32) + 1)


@pytest.mark.parametrize("size", [4, LARGE])
def test_what_a_variable_keeps_is_not_the_programs_array(run, graph, size):
    x, v = tw.placeholder("float32", [size]), tw.Variable(np.zeros(size, np.float32), name="v")
    assign, add = v.assign(x), v.assign_add(np.ones(size, np.float32))
    array = np.empty(size, np.float32)
    for i in range(4):
        array[:] = i
        run(assign, {x: array})
        array[:] = 77
        assert run(v)[0] == i
        run(add)
        assert array[0] == 77 and run(v)[-1] == i + 1


@pytest.mark.parametrize("size", [4, LARGE])
def test_what_is_fetched_is_not_the_programs_array(run, size):
    x = tw.placeholder("float32", [size])
    same = tw.ops.identity(x)
    array = np.empty(size, np.float32)
    for i in range(4):
        array[:] = i
        kept = run([same, x], {x: array})
        array[:] = 77
        assert kept[0][0] == i and kept[1][-1] == i


def test_a_result_that_is_a_feeds_memory_only_now_and_then_is_copied(run):
    x, array = tw.placeholder("float32", [None]), np.ones(LARGE, np.float32)
    f = run.session.callable(tw.ops.identity(x), feeds=[x])
    f(array)
    f._prepared._kept = [False]  # as if the first run had not kept it
    kept = f(array)
    assert not np.shares_memory(kept, array) and (kept == 1).all() and f._prepared._kept == [True] and not tensor._parked


def test_memory_that_something_keeps_only_now_and_then_lives_on_and_is_not_written_to(run, graph):
    x, v = tw.placeholder("float32", [LARGE]), tw.Variable(np.zeros(LARGE, np.float32), name="v")
    f, add = run.session.callable([], feeds=[x], targets=[v.assign(x)]), v.assign_add(np.ones(LARGE, np.float32))
    f(np.ones(LARGE, np.float32))
    for i in range(3):
        f._prepared._kept = [False]  # as if the first run had not kept it
        array = np.full(LARGE, i, np.float32)
        f(array)
        assert f._prepared._kept == [True] and len(tensor._parked) == 1
        run(add)
        assert array.max() == i and run(v).min() == i + 1
        there = weakref.ref(array)
        del array
        assert there() is not None
    tensor.park(np.ones(1), tensor.copied(np.ones(1)))
    assert there() is None
    tensor._parked.clear()


def test_a_fed_array_is_never_written_to(run):
    x = tw.placeholder("float32", [None])
    y, array = tw.ops.relu(-x) * 2 + 1, np.arange(LARGE, dtype=np.float32)
    for _ in range(3):
        run(y, {x: array})
    np.testing.assert_array_equal(array, np.arange(LARGE))
    array.flags.writeable = False
    assert run(y, {x: array})[0] == 1


def test_fetched_variables_do_not_change_later(run, graph):
    v = tw.Variable(np.zeros(LARGE, np.float32), name="v")
    add = v.assign_add(np.ones(LARGE, np.float32))
    run(graph.initializer())
    before = run(v)
    run(add)
    assert before.max() == 0 and not before.flags.writeable and run(v).min() == 1


def test_a_session_tells_what_it_has_planned(graph):
    x = tw.placeholder("float32", [None, 3], name="x")
    y = tw.ops.exp(x * 2, name="y")
    with tw.Session(graph, engine="fixed") as session:
        f = session.callable(y, feeds=[x])
        assert f.plan()["nodes"][0]["outputs"][0]["shape"] == [-1, 3] and session.report()["plans"] == 0
        for rows in (2, 5, 5):
            f(np.zeros([rows, 3]))
        report = session.report()
        assert [report[k] for k in ("steps", "plans", "shapes", "misses", "shape_hits", "hits")] == [3, 1, 2, 1, 1, 1]
        plan = f.plan((7, 3))
        assert plan["engine"] == "fixed" and plan["feeds"] == ["x"] and [n["op"] for n in plan["nodes"]] == ["Mul", "Exp"]
        assert plan["nodes"][0]["outputs"][0]["bytes"] == 84 and plan["nodes"][1]["after"] == [0]
        assert f.plan()["nodes"][0]["outputs"][0]["shape"] == [5, 3] and session.report()["plans"] == 1
        with pytest.raises(tw.InvalidArgumentError, match="must fit"):
            f.plan((7, 4))
        with pytest.raises(ValueError, match="2 shapes for 1 feeds"):
            f.plan((7, 3), (1,))


def test_a_session_tells_the_plan_of_a_run(graph):
    x = tw.placeholder("float32", [None, 3], name="x")
    y = tw.ops.exp(x * 2, name="y")
    with tw.Session(graph) as session:
        assert session.plan(y, [x])["nodes"][0]["outputs"][0]["shape"] == [-1, 3]
        plan = session.plan([y, y], {"x": (7, 3)})
        assert plan["fetches"] == ["y", "y"] and plan["nodes"][0]["outputs"][0]["shape"] == [7, 3]
        session.run(y, {x: np.zeros((5, 3))})
        assert session.plan(y, [x])["nodes"][0]["outputs"][0]["shape"] == [5, 3] and session.report()["steps"] == 1
        with pytest.raises(tw.InvalidArgumentError, match="must fit"):
            session.plan(y, {x: (7, 4)})
        with pytest.raises(TypeError, match="cannot be fed"):
            session.plan(y, [3])


def test_a_shape_waits_for_what_its_value_waits_for():
    with tw.Graph() as g:
        x = tw.placeholder("float32", [2])
        v = tw.Variable(np.float32(0))
        with tw.control_dependencies([v.assign(np.float32(1))]):
            y = tw.ops.neg(x)
        shape = tw.ops.shape(y)
        for optimize in (True, False):
            with tw.Session(g, optimize=optimize, container=f"waits_{optimize}") as s:
                s.run(g.initializer(name=f"init_{optimize}"))
                np.testing.assert_array_equal(s.run(shape, {x: [1, 2]}), [2])
                assert s.run(v.read()) == 1
