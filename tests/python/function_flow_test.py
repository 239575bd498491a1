"""Traced functions: Python's control flow over values, against the same function on NumPy's numbers; effects; gradients; modules."""
import inspect
import re
import warnings

import numpy as np
import pytest

import thalweg as tw


def line():
    return inspect.currentframe().f_back.f_lineno


# Functions that run on Python's numbers, without a graph, traced, and in a session, with the same result.

def absolute(x):
    if x > 0:
        y = x
    else:
        y = -x
    return y


def early(x):
    if x > 10:
        return x - 10
    if x < 0:
        return -x
    x = x * 2
    return x + 1


def nested(x):
    y = 0.0
    if x > 0:
        if x > 5:
            y = x * 10
        elif x > 2:
            y = x * 5
        else:
            y = x
    return y - 1


def collatz(x):
    steps = 0
    while x != 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    return steps


def newton(x):
    guess, n = x, 0
    while True:
        better = 0.5 * (guess + x / guess)
        n = n + 1
        if abs(better - guess) < 1e-3 or n > 50:
            break
        guess = better
    return better, n


def odd_sum(n):
    total = 0
    for i in range(n):
        if i % 2 == 0:
            continue
        if total > 100:
            break
        total += i
    else:
        total = -total
    return total


def find(n):
    for i in range(n):
        if i * i > 50:
            return i
    return -1


def triangle(n):
    total = 0
    for i in range(n):
        for j in range(i):
            total += j
            if total > 40:
                return total
    return total


def power(x):
    y = 1.0
    for k in range(4):
        if y < 100 and not y < -100:
            y = y * x
    return y


def chain(x):
    a = 1.0 if 0 < x < 3 else 2.0
    b = x > 1 and x < 5 or x == 7
    if not b:
        a = a + 10
    return a


def helper(x):
    if x > 2:
        return x * x
    return x


def calls(x):
    def inner(y):
        if y > 4:
            y = y - 4
        return y
    return helper(inner(x)) + inner(helper(x))


def pair(x):
    state = (x, {"n": 0.0})
    while state[0] > 1:
        state = (state[0] / 2, {"n": state[1]["n"] + 1})
    return state


def guarded(x):
    while abs(x) < 100:
        with tw.nn.in_training(False):
            if x > 50:
                break
        x = x * 3
    return x


FLOATS = [-3.5, 0.5, 1.0, 2.5, 3.0, 4.5, 7.0, 12.0, 60.0]
CASES = [(f, np.float32, FLOATS) for f in (absolute, early, nested, power, chain, calls, pair, guarded)] + \
    [(newton, np.float32, [2.0, 9.0, 100.0])] + \
    [(f, np.int32, [1, 2, 5, 9, 27, 40]) for f in (collatz, odd_sum, find, triangle)]


def leaves(x):
    return [y for part in x for y in leaves(part)] if isinstance(x, (list, tuple)) else leaves(list(x.values())) if isinstance(x, dict) else [x]


@pytest.mark.parametrize("f,kind,values", CASES, ids=[f.__name__ for f, _, _ in CASES])
def test_control_flow_gives_pythons_result_and_the_same_bits_everywhere(f, kind, values):
    traced = tw.function(f)
    with tw.Graph() as g:
        x = tw.placeholder(kind, [])
        y = traced(x)
    session = tw.Session(g)
    with tw.Eager():
        for value in values:
            expected = leaves(f(kind(value)))
            at_once = [v.numpy() for v in leaves(traced(tw.constant(kind(value))))]
            in_session = leaves(session.run(y, {x: kind(value)}))
            for a, b, c in zip(at_once, in_session, expected, strict=True):
                assert a.dtype == np.asarray(b).dtype and a.tobytes() == np.asarray(b).tobytes()
                np.testing.assert_allclose(a, c, rtol=1e-6)
        assert len(traced._programs) == 1


