"""py_function: functions of Python as operations (PyFunc, PyFuncStateless, EagerPyFunc) in graphs, traced functions, datasets and at once."""
import gc
import os
import subprocess
import sys
import threading
import time
import traceback

import numpy as np
import pytest

import thalweg as tw
from thalweg import host_functions

from tape_test import numeric


def square(x):
    return x * x


def in_a_graph(f, *arrays):
    """Runs f of placeholders."""
    with tw.Graph() as g:
        places = [tw.placeholder(np.asarray(a).dtype.name, np.shape(a)) for a in arrays]
        fetched = f(*places)
        with tw.Session(g) as s:
            return s.run(fetched, dict(zip(places, arrays)))


WAYS = {"at once": lambda f, *a: f(*map(tw.constant, a)), "traced": lambda f, *a: tw.function(f)(*map(tw.constant, a)), "graph": in_a_graph,
        "traced in a graph": lambda f, *a: in_a_graph(tw.function(f), *a)}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


# ---- Values ----

def test_a_function_of_arrays_gives_what_it_gives(way):
    got = []

    def f(x, y):
        got.append((x, y))
        return np.sin(x) + y

    x, y = np.array([[0.5, -1.0]], np.float32), np.array([3], np.int64)
    found = np.asarray(way(lambda a, b: tw.py_function(f, [a, b], "float32", [1, 2]) * 2, x, y))
    np.testing.assert_allclose(found, 2 * (np.sin(x) + 3), rtol=1e-6)
    assert len(got) == 1 and all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(got[0], (x, y)))
    assert not got[0][0].flags.writeable


def test_several_results_of_any_types(way):
    def split(x):
        return [x > 1, x.astype("S4").astype(object), x.sum(), 7, [[1.5, 2]]]

    found = way(lambda a: tuple(tw.py_function(split, [a], ["bool", "string", "float64", "int32", "float32"])), np.array([1.0, 2.0]))
    values = [x.numpy() if isinstance(x, tw.Value) else np.asarray(x) for x in found]
    assert values[0].tolist() == [False, True] and values[1].tolist() == [b"1.0", b"2.0"] and values[2] == 3 and values[3] == 7
    assert values[3].dtype == np.int32 and values[4].tolist() == [[1.5, 2]] and values[4].dtype == np.float32


def test_a_function_for_its_effects(graph):
    seen = []
    x = tw.placeholder("float32", [])
    operation = tw.py_function(lambda a: seen.append(float(a)), [x], [])
    assert isinstance(operation, tw.Operation) and operation.type == "PyFunc"
    with tw.Session(graph) as s:
        for v in (1, 2):
            s.run(operation, {x: v})
    assert seen == [1, 2] and tw.py_function(lambda: seen.append(3), [], []) is not None
    with tw.Eager():
        assert tw.py_function(lambda a: seen.append(float(a)), [tw.constant(4.0)], []) is None
    assert seen == [1, 2, 4]


def test_effects_of_a_traced_function_happen_in_each_call():
    seen = []

    @tw.function
    def f(x):
        tw.py_function(lambda a: seen.append(float(a)), [x], [])
        return x * 2

    with tw.Eager():
        assert f(tw.constant(1.0)).item() == 2 and f(tw.constant(5.0)).item() == 10
    assert seen == [1, 5]


def test_shapes_are_known_and_checked(graph):
    x = tw.placeholder("float32", [None, 2])
    assert tw.py_function(square, [x], "float32").shape is None
    y, z = tw.py_function(lambda a: (a, a[0]), [x], ["float32", "float32"], [[None, 2], None])
    assert y.shape == (None, 2) and z.shape is None
    wrong = tw.py_function(square, [x], "float32", [3])
    with tw.Session(graph) as s:
        assert s.run([y, z], {x: np.ones((3, 2))})[0].shape == (3, 2)
        with pytest.raises(tw.InvalidArgumentError, match="EnsureShape"):
            s.run(wrong, {x: np.ones((3, 2))})


