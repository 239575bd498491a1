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