def test_a_signature_is_traced_once():
    seen = []

    @tw.function
    def f(x, flag, n=2):
        seen.append((x.dtype.name, x.shape, flag))
        return x * n if flag else x

    with tw.Eager(), warnings.catch_warnings():
        warnings.simplefilter("ignore", tw.TraceWarning)
        for value in (1.0, 2.0):
            assert f(tw.constant(value), True).item() == 2 * value
        assert f(tw.constant(3.0), False).item() == 3
        assert f(tw.constant([1.0, 2.0]), True).numpy().tolist() == [2, 4]
        assert f(np.float64(4), True, n=3).item() == 12
    assert seen == [("float32", (), True), ("float32", (), False), ("float32", (2,), True), ("float64", (), True)]


def test_loops_over_the_rows_of_a_value():
    @tw.function
    def total(rows):
        best = rows[0] * 0
        for row in rows:
            if row.sum() > best.sum():
                best = row
        return best

    rows = np.random.default_rng(1).normal(size=(7, 3)).astype(np.float32)
    with tw.Eager():
        np.testing.assert_array_equal(total(tw.constant(rows)).numpy(), rows[rows.sum(1).argmax()])
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None, 3])
        y = total(x)
    np.testing.assert_array_equal(tw.Session(g).run(y, {x: rows}), rows[rows.sum(1).argmax()])


# ---- What cannot be traced ----

def test_an_effect_in_a_body_that_a_value_decides_is_an_error_with_its_line():
    seen = []

    @tw.function
    def f(x):
        if x > 0:
            seen.append(x); here.append(line())
        return x

    here = []
    at = inspect.getsourcelines(f.function)[1] + 3
    with tw.Eager(), warnings.catch_warnings(), pytest.raises(TypeError) as e:
        warnings.simplefilter("ignore", tw.TraceWarning)
        f(tw.constant(1.0))
    assert f"{__file__}:{at}: `seen.append(x)` is inside of an `if`" in str(e.value) and not seen


class Counter:
    n = 0


def test_effects_outside_of_bodies_are_told_once_with_their_line():
    counter = Counter()

    @tw.function
    def f(x):
        counter.n += 1
        return x * 2

    at = inspect.getsourcelines(f.function)[1] + 2
    with tw.Eager():
        with pytest.warns(tw.TraceWarning, match=re.escape(f"{__file__}:{at}: `counter.n += 1` in function 'f' happens while it is traced")):
            f(tw.constant(1.0))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for value in (2.0, 3.0):
                assert f(tw.constant(value)).item() == 2 * value
    assert counter.n == 1


def test_print_of_a_value_is_told():
    @tw.function
    def f(x):
        print(x)
        return x

    with tw.Eager(), pytest.warns(tw.TraceWarning, match=r"function_flow_test.py:\d+: print shows a value while it is traced"):
        f(tw.constant(1.0))


def test_a_condition_with_several_elements_names_its_line():
    @tw.function
    def f(x):
        if x > 0:
            x = x + 1
        return x

    at = inspect.getsourcelines(f.function)[1] + 2
    with tw.Eager(), pytest.raises(TypeError, match=re.escape(f"{__file__}:{at}: the condition has shape [2]; a single truth value")):
        f(tw.constant([1.0, 2.0]))


def test_branches_of_two_types_and_unset_names_are_errors_where_they_are_used():
    @tw.function
    def types(x):
        if x > 0:
            return x
        return tw.ops.cast(x, DstT="int32")

    @tw.function
    def unset(x):
        if x > 0:
            y = x
        return y  # pylint: disable=possibly-used-before-assignment

    @tw.function
    def unused(x):
        if x > 0:
            y = x * 2
            x = y
        return x

    @tw.function
    def nothing(x):
        if x > 0:
            return x

    with tw.Eager():
        with pytest.raises(TypeError, match="the result is float32 and int32 in the branches of the condition"):
            types(tw.constant(1.0))
        with pytest.raises(NameError, match="'y' has no value here: only one branch of the condition at .*function_flow_test.py"):
            unset(tw.constant(1.0))
        assert unused(tw.constant(2.0)).item() == 4
        with pytest.raises(TypeError, match="the result is .* in the branches"):
            nothing(tw.constant(1.0))