def test_in_conditions_and_loops(graph):
    x = tw.placeholder("float64", [])
    y = tw.cond(x > 0, lambda: tw.py_function(np.sqrt, [x], "float64", []), lambda: x)
    y = tw.while_loop(lambda i, v: i < 3, lambda i, v: [i + 1, tw.py_function(square, [v], "float64", [])], [0, y])[1]
    with tw.Session(graph) as s:
        assert s.run(y, {x: 4.0}) == 256 and s.run(y, {x: -2.0}) == 256


def test_in_the_functions_of_a_dataset():
    numbers = tw.data.arrays(np.arange(6, dtype=np.float32))
    doubled = numbers.map(lambda x: tw.py_function(lambda a: 2 * a, [x], "float32", []))
    assert [float(x.numpy()) for x in doubled] == [0, 2, 4, 6, 8, 10]


def test_calls_are_made_as_often_as_the_op_says(graph):
    calls = {True: 0, False: 0}

    def f(stateful):
        def count(x):
            calls[stateful] += 1
            return x
        return count

    x = tw.placeholder("float32", [])
    for stateful in calls:
        function = f(stateful)
        twice = [tw.py_function(function, [x], "float32", stateful=stateful) for _ in range(2)]
        assert twice[0].operation.type == ("PyFunc" if stateful else "PyFuncStateless")
        with tw.Session(graph) as s:
            for _ in range(3):
                assert s.run(twice, {x: 2.5}) == [2.5, 2.5]
    assert calls == {True: 6, False: 3}


@pytest.mark.parametrize("options", [{}, {"threads": 1}, {"engine": "counted"}])
def test_many_threads_run_steps_at_once(graph, options):
    x = tw.placeholder("float32", [])
    y = sum(tw.py_function(lambda a, k=k: a + k, [x], "float32", []) for k in range(4))
    found = {}
    with tw.Session(graph, **options) as s:
        def work(i):
            found[i] = [float(s.run(y, {x: i + k})) for k in range(10)]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert found == {i: [4.0 * (i + k) + 6 for k in range(10)] for i in range(4)}


def test_a_function_may_run_sessions_itself(graph):
    x = tw.placeholder("float32", [])
    inner = x * 3
    session = tw.Session(graph)
    y = tw.py_function(lambda a: session.run(inner, {x: float(a)}) + tw.ops.square(tw.constant(2.0)).item(), [x], "float32", [])
    assert session.run(y, {x: 5}) == 19


# ---- Exceptions ----

class Own(Exception):
    pass


def raises_own(x):
    if x > 0:
        raise Own("no", float(x))
    return x


def names(e):
    return [frame.name for frame in traceback.extract_tb(e.__traceback__)]


def test_an_exception_reaches_the_caller_with_its_traceback(graph):
    x = tw.placeholder("float32", [])
    y = tw.py_function(raises_own, [x], "float32", name="risky") * 2
    with tw.Session(graph) as s:
        for _ in range(2):
            with pytest.raises(Own) as e:
                s.run(y, {x: 1})
            assert e.value.args == ("no", 1.0) and names(e.value)[-1] == "raises_own"
            assert "test_an_exception_reaches_the_caller_with_its_traceback" in names(e.value)
            assert any("PyFunc 'risky'" in note and "host_functions_test.py" in note for note in e.value.__notes__)
            assert s.run(y, {x: -1}) == -2
        with pytest.raises(Own):
            s.run_async(y, {x: 1}).result()
        assert s.run_async(y, {x: -1}).result() == -2


def test_an_exception_without_a_graph_and_in_a_trace():
    with tw.Eager():
        for f in (lambda x: tw.py_function(raises_own, [x], "float32"), tw.function(lambda x: tw.py_function(raises_own, [x], "float32"))):
            with pytest.raises(Own):
                f(tw.constant(1.0))


@pytest.mark.parametrize("raised, expected", [(KeyboardInterrupt(), KeyboardInterrupt), (tw.DataLossError("torn"), tw.DataLossError),
                                              (StopIteration(), RuntimeError), (ValueError("a\0b\nc"), ValueError)])
def test_any_exception_is_the_callers(graph, raised, expected):
    def f():
        raise raised

    y = tw.py_function(f, [], "float32")
    with tw.Session(graph) as s, pytest.raises(expected):
        s.run(y)


