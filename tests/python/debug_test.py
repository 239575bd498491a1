"""The first value that is not finite, in sessions and without a graph."""
import inspect
import re

import numpy as np
import pytest

import thalweg as tw


def line():
    return inspect.currentframe().f_back.f_lineno


def is_bad(array, nan_only=False):
    """Whether an array has elements that are not finite; by NumPy alone."""
    array = np.asarray(array)
    if array.dtype.kind not in "fc" and array.dtype.name not in ("bfloat16",):
        return False
    array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return bool(np.isnan(array).any() if nan_only else not np.isfinite(array).all())


def culprits(graph, feeds, state=()):
    """The operations whose result is not finite although all their inputs are, found by fetching every value in a session without checks."""
    values = [v for o in graph.operations() for v in o.outputs if v.dtype.name not in ("resource", "variant", "string")]
    with tw.Session(graph, optimize=False) as s:
        for operation in state:
            s.run(operation)
        bad = {v.name for v, a in zip(values, s.run(values, feeds)) if is_bad(a)}
    found = [o for o in graph.operations() if any(v.name in bad for v in o.outputs) and not any(v.name in bad for v in o.inputs)]
    return {o.name for o in found}


def fails(graph, fetches, feeds, check="finite", **options):
    """The error of a session that checks."""
    with tw.Session(graph, check_values=check, **options) as s:
        with pytest.raises(tw.InvalidArgumentError, match="is the first value with") as e:
            s.run(fetches, feeds)
    return e.value


TYPES = ["float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", TYPES)
def test_the_operation_its_line_and_the_ranges_of_its_inputs_are_named(graph, dtype):
    x = tw.placeholder(dtype, [3], name="x")
    hidden = (x + 1) * 2
    y = tw.ops.log(hidden * 0, name="here") if dtype.startswith("complex") else tw.ops.log(hidden, name="here"); made = line()
    z = tw.ops.exp(y) * 3 + y
    e = fails(graph, z, {x: np.array([1, -1, 0.5])})
    assert e.operation == "here" and e.line == (__file__, made) and f"Log 'here' (made at {__file__}:{made}) on CPU:0: output 0" in e.message
    if not dtype.startswith("complex"):
        assert "from 0 to 4" in e.message and "with 1 infinite" in e.message and "the first at [1]" in e.message
    with tw.Session(graph, check_values="finite") as s:  # values that are finite pass, bit for bit
        good = {x: np.array([0, 1, 2])}
        if not dtype.startswith("complex"):
            np.testing.assert_array_equal(s.run(z, good), tw.Session(graph).run(z, good))


def test_bfloat16_is_checked(graph):
    x = tw.placeholder("float32", [2], name="x")
    y = tw.ops.log(x.astype("bfloat16"), name="here").astype("float32")
    assert fails(graph, y, {x: [1, -1]}, "nan").operation == "here"


def test_nan_alone_lets_infinities_pass(graph):
    x = tw.placeholder("float32", [2], name="x")
    y = tw.ops.log(x, name="log")
    z = tw.ops.sub(y, y, name="difference")
    assert fails(graph, z, {x: [1, 0]}, "nan").operation == "difference"
    assert fails(graph, z, {x: [1, 0]}, "finite").operation == "log"
    with tw.Session(graph, check_values="nan") as s:
        assert s.run(y, {x: [1, 0]})[1] == -np.inf


def mlp(x):
    for i in range(4):
        x = tw.ops.tanh(tw.ops.mat_mul(x, np.full((4, 4), 0.3 + i, np.float32)))
    return tw.ops.sqrt(x - 0.5, name="root")


def norm(x):
    centred = x - x.mean(0, keepdims=True)
    return centred / (centred * centred).mean(0, keepdims=True) ** 0.5


def attention(x):
    scores = tw.ops.mat_mul(x, x, transpose_b=True) * 1e30
    return tw.ops.softmax(scores * scores) @ x


def loss(x):
    p = tw.ops.softmax(x * 100)
    return -(p * tw.ops.log(p)).sum()


MODELS = [(mlp, np.random.default_rng(1).normal(size=(5, 4))), (norm, np.ones((3, 4))), (attention, np.full((3, 4), 9.0)),
          (loss, np.arange(12.0).reshape(3, 4))]


@pytest.mark.parametrize("model,fed", MODELS, ids=[m.__name__ for m, _ in MODELS])
@pytest.mark.parametrize("options", [{}, {"engine": "counted"}, {"engine": "fixed", "optimize": False}], ids=["auto", "counted", "plain"])
def test_models_name_an_operation_with_finite_inputs(graph, model, fed, options):
    x = tw.placeholder("float32", [None, 4], name="x")
    y = model(x)
    expected = culprits(graph, {x: fed})
    assert expected and fails(graph, y, {x: fed}, **options).operation in expected


@pytest.mark.parametrize("model,fed", MODELS, ids=[m.__name__ for m, _ in MODELS])
def test_models_without_a_graph_name_the_same_line(graph, model, fed):
    x = tw.placeholder("float32", [None, 4], name="x")
    y = model(x)
    lines = {graph.line_of(name).number for name in culprits(graph, {x: fed})}
    value = tw.Eager().constant(fed.astype(np.float32))
    assert fails(graph, y, {x: fed}).line.number in lines
    with tw.Eager(), tw.debug(nan=True), pytest.raises(tw.InvalidArgumentError, match="is the first value with") as e:
        model(tw.constant(value.numpy()))
    assert e.value.line.number in lines