def test_a_loop_that_changes_a_name_to_another_type_names_it():
    @tw.function
    def f(x):
        what = "a"
        while x < 10:
            x = x + 1
            what = what + "b"
        return x

    with tw.Eager(), pytest.raises(TypeError, match="'what' is 'a' before the loop and 'ab' after a turn"):
        f(tw.constant(1.0))


def test_functions_that_cannot_be_rewritten_say_why():
    f = tw.function(lambda x: (x if x > 0 else -x))
    with tw.Eager(), pytest.raises(TypeError, match="`if` and loops of function 'lambda' stay Python's: a lambda is not rewritten; write `def`"):
        f(tw.constant(1.0))

    @tw.function
    def tries(x):
        try:
            if x > 0:
                return x
        finally:
            pass
        return -x

    with tw.Eager(), pytest.raises(TypeError, match=r"line \d+: `try` with `return`, `break` or `continue` in it"):
        tries(tw.constant(1.0))


def test_assertions_become_operations():
    @tw.function
    def f(x):
        assert x > 0, "x must be positive"
        return x * 2

    with tw.Eager():
        assert f(tw.constant(1.0)).item() == 2
        with pytest.raises(tw.InvalidArgumentError, match="x must be positive"):
            f(tw.constant(-1.0))


# ---- Gradients ----

SMOOTH = [(power, [0.5, 2.0, -1.5, 11.0]), (calls, [3.0, 5.5, 1.5]), (early, [12.0, -2.0, 3.0]), (nested, [6.0, 3.0, 1.0]),
          (lambda x: newton(x)[0], [2.0, 9.0])]


@pytest.mark.parametrize("f,values", SMOOTH, ids=["power", "calls", "early", "nested", "newton"])
def test_gradients_pass_through_in_every_mode(f, values):
    if f.__name__ == "<lambda>":
        @tw.function
        def traced(x):
            return newton(x)[0]
    else:
        traced = tw.function(f)
    with tw.Graph() as g:
        x = tw.placeholder("float64", [])
        slope = tw.gradients(traced(x), x)
        curve = tw.gradients(slope, x)
    session = tw.Session(g)
    for value in values:
        h = 1e-5 * max(1.0, abs(value))
        expected = (f(np.float64(value) + h) - f(np.float64(value) - h)) / (2 * h)
        with tw.Eager():
            got = tw.grad(traced)(tw.constant(np.float64(value)))
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(tw.grad(f)(tw.constant(np.float64(value))).numpy(), got.numpy(), rtol=1e-12)  # Python's own flow
            second = tw.grad(tw.grad(traced))(tw.constant(np.float64(value)))
        np.testing.assert_allclose(session.run(slope, {x: value}), got.numpy(), rtol=1e-12)
        if curve is not None and second is not None:
            np.testing.assert_allclose(session.run(curve, {x: value}), second.numpy(), rtol=1e-8, atol=1e-12)


def test_gradients_inside_of_a_traced_function():
    @tw.function
    def slope(x):
        return tw.grad(lambda a: a * a * a)(x)

    @tw.function
    def taped(x):
        with tw.Tape() as tape:
            tape.watch(x)
            y = x * x
        return tape.gradient(y, x)

    with tw.Eager():
        assert slope(tw.constant(2.0)).item() == 12 and taped(tw.constant(3.0)).item() == 6
        assert tw.grad(slope)(tw.constant(2.0)).item() == 12


def test_a_step_that_differentiates_a_loop_updates_variables():
    with tw.Eager():
        w = tw.Variable(np.float64(0.5), name="w")

        @tw.function
        def step(x):
            loss = tw.grad(lambda v: power(v * w))(x) * 0 + power(x * w)
            slope = tw.gradients(loss, w)
            w.assign_sub(0.01 * slope)
            return loss, slope

        value = 0.5
        for x in (1.5, 2.0, -1.0):
            loss, slope = step(tw.constant(np.float64(x)))
            np.testing.assert_allclose([loss.item(), slope.item()], [power(x * value), 4 * x * power(x * value) / (x * value)], rtol=1e-12)
            value -= 0.01 * slope.item()
            np.testing.assert_allclose(w.read().item(), value, rtol=1e-12)
        with pytest.raises(TypeError, match="a tape cannot pass through a traced function that computes gradients of conditions or loops itself"):
            tw.grad(lambda v: step(v)[0])(tw.constant(np.float64(1)))