@pytest.mark.parametrize("wrong", ["__str__", "code"])
def test_an_exception_that_cannot_be_read_ends_the_call(graph, wrong):
    def fails(self):
        raise RuntimeError("unreadable")

    own = type("Unreadable", (tw.DataLossError,), {wrong: fails if wrong == "__str__" else "torn"})

    def f():
        raise own("lost")

    y = tw.py_function(f, [], "float32")
    with tw.Session(graph) as s, pytest.raises(own) as e:
        s.run(y, timeout=20)
    assert any("Unreadable, whose text or code cannot be read" in note for note in e.value.__notes__)


def test_the_end_of_an_exception_may_fail_itself():
    class Ends(Exception):
        def __del__(self):
            tw.errors.keep(ValueError())

    def fill():
        for _ in range(tw.errors._MOST_RAISED + 2):
            tw.errors.keep(Ends())
        for _ in range(3 * tw.errors._MOST_RAISED):  # ends them all
            tw.errors.keep(ValueError())

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


def test_an_exception_in_a_dataset():
    numbers = tw.data.arrays(np.array([-1, 1, -3], np.float32)).map(lambda x: tw.py_function(raises_own, [x], "float32", []), 1)
    elements = numbers.iterator(prefetch=0)  # else the error of an element may come before the elements ahead of it
    assert float(next(elements).numpy()) == -1
    with pytest.raises(Own):
        next(elements)
    assert float(next(elements).numpy()) == -3


def test_results_of_the_wrong_kind_are_told(graph):
    x = tw.placeholder("float32", [])
    wrong = {"gives 1 results; it must give a list of 2": tw.py_function(lambda a: [a], [x], ["float32", "float32"])[0],
             "gives 3.0; it must give a list of 2": tw.py_function(lambda a: 3.0, [x], ["float32", "float32"])[0],
             "'lambda': result 0: .* is no float32": tw.py_function(lambda a: "text", [x], "float32"),
             "result 0: 0.5 of type float64 is no int32": tw.py_function(lambda a: 0.5, [x], "int32")}
    with tw.Session(graph) as s:
        for part, y in wrong.items():
            with pytest.raises(TypeError, match=part):
                s.run(y, {x: 1})


def test_wrong_arguments_are_refused(graph):
    x = tw.placeholder("float32", [])
    variable = tw.Variable(1.0)
    with pytest.raises(TypeError, match="3 is no function"):
        tw.py_function(3, [x], "float32")
    with pytest.raises(TypeError, match="'g' is no function"):
        tw.py_function(square, [x], "float32", gradient="g")
    with pytest.raises(ValueError, match="types has 2 entries"):
        tw.py_function(square, [x], ["float32", "int32"], [[3]])
    with pytest.raises(TypeError, match="Python has no arrays of resource"):
        tw.py_function(square, [variable.handle], "float32")
    assert float(tw.Session(graph).run(tw.py_function(square, [x], "float32"), {x: 3})) == 9


# ---- Gradients ----

def sines(x, n):
    return [np.sin(x) * n, x.sum(), n]


def slope_of_sines(x, n, y, total, m, dy, dtotal):
    assert np.array_equal(y, np.sin(x) * n) and n == m
    return np.cos(x) * n * dy + dtotal


AT = np.array([0.3, -1.0, 2.0])


def with_gradient(x):
    y, total, _ = tw.py_function(sines, [x, np.int32(3)], ["float64", "float64", "int32"], [[3], [], []], gradient=slope_of_sines)
    return (y * y).sum() + total * 2


def plain(x):
    return ((np.sin(x) * 3) ** 2).sum() + x.sum() * 2


