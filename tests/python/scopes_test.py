import time

import pytest

import thalweg as tw


def test_name_scopes_nest_and_are_numbered(graph):
    names = []
    for _ in range(2):
        with tw.name_scope("dense") as prefix:
            names.append((prefix, tw.placeholder("float32", name="x").name, (tw.constant(1) + 1).name))
            with tw.name_scope("inner"):
                names.append(tw.placeholder("float32", name="x").name)
    assert names == [("dense/", "dense/x:0", "dense/AddV2:0"), "dense/inner/x:0", ("dense_1/", "dense_1/x:0", "dense_1/AddV2:0"),
                     "dense_1/inner/x:0"]


def test_numbers_of_scopes_pass_over_names_that_were_given_out(graph):
    prefixes = []
    for name in ("a", "a_1", "a", "a", "a_1", "a"):
        with tw.name_scope(name) as prefix:
            prefixes.append(prefix)
    assert prefixes == ["a/", "a_1/", "a_2/", "a_3/", "a_1_1/", "a_4/"]


def test_thousands_of_scopes_of_one_name_are_numbered_without_a_search(graph):
    start = time.process_time()
    for _ in range(20_000):
        with tw.name_scope("layer") as prefix:
            pass
    assert prefix == "layer_19999/" and time.process_time() - start < 5  # 30 s where each number is tried anew


def test_a_scope_can_be_entered_again(graph):
    with tw.name_scope("a") as prefix, tw.name_scope("b"):
        with tw.name_scope(prefix):
            assert tw.placeholder("float32", name="x").name == "a/x:0"
        with tw.name_scope("/"):
            assert tw.placeholder("float32", name="top").name == "top:0"


def test_names_without_a_name_stay_apart_in_a_scope(graph):
    with tw.name_scope("s"):
        assert [tw.ops.no_op().name for _ in range(3)] == ["s/NoOp", "s/NoOp_1", "s/NoOp_2"]


def test_what_has_a_larger_priority_runs_first(graph):
    x = tw.placeholder("float32", [4], name="x")
    values = []
    for number in (0, 5, -1):
        with tw.priority(number):
            values.append(tw.ops.neg(x, name=f"p{number}"))
    with tw.priority(3), tw.name_scope("in"):
        values.append(tw.ops.neg(x, name="p3"))
    plan = tw.Session(graph, threads=1, optimize=False).plan(values, {x: [4]})
    assert [(n["name"], n["priority"]) for n in plan["nodes"]] == [("p5", 5), ("in/p3", 3), ("p0", 0), ("p-1", -1)]


@pytest.mark.parametrize("wrong", [1.5, "high", None, True, 2**31, -2**31 - 1])
def test_priorities_are_whole_numbers(graph, wrong):
    with pytest.raises(TypeError, match="a priority is a whole number"):
        with tw.priority(wrong):
            tw.constant(1)


def test_devices_are_asked_for(graph):
    with tw.device("CPU:0"):
        inside = tw.constant(1) + 1
        with tw.device(""):
            anywhere = tw.constant(1)
        with tw.device(None):
            here = tw.constant(1)
    assert inside.operation.device.endswith("CPU:0") and anywhere.operation.device == here.operation.device == ""
    assert tw.Session(graph).run(inside) == 2
    with pytest.raises(tw.InvalidArgumentError):
        with tw.device("no device at all"):
            tw.constant(1)


def test_control_dependencies_add_up(run, graph):
    v = tw.Variable(1.0, name="v")
    run(graph.initializer())
    with tw.control_dependencies([v.assign(5.0)]) :
        with tw.control_dependencies([tw.ops.no_op(name="first")]):
            read = v.read()
    assert {o.type for o in read.operation.control_inputs} == {"AssignVariableOp", "NoOp"}
    assert run(read) == 5


def test_scopes_end_with_their_block_after_errors_too(graph):
    with pytest.raises(ZeroDivisionError):
        with tw.name_scope("a"), tw.device("CPU:0"), tw.control_dependencies([]):
            1 / 0
    x = tw.placeholder("float32", name="x")
    assert x.name == "x:0" and x.operation.device == ""


def test_wrong_dependencies_are_refused(graph):
    with pytest.raises(TypeError, match="neither an operation nor a value"):
        with tw.control_dependencies([3]):
            pass
    with tw.Graph():
        other = tw.ops.no_op()
    with pytest.raises(ValueError, match="of another graph"):
        with tw.control_dependencies([other], graph):
            pass