# ---- State and modules ----

def test_variables_are_read_and_updated_in_pythons_order():
    with tw.Eager():
        w = tw.Variable(1.0, name="w")

        @tw.function
        def f(x):
            before = w * 1
            w.assign_add(x)
            middle = w * 1
            w.assign(w * 10)
            return before, middle, w.read()

        assert [v.item() for v in f(tw.constant(2.0))] == [1, 3, 30] 
        assert [v.item() for v in f(tw.constant(1.0))] == [30, 31, 310]
        assert w.read().item() == 310


def test_updates_in_conditions_and_loops_run_as_often_as_python_would():
    with tw.Eager():
        w = tw.Variable(0.0, name="w")

        @tw.function
        def f(x, n):
            if x > 0:
                w.assign_add(x)
            for _ in range(n):
                w.assign_add(1.0)
            return x

        total = 0.0
        for x, n in ((2.0, 3), (-1.0, 0), (-4.0, 2)):
            f(tw.constant(x), tw.constant(n))
            total += max(x, 0) + n
            assert w.read().item() == total


def small_net():
    tw.random.seed(3)
    return tw.nn.Sequential(tw.nn.Conv2D(4, 3, "relu"), tw.nn.BatchNorm(), tw.nn.Flatten(), tw.nn.Dense(5, "tanh"))