def test_its_gradient_is_a_function_of_python(graph):
    x = tw.placeholder("float64", [3])
    y = with_gradient(x)
    sine = lambda v: tw.py_function(np.sin, [v], "float64", [3], gradient=lambda a, s, d: np.cos(a) * d)  # noqa: E731
    looped = tw.while_loop(lambda i, v: i < 2, lambda i, v: [i + 1, sine(v)], [0, x])[1]
    dx, dl = tw.gradients(y, x), tw.gradients(looped, x)
    assert dx.shape == (3,) and {o.type for o in graph.operations() if "PyFunc" in o.type} == {"EagerPyFunc", "PyFunc"}
    with tw.Session(graph) as s:
        np.testing.assert_allclose(s.run(dx, {x: AT}), numeric(plain, AT), atol=1e-6)
        np.testing.assert_allclose(s.run(dl, {x: AT}), np.cos(np.sin(AT)) * np.cos(AT), rtol=1e-12)
    with pytest.raises(tw.FailedPreconditionError, match="op PyFunc is not differentiable"):
        tw.gradients(dx, x)


def test_a_tape_and_a_traced_function_use_the_gradient():
    with tw.Eager():
        for f in (tw.grad(with_gradient), tw.function(tw.grad(with_gradient)), tw.grad(tw.function(with_gradient))):
            np.testing.assert_allclose(f(tw.constant(AT)).numpy(), numeric(plain, AT), atol=1e-6)


def test_none_is_a_zero_and_too_few_are_told():
    with tw.Eager():
        f = lambda x, y: tw.py_function(np.add, [x, y], "float32", [], gradient=lambda x, y, z, dz: (None, 5 * dz))  # noqa: E731
        assert [g.item() for g in tw.grad(f, [0, 1])(2.0, 3.0)] == [0, 5]
        wrong = lambda x, y: tw.py_function(np.add, [x, y], "float32", [], gradient=lambda x, y, z, dz: dz)  # noqa: E731
        with pytest.raises(TypeError, match="gives 1 values for 2 inputs"):
            tw.grad(wrong, [0, 1])(2.0, 3.0)


def test_without_a_gradient_it_is_an_error_to_ask_for_one(graph):
    x = tw.placeholder("float32", [])
    y = tw.py_function(square, [x], "float32", [])
    with pytest.raises(tw.FailedPreconditionError, match="PyFunc '.*only known if EagerPyFunc calls it"):
        tw.gradients(y, x)
    assert tw.gradients(tw.ops.stop_gradient(y) * x, x) is not None
    with tw.Eager(), pytest.raises(tw.FailedPreconditionError, match="PyFunc"):
        tw.grad(lambda v: tw.py_function(square, [v], "float32", []))(3.0)


def test_a_custom_gradient_may_be_that_of_a_function_of_python(graph):
    @tw.custom_gradient
    def f(x):
        y = tw.py_function(square, [x], "float64", [])
        return y, lambda dy: 2 * x * dy

    x = tw.placeholder("float64", [])
    y = f(x)
    dx = tw.gradients(y, x)
    d2x = tw.gradients(dx, x)
    with tw.Session(graph) as s:
        assert s.run([y, dx, d2x], {x: 3.0}) == [9, 6, 2]


def both_ways(f, at, dtype="float64"):
    """The value and the gradient of a function of one value, in a graph and in a traced function without one."""
    with tw.Graph() as g:
        x = tw.placeholder(dtype, np.shape(at))
        y = f(x)
        with tw.Session(g) as s:
            found = s.run([y, tw.gradients(y, x)], {x: at})
    with tw.Eager():
        x = tw.constant(np.asarray(at, dtype))
        yield from ((found[0], found[1]), (f(x).numpy(), tw.function(tw.grad(f))(x).numpy()))


@pytest.mark.parametrize("stateful", [True, False])
def test_a_custom_gradient_may_use_the_result_of_a_function_of_python(stateful):
    calls = []

    def noted(a):
        calls.append(float(a))
        return np.exp(a)

    @tw.custom_gradient
    def f(x):
        y = tw.py_function(noted, [x * 1], "float64", [], stateful=stateful)
        return y + 1, lambda dy: y * dy

    for value, slope in both_ways(f, 0.5):
        assert value == pytest.approx(np.exp(0.5) + 1) and slope == pytest.approx(np.exp(0.5))
    assert len(calls) == 3  # once in each step, also in that which needs the gradient