def test_a_loop_names_its_operation_and_iteration(graph, x):
    def body(i, y):
        return [i + 1, tw.ops.reciprocal(y - 3, name="turn") + 3 + tw.ops.reciprocal(y - 3) * 0]

    final = tw.while_loop(lambda i, y: i < 9, body, [0, x])[1]
    assert fails(graph, final, {x: 3}).operation.endswith("turn")
    steps = tw.while_loop(lambda i, y: i < 9, lambda i, y: [i + 1, tw.ops.log(y, name="shrink")], [0, x])[1]
    value, iterations = 20.0, 0
    while np.isfinite(value):
        value = np.log(np.float32(value)) if value > 0 else np.nan
        iterations += 1
    assert iterations > 2
    e = fails(graph, steps, {x: 20})
    assert e.operation.endswith("shrink") and e.line is not None
    e = fails(graph, steps, {x: 20}, disable_pass="sequence")
    assert e.operation.endswith("shrink") and f"in iteration {iterations - 1}: " in e.message


def test_conditions_and_functions_name_the_operation_inside(graph, x):
    chosen = tw.cond(x > 0, lambda: tw.ops.log(x - 1, name="inside"), lambda: x)
    e = fails(graph, chosen, {x: 1})
    assert e.operation.endswith("inside")
    with tw.Session(graph, check_values="finite") as s:
        assert s.run(chosen, {x: -2}) == -2  # the other branch does not run

    @tw.function
    def inner(a):
        return tw.ops.sqrt(a, name="root") * 2

    @tw.function
    def outer(a):
        return inner(a - 5) + 1

    for options in ({}, {"disable_pass": "inline"}):
        assert fails(graph, outer(x), {x: 1}, **options).operation.endswith("root")


def test_constants_are_computed_by_their_operations(graph):
    y = tw.ops.log(tw.constant([-1.0, 1.0]), name="log") * 0 + 1
    assert fails(graph, y, {}).operation == "log"


def test_a_feed_is_the_first_value(graph, x):
    y = x * 2
    with tw.Session(graph, check_values="finite") as s:
        with pytest.raises(tw.InvalidArgumentError, match=re.escape("the feed of 'x' has NaN or infinities: float[] with 1 NaN, the first at []")):
            s.run(y, {x: np.nan})
        assert s.run(y, {x: 1}) == 2  # the session stays usable


def test_an_update_of_a_variable_is_named(graph, x):
    w = tw.Variable([1.0, 2.0], name="w")
    step = tw.train.SGD(1e38).minimize((w * w * x).sum())
    with tw.Session(graph, check_values="finite") as s:
        s.run(graph.initializer())
        with pytest.raises(tw.InvalidArgumentError, match="the variable at input 0 is the first value with NaN or infinities") as e:
            s.run(step, {x: 10})
    assert "from 20 to 40" in e.value.message  # the gradient


def test_gradients_name_the_line_of_what_they_differentiate(graph, x):
    y = tw.ops.sqrt(x, name="root"); made = line()
    slope = tw.gradients(y, x)
    e = fails(graph, slope, {x: 0})
    assert e.line == (__file__, made)


def test_the_scope_reaches_sessions_and_trainers_made_inside(graph, x):
    y = tw.ops.log(x)
    outside = tw.Session(graph)
    with tw.debug(nan=True):
        with tw.Session(graph) as s, pytest.raises(tw.InvalidArgumentError, match="is the first value"):
            s.run(y, {x: -1})
        with tw.Session(graph, check_values="off") as s:
            assert np.isnan(s.run(y, {x: -1}))
        with tw.debug(nan=False), tw.Session(graph) as s:
            assert np.isnan(s.run(y, {x: -1}))
        trainer = tw.train.Trainer(lambda a: tw.ops.log(tw.nn.Dense(1)(a) * 0 - 1), "mean_squared_error", tw.train.SGD(0.1))
        with pytest.raises(tw.InvalidArgumentError, match="Log .* is the first value"):
            trainer.fit((np.ones((8, 2), np.float32), np.ones((8, 1), np.float32)), epochs=1, progress=False)
    assert np.isnan(outside.run(y, {x: -1}))
    with tw.Session(graph) as s:
        assert np.isnan(s.run(y, {x: -1}))


def test_without_a_graph_the_line_of_the_op_is_named_and_the_scope_ends():
    with tw.Eager():
        x = tw.constant([4.0, -1.0])
        with tw.debug(nan=True):
            y = x * 2
            with pytest.raises(tw.InvalidArgumentError) as e:
                made = line() + 1
                tw.ops.sqrt(y)
            assert e.value.line == (__file__, made) and "from -2 to 8" in e.value.message
            with tw.debug(nan=True, inf=False):
                assert np.isinf((x / 0).numpy()).all()
            with pytest.raises(tw.InvalidArgumentError):
                x / 0  # pylint: disable=pointless-statement
        assert np.isnan(tw.ops.sqrt(y).numpy()[1])


def test_gradients_of_a_tape_that_recorded_with_checks_are_checked():
    with tw.Eager(), tw.debug(nan=True), tw.Tape() as tape:
        x = tw.constant(0.0)
        tape.watch(x)
        y = tw.ops.sqrt(x)
        with pytest.raises(tw.InvalidArgumentError, match="is the first value"):
            tape.gradient(y, x)


def test_wrong_arguments_are_refused(graph):
    with pytest.raises(TypeError, match="debug: nan is 1; it must be True or False"):
        tw.debug(nan=1)
    with pytest.raises(tw.InvalidArgumentError, match="check_values"):
        tw.Session(graph, check_values="all")
