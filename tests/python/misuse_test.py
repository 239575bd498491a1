"""What a careless or hostile program does: an exception that says what was wrong, and an unharmed process."""
import copy
import gc
import pickle
import threading

import numpy as np
import pytest

import thalweg as tw


@pytest.fixture
def x(graph):
    return tw.placeholder("float32", [None, 3], name="x")


def test_what_stands_for_an_object_of_the_library_is_not_copied(graph, x):
    session, v = tw.Session(graph), tw.Variable(1.0)
    lbfgs = tw.train.LBFGS(v * v)
    for it in (graph, session, session.callable(x), tw.CancelToken(), tw.Runtime.default(), tw.StepStats(), lbfgs):
        for how in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                how(it)
    gc.collect()
    session.run(graph.initializer())
    assert lbfgs.run(session).loss == pytest.approx(0)


def test_tensors_are_copied_with_their_elements():
    for tensor in (tw.Tensor([[1, 2], [3, 4]]), tw.Tensor(["a", "b"]), tw.Tensor(2.5, "float64")):
        for again in (copy.copy(tensor), copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
            assert again.dtype == tensor.dtype and again.numpy().tolist() == tensor.numpy().tolist()


def test_texts_with_zero_bytes_are_refused_and_not_cut_short(graph, x):
    for wrong in (lambda: tw.placeholder("float32", name="a\0b"), lambda: graph.operation("x\0y"), lambda: "x\0" in graph,
                  lambda: tw.Session(graph, container="a\0b"), lambda: tw.Variable(1.0, name="v\0"), lambda: tw.load_plugin("p\0.so"),
                  lambda: tw.log.write("a\0b"), lambda: graph.import_bytes(b"", prefix="a\0")):
        with pytest.raises(ValueError, match="has a zero byte in it"):
            wrong()
    assert [o.type for o in graph.operations()] == ["Placeholder", "Const"]  # the latter for the variable


@pytest.mark.parametrize("wrong", [5, None, b"x", ["x"]])
def test_names_are_text(graph, x, wrong):
    with pytest.raises(TypeError, match="is no text"):
        graph.operation(wrong)


def test_numbers_beyond_64_bits_are_refused(graph, x):
    with pytest.raises(TypeError, match="num_split.*more than 64 bits"):
        tw.ops.split(0, x, num_split=2**70)
    with pytest.raises(TypeError, match="more than 64 bits"):
        tw.placeholder("float32", [2**70])
    with pytest.raises(TypeError, match="of no element type"):
        tw.ops.arg_max(x, 2**70)


def test_indices_beyond_32_bits_are_64_bits(run, x):
    with pytest.raises(tw.InvalidArgumentError, match="index 1099511627776 is outside axis 0"):
        run(x[2**40], {x: [[1, 2, 3]]})
    assert run(x[-2**40:2**40, tw.constant(1)], {x: [[1, 2, 3]]}).tolist() == [2]


def test_memory_that_nobody_has_is_an_error(run):
    with pytest.raises(tw.ResourceExhaustedError):
        run(tw.ops.fill(np.array([2**20, 2**20, 2**20]), 1.0))


@pytest.mark.parametrize("feed", [None, {}, [[1, 2], [3]], [[None, 1, 2]], object(), "text", np.zeros(3, "datetime64[s]"), lambda: 1])
def test_feeds_that_are_no_arrays_name_the_feed(run, x, feed):
    with pytest.raises(TypeError, match="feed 'x:0'"):
        run(x, {x: feed})
    with pytest.raises(TypeError, match="feed 'x:0'"):
        run.session.run_async(x, {x: feed})


@pytest.mark.parametrize("options, told", [({"timeout": "1"}, "timeout is a number of seconds"), ({"timeout": float("nan")}, "timeout"),
                                           ({"cancel": 7}, "cancel is a CancelToken")])
def test_options_of_a_run_have_their_types(run, x, options, told):
    with pytest.raises(TypeError, match=told):
        run(x, {x: [[1, 2, 3]]}, **options)


@pytest.mark.parametrize("timeout", [1e30, float("inf"), np.float32(10), 10])
def test_long_timeouts_are_none(run, x, timeout):
    assert run(x, {x: [[1, 2, 3]]}, timeout=timeout).shape == (1, 3)


@pytest.mark.parametrize("fetch", [None, 5, {1}, object(), lambda: 1])
def test_what_cannot_be_fetched_is_told(run, fetch):
    with pytest.raises(TypeError, match="cannot be fetched"):
        run(fetch)


def test_graphs_come_from_bytes_alone():
    for wrong in ("text", 2**40, None, [1]):
        with pytest.raises(TypeError):
            tw.Graph.from_bytes(wrong)
    with pytest.raises(tw.InvalidArgumentError, match="GraphDef"):
        tw.Graph.from_bytes(b"\xff" * 100)


def test_forged_values_are_of_no_graph(graph, run):
    for number in (12345, 2**64 - 1):
        with pytest.raises(tw.InvalidArgumentError):
            run(tw.Output(graph, number))


def test_callables_outlive_their_session(graph, x):
    session = tw.Session(graph)
    step = session.callable(x * 2, [x])
    del session
    gc.collect()
    assert step([[1, 2, 3]]).tolist() == [[2, 4, 6]]
    step.session.close()
    with pytest.raises(tw.FailedPreconditionError, match="closed"):
        step([[1, 2, 3]])


def test_a_session_may_be_closed_while_threads_run_it(graph, x):
    session, y, ended = tw.Session(graph), x * 2, []

    def work():
        try:
            while True:
                session.run(y, {x: np.ones((100, 3), np.float32)})
        except tw.FailedPreconditionError:
            ended.append(True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    session.close()
    for t in threads:
        t.join(30)
    assert len(ended) == 4


@pytest.mark.parametrize("wrong, told", [
    (lambda x: tw.device(0).__enter__(), 'a device is a name such as "CPU:0"'),
    (lambda x: tw.control_dependencies(x).__enter__(), "takes a list of operations and values"),
    (lambda x: tw.group("a"), "'a' is neither an operation nor a value"),
    (lambda x: tw.map_fn(lambda row: None, x), "map_fn: `fn` gives None")], ids=["device", "order", "group", "map"])
def test_what_is_of_another_kind_is_told_so(x, wrong, told):
    with pytest.raises(TypeError, match=told):
        wrong(x)


def test_numbers_of_records_are_not_negative():
    for wrong in (lambda: tw.StepStats(limit=-1), lambda: tw.Trace(most=0)):
        with pytest.raises(ValueError, match="-1; it is a number of records|0; a trace keeps a run or more"):
            wrong()


def test_a_variable_shows_its_shape_as_values_do(x):
    assert repr(tw.Variable(x, name="v")) == "<Variable 'v' float32 [?, 3]>" and repr(tw.Variable(1.0, name="s")) == "<Variable 's' float32 []>"


def test_handles_are_no_elements_to_move(graph):
    session, v = tw.Session(graph), tw.Variable(np.ones(2, np.float32))
    none = np.zeros(0, np.int32)
    for made in (lambda: tw.ops.tile(v.handle, none), lambda: tw.ops.slice(v.handle, none, none), lambda: tw.ops.zeros_like(v.handle)):
        with pytest.raises(tw.InvalidArgumentError, match="is of type resource; handles can only be passed on as they are"):
            session.run(made(), as_tensors=True)


def test_bounds_that_only_the_step_knows_are_refused_with_their_values(graph):
    low, high = (tw.placeholder("int32", []) for _ in range(2))
    drawn = tw.ops.random_uniform_int([3], low, high)
    session = tw.Session(graph)
    with pytest.raises(tw.InvalidArgumentError, match="'minval' is 5 and 'maxval' 3; minval must be below maxval"):
        session.run(drawn, {low: np.int32(5), high: np.int32(3)})
    assert (session.run(drawn, {low: np.int32(5), high: np.int32(6)}) == 5).all()