def test_a_custom_gradient_may_use_texts_and_whole_numbers_of_a_function_of_python():
    def told(a):
        return [b"twice" if a > 0 else b"thrice", np.int32(a)]

    def scaled(word, n, d):
        return d * {b"twice": 2, b"thrice": 3}[word.item()] * n

    @tw.custom_gradient
    def f(x):
        word, count = tw.py_function(told, [x], ["string", "int32"], [[], []])
        return x * 7, lambda d: tw.py_function(scaled, [word, count, d], "float64", [])

    for value, slope in both_ways(f, 4.5):
        assert value == 31.5 and slope == 2 * 4
    for value, slope in both_ways(f, -4.5):
        assert value == -31.5 and slope == 3 * -4


def test_a_custom_gradient_of_a_function_of_python_in_a_loop(graph):
    @tw.custom_gradient
    def f(v):
        y = tw.py_function(np.exp, [v], "float64", [])
        return y, lambda dy: y * dy

    x = tw.placeholder("float64", [])
    looped = tw.while_loop(lambda i, v: i < 2, lambda i, v: [i + 1, f(v)], [0, x])[1]
    with tw.Session(graph) as s:
        assert s.run(tw.gradients(looped, x), {x: 0.3}) == pytest.approx(np.exp(np.exp(0.3)) * np.exp(0.3))


def test_higher_orders_pass_through_the_functions_that_a_custom_gradient_uses(graph):
    def of(gradient):
        @tw.custom_gradient
        def f(x):
            y = tw.py_function(np.sin, [x], "float64", [])
            slope = tw.py_function(np.cos, [x], "float64", [], gradient=gradient)
            return y, lambda dy: slope * dy
        return f

    sine, unknown = of(lambda a, c, d: -np.sin(a) * d), of(None)
    x = tw.placeholder("float64", [])
    first, only = tw.gradients(sine(x), x), tw.gradients(unknown(x), x)
    second = tw.gradients(first, x)
    with pytest.raises(tw.FailedPreconditionError, match="PyFunc '.*only known if EagerPyFunc calls it"):
        tw.gradients(only, x)
    with tw.Session(graph) as s:
        assert s.run([first, only, second], {x: 0.5}) == pytest.approx([np.cos(0.5), np.cos(0.5), -np.sin(0.5)])
    with tw.Eager():
        assert tw.function(tw.grad(tw.grad(sine)))(tw.constant(np.float64(0.5))).item() == pytest.approx(-np.sin(0.5))


def test_a_checkpoint_calls_it_once(graph):
    calls = []

    def noted(x):
        calls.append(1)
        return np.tanh(x)

    x = tw.placeholder("float64", [])
    y = tw.checkpoint(lambda a: tw.ops.exp(tw.py_function(noted, [a * 1], "float64", [], gradient=lambda a, t, d: (1 - t * t) * d)))(x)
    dx = tw.gradients(y, x)
    with tw.Session(graph) as s:
        value, slope = s.run([y, dx], {x: 0.5})
    assert len(calls) == 1 and slope == pytest.approx((1 - np.tanh(0.5) ** 2) * np.exp(np.tanh(0.5))) and value == pytest.approx(np.exp(np.tanh(0.5)))


# ---- Time and life ----

def test_a_step_that_ends_does_not_wait_for_the_function(graph):
    go, left = threading.Event(), threading.Event()

    def waits(x):
        go.wait(30)
        left.set()
        return x

    x = tw.placeholder("float32", [])
    y = tw.py_function(waits, [x], "float32", [])
    with tw.Session(graph) as s:
        begun = time.monotonic()
        with pytest.raises(tw.DeadlineExceededError):
            s.run(y, {x: 1}, timeout=0.05)
        running = s.run_async(y, {x: 1})
        running.cancel()
        with pytest.raises(tw.CancelledError):
            running.result()
        assert time.monotonic() - begun < 20
        go.set()
        assert s.run(y, {x: 2}) == 2
    assert left.wait(30)