class Gated(tw.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = tw.nn.Dense(3), tw.nn.Dense(3)

    def forward(self, x):
        if x.sum() > 0:
            return self.a(x)
        return self.b(x)


def test_modules_give_the_same_bits_at_once_and_traced():
    images = np.random.default_rng(2).normal(size=(6, 5, 5, 2)).astype(np.float32)
    with tw.Eager():
        net = small_net()
        first = tw.function(lambda x: net(x))(tw.constant(images)).numpy()  # makes the variables while it is traced
        at_once = net(tw.constant(images)).numpy()
        assert first.tobytes() == at_once.tobytes() and len(net.parameters()) == 8
        with tw.nn.in_training():
            traced = tw.function(lambda x: net(x))
            before = net.parts[1].mean.read().numpy()
            a = traced(tw.constant(images)).numpy()
            moved = net.parts[1].mean.read().numpy()
            assert not np.array_equal(before, moved)
            net.parts[1].mean.assign(before)
            b = net(tw.constant(images)).numpy()
        assert a.tobytes() == b.tobytes() and np.array_equal(net.parts[1].mean.read().numpy(), moved)


def test_the_forward_of_a_module_is_rewritten_and_its_gradients_are_those_at_once():
    with tw.Eager():
        net = Gated()
        x = tw.constant(np.ones((2, 4), np.float32))
        net.a(x), net.b(x)
        net(x)
        traced = tw.function(lambda v: net(v))
        for sign in (1, -1):
            assert traced(x * sign).numpy().tobytes() == net(x * sign).numpy().tobytes()
            found = []
            for f in (traced, net):
                with tw.Tape() as tape:
                    loss = (f(x * sign) * f(x * sign)).sum()
                found.append(tape.gradient(loss, net.parameters()))
            for a, b, v in zip(*found, net.parameters(), strict=True):
                if a is None or b is None:
                    assert (a is None or not a.numpy().any()) and (b is None or not b.numpy().any()), v
                else:
                    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_a_training_step_as_people_write_it():
    rng = np.random.default_rng(4)
    inputs = rng.normal(size=(64, 3)).astype(np.float32)
    targets = (inputs @ np.array([[1.0], [-2.0], [0.5]])).astype(np.float32)
    with tw.Eager():
        tw.random.seed(5)
        net = tw.nn.Dense(1)

        @tw.function
        def step(x, y):
            with tw.Tape() as tape:
                error = net(x) - y
                loss = (error * error).mean()
            for w, change in zip(net.parameters(), tape.gradient(loss, net.parameters())):
                w.assign_sub(0.1 * change)
            return loss

        losses = [step(tw.constant(inputs), tw.constant(targets)).item() for _ in range(60)]
        assert losses[-1] < 1e-3 * losses[0]
        np.testing.assert_allclose(net.kernel.read().numpy()[:, 0], [1, -2, 0.5], atol=0.05)


def test_values_and_variables_of_a_graph_are_captured(graph, run):
    w = tw.Variable(3.0, name="w")
    c = tw.placeholder("float32", [])

    @tw.function
    def f(x):
        return x * w + c

    x = tw.placeholder("float32", [])
    y = f(x)
    run(graph.initializer())
    assert run(y, {x: 2, c: 1}) == 7
    assert run(tw.gradients(y, [x, w, c]), {x: 2, c: 1}) == [3, 2, 1]


def test_random_numbers_differ_between_calls_and_their_gradient_is_that_of_the_call():
    @tw.function
    def noisy(x):
        return x * tw.ops.random_uniform([], dtype="float32")

    with tw.Eager():
        x = tw.constant(1.0)
        with tw.Tape() as tape:
            tape.watch(x)
            y = noisy(x)
        assert tape.gradient(y, x).item() == y.item() != noisy(x).item()


# ---- Gradients of one's own ----

@tw.custom_gradient
def log1pexp(x):
    e = tw.ops.exp(x)
    return tw.ops.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


@tw.custom_gradient
def clipped(x, y):
    return x * y, lambda dz: (dz * 7, None)


def test_a_gradient_of_ones_own_is_used_at_any_order():
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    s = sigmoid(0.5)
    with tw.Eager():
        x = tw.constant(np.float64(0.5))
        slope = tw.grad(log1pexp)
        for f, expected in ((slope, s), (tw.grad(slope), s * (1 - s)), (tw.grad(tw.grad(slope)), s * (1 - s) * (1 - 2 * s))):
            np.testing.assert_allclose(tw.function(f)(x).numpy(), expected, rtol=1e-10)
        np.testing.assert_allclose(log1pexp(x).numpy(), np.log(1 + np.exp(0.5)), rtol=1e-12)
        assert tw.function(tw.grad(clipped, [0, 1]))(tw.constant(2.0), tw.constant(3.0))[0].item() == 7
        for f in (log1pexp, tw.function(lambda v: log1pexp(v) * 2)):
            with pytest.raises(TypeError, match="has a gradient of its own, which tapes without a graph do not use"):
                tw.grad(f)(x)
    with tw.Graph() as g:
        x = tw.placeholder("float64", [])
        y = tw.while_loop(lambda i, v: i < 2, lambda i, v: [i + 1, log1pexp(v)], [0, x])[1]
        first = tw.gradients(log1pexp(x), x)
        second, looped = tw.gradients(first, x), tw.gradients(y, x)
    inner = np.log(1 + np.exp(0.5))
    np.testing.assert_allclose(tw.Session(g).run([first, second, looped], {x: 0.5}), [s, s * (1 - s), s * sigmoid(inner)], rtol=1e-12)


def test_values_that_a_gradient_of_ones_own_uses_may_overflow():
    at = np.float64(1000)  # its exponential is infinite
    with tw.Eager():
        assert tw.function(tw.grad(log1pexp))(tw.constant(at)).item() == 1
    with tw.Graph() as g:
        x = tw.placeholder("float64", [])
        slope = tw.gradients(log1pexp(x), x)
    assert tw.Session(g).run(slope, {x: at}) == 1


def test_wrong_gradients_of_ones_own_are_told(graph, x):
    with pytest.raises(TypeError, match="it must give its result and the function of its gradient"):
        tw.custom_gradient(lambda a: a)(x)
    with pytest.raises(TypeError, match="gives 2 values for 1 arguments"):
        tw.custom_gradient(lambda a: (a, lambda d: (d, d)))(x)
