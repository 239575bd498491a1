import inspect
import pickle

import numpy as np
import pytest

import thalweg as tw
from thalweg import _low, errors


def line():
    return inspect.currentframe().f_back.f_lineno


def test_there_is_one_class_per_code():
    codes = {value for name, value in vars(_low).items() if name.startswith("TW_") and _low.tw_status_code_name(value).decode() == name[3:]}
    assert len(codes) == 17 and set(errors.BY_CODE) == codes - {_low.TW_OK}
    for code, kind in errors.BY_CODE.items():
        status = _low.tw_status_create(code, b"what happened")
        with pytest.raises(kind, match="^what happened$") as e:
            errors.check(status)
        assert type(e.value) is kind and e.value.code == code and e.value.operation is None and e.value.line is None
        assert kind.__name__.upper() == e.value.code_name.replace("_", "") + "ERROR"


def test_classes_are_pythons_too():
    for kind, python in ((tw.InvalidArgumentError, ValueError), (tw.NotFoundError, LookupError), (tw.OutOfRangeError, IndexError),
                         (tw.UnimplementedError, NotImplementedError)):
        assert issubclass(kind, python) and issubclass(kind, tw.Error)


def test_a_failing_step_names_the_operation_and_the_line_that_made_it(run):
    x = tw.placeholder("float32", name="x")
    with tw.name_scope("head"):
        tw.ops.mat_mul(x, np.ones((3, 4), np.float32), name="mm"); made = line()
    with pytest.raises(tw.InvalidArgumentError) as e:
        run("head/mm", {x: np.ones((2, 5))})
    assert e.value.operation == "head/mm" and e.value.line == (__file__, made)
    assert f"MatMul 'head/mm' (made at {__file__}:{made})" in e.value.message == str(e.value)


def test_operators_and_methods_point_to_the_program_too(run):
    x = tw.placeholder("float32", name="x")
    y = x @ [[1.0]]; made = line()
    with pytest.raises(tw.InvalidArgumentError) as e:
        run(y, {x: np.ones((2, 5))})
    assert e.value.line == (__file__, made)
    z = x.reshape(7, 7).sum(); made = line()
    with pytest.raises(tw.InvalidArgumentError) as e:
        run(z, {x: np.ones((2, 5))})
    assert e.value.line == (__file__, made)


def test_operations_that_one_call_made_point_to_that_call(run, graph):
    x, v = tw.placeholder("float32", [None], name="x"), tw.Variable(np.ones(3, np.float32), name="v")
    gradient = tw.gradients((x * v).sum(), v)
    before = len(graph)
    tw.train.Adam().apply([gradient], [v]); made = line()
    lines = {o.line for o in graph.operations()[before:]}
    assert lines == {tw.Line(__file__, made)} and graph.operation("v").line.file == __file__


def test_gradients_point_to_the_line_of_what_they_are_of(run, graph):
    x, w = tw.placeholder("float32", name="x"), tw.placeholder("float32", name="w")
    y = tw.ops.mat_mul(x, w); made = line()
    dy = tw.placeholder("float32", name="dy")
    g = tw.gradients(y, w, [dy])
    assert g.operation.line == (__file__, made) and g.operation.name != y.operation.name
    with pytest.raises(tw.InvalidArgumentError) as e:
        run(g, {x: np.ones((2, 3)), w: np.ones((3, 4)), dy: np.ones((5, 4))})
    assert e.value.operation == g.operation.name and e.value.line == (__file__, made)
    loss = x.sum() ** 2; made = line()
    before = len(graph)
    tw.gradients(loss, x)
    assert {o.line for o in graph.operations()[before:]} == {tw.Line(__file__, made), x.operation.line}  # the latter asks for its shape


def test_places_that_other_languages_set_are_read():
    for place, wanted in ((b"a/b.c:18", ("a/b.c", 18)), (b"C:\\x.py:3", ("C:\\x.py", 3)), (b"somewhere", ("somewhere", 0)),
                          (b":7", (":7", 0)), (b"", None), (None, None)):
        assert errors.line_of(place) == wanted


def test_what_cannot_be_made_points_to_the_line_that_tried(graph):
    x = tw.placeholder("float32", [2, 3])
    with pytest.raises(tw.InvalidArgumentError) as e:
        tw.ops.mat_mul(x, x, name="mm")
    tried = e.traceback[0].lineno + 1
    assert e.value.operation == "mm" and e.value.line == (__file__, tried) and "mm" not in graph


def test_feeds_that_are_missing_are_told_with_the_placeholders_line(run):
    x = tw.placeholder("float32", name="needed"); made = line()
    with pytest.raises(tw.InvalidArgumentError, match="needed") as e:
        run(x + 1)
    assert e.value.line == (__file__, made)


def test_feeds_and_fetches_that_name_nothing_are_told_with_what_there_is(graph, run):
    images = tw.placeholder("float32", [], name="images")
    y = images + 1
    with pytest.raises(tw.NotFoundError, match="^feed 'image:0': the graph has no operation 'image'; did you mean 'images'"):
        run(y, {"image:0": 1})
    with pytest.raises(tw.NotFoundError, match="^feed 'q': the graph has no operation 'q'; its placeholders are 'images'$"):
        run(y, {"q": 1})
    for i in range(6):
        tw.placeholder("float32", [], name=f"further_{i}")
    with pytest.raises(tw.NotFoundError, match="'q'; its placeholders are 'images', 'further_0', .*'further_3' and 2 more$"):
        run("q")


def test_what_cannot_be_cast_is_not_said_to_be(graph):
    x, n, text, v = tw.constant(np.float32(1)), tw.constant(np.int32(1)), tw.constant("a"), tw.Variable(np.float32(1), name="v")
    for give, words in ((n, "but is int32 .*; cast it$"), (v.handle, "but is resource .*cannot be cast: read what it leads to"),
                        (text, "but is string .*cannot be cast: parse it")):
        with pytest.raises(tw.InvalidArgumentError, match=words):
            graph.op("Add", x, give)
    with pytest.raises(tw.InvalidArgumentError, match="must be resource but is float; give the handle of a resource"):
        graph.op("ReadVariableOp", x, dtype=tw.as_dtype("float32"))
    with pytest.raises(tw.InvalidArgumentError, match="must be string but is float; numbers cannot be cast to strings"):
        graph.op("StringLength", x)


def test_imported_operations_have_no_line(graph):
    x = tw.placeholder("float32", name="x")
    tw.ops.mat_mul(x, np.ones((3, 4), np.float32), name="mm")
    with pytest.raises(tw.InvalidArgumentError) as e:
        tw.Session(tw.Graph.from_bytes(graph.to_bytes())).run("mm", {"x": np.ones((2, 5))})
    assert e.value.operation == "mm" and e.value.line is None and "\n" not in str(e.value)


def test_errors_can_be_pickled():
    e = pickle.loads(pickle.dumps(tw.NotFoundError("text", "op", tw.Line("f.py", 3))))
    assert type(e) is tw.NotFoundError and (e.message, e.operation, e.line) == ("text", "op", ("f.py", 3))