def test_a_graph_of_another_process_is_refused_before_it_runs(graph):
    ran = []
    x = tw.placeholder("float32", [], name="x")
    first = tw.py_function(lambda a: ran.append(1) or a, [x], "float32", [], name="mine")
    tw.py_function(square, [first], "float32", [], name="theirs")
    operations = {n: graph.operation(n) for n in ("mine", "theirs")}
    token = operations["theirs"].attributes["token"]
    token = token if isinstance(token, bytes) else token.encode()
    assert token.startswith(b"square-") and len(token) > 40
    elsewhere = tw.Graph.from_bytes(graph.to_bytes().replace(token, b"another" + token[7:]))
    with tw.Session(elsewhere) as s:
        with pytest.raises(tw.FailedPreconditionError, match="PyFunc 'theirs'.*no function of this process has the token 'another") as e:
            s.run(elsewhere.operation("theirs").outputs[0], {elsewhere["x"]: 3})
        assert e.value.operation == "theirs" and not ran
    same = tw.Graph.from_bytes(graph.to_bytes())
    with tw.Session(same) as s:
        assert s.run(same.operation("theirs").outputs[0], {same["x"]: 3}) == 9 and ran == [1]


def test_a_function_is_registered_once_and_ends_with_its_graphs():
    host_functions._recent.clear()  # else each new one would end an old one
    gc.collect()
    before = len(host_functions._tokens)
    f = lambda x: x + 1  # noqa: E731
    with tw.Graph() as g:
        x = tw.placeholder("float32", [])
        for _ in range(3):
            y = tw.py_function(f, [x], "float32", [], gradient=lambda *a: a[-1])
            y = tw.py_function(f, [y], "float32", [])
        session = tw.Session(g)
        assert session.run(y, {x: 1}) == 3
    assert len(host_functions._tokens) == before + 3 * 2 + 1
    host_functions._recent.clear()
    del g, x, y, session
    gc.collect()
    assert len(host_functions._tokens) <= before


def test_a_program_ends_while_steps_run():
    program = """
import atexit, os, threading
import thalweg as tw
go = threading.Event()
def f():
    go.wait()
    os.write(1, b"ran\\n")
    return 1.0
with tw.Graph() as g:
    y = tw.py_function(f, [], "float32", [])
s = tw.Session(g)
for _ in range(3):
    future = s.run_async(y)
print("end", flush=True)
atexit.register(go.set)  # called before the package waits, because it was registered later
"""
    done = subprocess.run([sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.split() == ["end", "ran", "ran", "ran"], done.stderr


NEVER_RETURNS = """
import threading, time
import thalweg as tw
tw.host_functions.exit_wait = 0.2
begun = threading.Event()
def stuck():
    begun.set()
    {body}
with tw.Graph({runtime}) as g:
    y = tw.py_function(stuck, [], "float32", [])
s = tw.Session(g)
{run}
begun.wait()
print("end", flush=True)
"""
ASYNC = "future = s.run_async(y)"
CANCELLED = """
running = s.run_async(y)
begun.wait()
running.cancel()
try:
    running.result()
except tw.CancelledError:
    pass
"""
DAEMON = "threading.Thread(target=lambda: s.run(y), daemon=True).start()"


@pytest.mark.parametrize("body, runtime, run", [
    ("threading.Event().wait()", "", ASYNC), ("while True: pass", "", ASYNC),
    ("while True: time.sleep(0.001)", "tw.Runtime(threads=2)", ASYNC), ("threading.Event().wait()", "tw.Runtime(threads=2)", CANCELLED),
    ("while True: pass", "", DAEMON)])
def test_a_function_that_never_returns_does_not_hold_the_end(body, runtime, run):
    program = NEVER_RETURNS.format(body=body, runtime=runtime, run=run)
    done = subprocess.run([sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "end\n", done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("thalweg:")]
    assert said == ["thalweg: the program ends, and these functions of py_function still run: 'stuck' (given up after 0.2 s)"]


def test_calls_are_given_up_after_ctrl_c(monkeypatch, capsys):
    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(host_functions, "exit_wait", float("inf"))
    monkeypatch.setattr(host_functions, "_running", {1: ("slow", 0.0), 2: ("slow", 0.0), 3: ("late", 0.0)})
    monkeypatch.setattr(host_functions.time, "sleep", interrupt)
    host_functions._End().wait_for_calls()
    said = capsys.readouterr().err
    assert said == "thalweg: the program ends, and these functions of py_function still run: 'late', 'slow' (given up after Ctrl-C)\n"
