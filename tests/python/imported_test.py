import numpy as np
import pytest

import thalweg as tw


@pytest.fixture
def imported(graph, tmp_path_factory):
    """A graph that came from outside, with a variable and operations that save it, and a session that has set the variable."""
    tw.Variable(np.arange(3, dtype=np.float32), name="v")
    init = graph.initializer(name="init")
    with tw.Session(graph, container="source") as session:
        session.run(init)
        tw.Saver().save(session, tmp_path_factory.mktemp("source") / "model")  # adds the operations
    other = tw.Graph.from_bytes(graph.to_bytes())
    with tw.Session(other, container="imported") as session:
        session.run("init")
    return other


def save(graph, prefix, **options):
    with tw.Session(graph, container="imported", **options) as session:
        session.run("save/control_dependency", {"save/Const": str(prefix)})


def test_imported_graphs_reach_no_files(imported, tmp_path):
    with pytest.raises(tw.PermissionDeniedError, match="SaveV2 'save/SaveV2' of an imported graph touches files"):
        save(imported, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_folder_can_be_allowed(imported, tmp_path):
    (tmp_path / "allowed").mkdir()
    save(imported, "model", allow_files=tmp_path / "allowed")
    with tw.Checkpoint(tmp_path / "allowed/model") as c:
        np.testing.assert_array_equal(c["v"], [0, 1, 2])
    with pytest.raises(tw.PermissionDeniedError, match="does not lie beneath"):
        save(imported, tmp_path / "model", allow_files=tmp_path / "allowed")
    assert len(list(tmp_path.iterdir())) == 1
    save(imported, tmp_path / "model", trust_imported=True)
    assert (tmp_path / "model.index").exists()


def test_a_saver_of_the_program_needs_no_permission(imported, tmp_path):
    with tw.Session(imported, container="imported") as session:
        tw.Saver().save(session, tmp_path / "own")
    assert (tmp_path / "own.index").exists()


def test_ops_can_be_chosen(imported):
    for options, text in ({"deny_ops": ["NoOp", "AssignVariableOp"]}, "deny_ops"), ({"allow_ops": "VarHandleOp,Const"}, "allow_ops"):
        with tw.Session(imported, container="imported", **options) as session:
            with pytest.raises(tw.PermissionDeniedError, match=f"op AssignVariableOp is .*{text}"):
                session.run("init")
    with tw.Session(imported, container="imported", allow_ops=["VarHandleOp", "Const", "AssignVariableOp", "NoOp", "Identity"]) as session:
        session.run("init")


def test_memory_has_a_limit(graph):
    n = tw.placeholder("int32", [1])
    filled = graph.op("Fill", n, np.float32(1))
    with tw.Session(graph, memory_limit="1M") as session:
        assert session.run(filled, {n: [1000]}).size == 1000
        with pytest.raises(tw.ResourceExhaustedError, match="of the 1048576 bytes of its memory_limit"):
            session.run(filled, {n: [1 << 30]})


def test_steps_have_a_time(graph):
    x = y = tw.placeholder("float32", [None])
    for _ in range(100):
        y = tw.ops.sin(y)
    with tw.Session(graph, threads=1, step_timeout_ms=1) as session:
        with pytest.raises(tw.DeadlineExceededError):
            session.run(y, {x: np.ones(1 << 20, np.float32)})
        assert session.run(y, {x: np.ones(1 << 20, np.float32)}, timeout=60).size == 1 << 20  # a time of its own goes before


def test_wrong_limits_name_the_option(graph, tmp_path):
    for options in {"deny_ops": "Nothing"}, {"allow_files": tmp_path / "nowhere"}, {"memory_limit": "1X"}, {"step_timeout_ms": -1}:
        with pytest.raises((tw.InvalidArgumentError, tw.NotFoundError), match=next(iter(options))):
            tw.Session(graph, **options)
