import numpy as np
import pytest

import thalweg as tw


@pytest.fixture
def frozen(tmp_path):
    """The file of a graph y = 2 x + b, whose name says nothing."""
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None, 3], name="x")
        tw.ops.add_v2(x * 2, np.array([1, 2, 3], np.float32), name="y")
    path = tmp_path / "model.any"
    path.write_bytes(g.to_bytes())
    return path


def test_a_model_is_called_with_inputs_by_name_or_in_order(frozen):
    m = tw.load(frozen)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for y in (m(x=x)["y"], m(x)["y"], m.run({"x": x}, signature="serving_default")["y"]):
        np.testing.assert_array_equal(y, 2 * x + [1, 2, 3])
    assert isinstance(m(x, as_tensors=True)["y"], tw.Tensor)
    np.testing.assert_array_equal(m(tw.Tensor(x))["y"], 2 * x + [1, 2, 3])


def test_signatures_describe_inputs_and_outputs(frozen):
    m = tw.load(frozen)
    s = m.signature
    assert list(m.signatures) == ["serving_default"] and m.importer == "savedmodel" and m.properties["format"] == "GraphDef"
    assert [p.name for p in s.inputs] == ["x"] and s.inputs[0].shape == (None, 3) and s.inputs[0].dtype == tw.float32
    assert [p.name for p in s.outputs] == ["y"] and not s.inputs[0].optional


def test_graph_and_session_of_a_model_can_be_used(frozen):
    m = tw.load(frozen)
    with m.graph as g:
        z = g.output("y") * 10
    np.testing.assert_array_equal(m.session.run(z, {"x": [[0, 0, 0]]}), [[10, 20, 30]])
    graph, session = m.graph, m.session
    del m
    np.testing.assert_array_equal(session.run(graph.output("y"), {"x": [[0, 0, 0]]}), [[1, 2, 3]])


def test_wrong_calls_say_what_a_model_takes(frozen):
    m = tw.load(frozen)
    with pytest.raises(tw.InvalidArgumentError, match=r"input 'x' has shape \[2\]; the model takes \[\?, 3\]"):
        m(x=[1, 2])
    with pytest.raises(tw.InvalidArgumentError, match="missing: 'x'"):
        m()
    with pytest.raises(tw.InvalidArgumentError, match="has no input 'z'; it has 'x'"):
        m(z=1)
    with pytest.raises(tw.NotFoundError, match="no signature 'other'"):
        m(x=[[1, 2, 3]], signature="other")
    with pytest.raises(tw.InvalidArgumentError, match="1 inputs, and 2 were given"):
        m(1, 2)


def test_options_go_to_the_importer_and_the_session(frozen):
    m = tw.load(frozen, outputs="y,x", session={"threads": 1})
    assert [p.name for p in m.signature.outputs] == ["y", "x"]
    with pytest.raises(tw.InvalidArgumentError, match="no option 'output'; its options are 'tags', "):
        tw.load(frozen, output="y")
    with pytest.raises(tw.InvalidArgumentError, match="thread"):
        tw.load(frozen, session={"thread": 1})
    assert "SavedModel" in tw.importers()["savedmodel"]


def test_files_that_no_importer_knows_are_errors(tmp_path):
    (tmp_path / "text").write_text("hello")
    with pytest.raises(tw.InvalidArgumentError, match="no importer recognises what the file holds: there are importers .*savedmodel"):
        tw.load(tmp_path / "text")
    with pytest.raises(tw.NotFoundError, match="nowhere"):
        tw.load(tmp_path / "nowhere")
