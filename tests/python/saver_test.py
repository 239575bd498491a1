import numpy as np
import pytest

import thalweg as tw


@pytest.fixture
def trained(graph):
    with tw.name_scope("dense"):
        w, b = tw.Variable(np.arange(6, dtype=np.float32).reshape(2, 3), name="w"), tw.Variable([1.0, 2, 3], name="b")
    session = tw.Session(graph)
    session.run(graph.initializer())
    return session, w, b


def test_variables_are_saved_and_restored(trained, tmp_path):
    session, w, b = trained
    saver = tw.Saver()
    saver.save(session, tmp_path / "model")
    session.run([w.assign(np.zeros((2, 3))), b.assign([0, 0, 0])])
    saver.restore(session, tmp_path / "model")
    np.testing.assert_array_equal(session.run(w), [[0, 1, 2], [3, 4, 5]])
    other = tw.Graph.from_bytes(session.graph.to_bytes())
    again = tw.Session(other, container="again")
    tw.Saver().restore(again, tmp_path / "model")
    np.testing.assert_array_equal(again.run(other.variables()[1]), [1, 2, 3])


def test_some_of_the_variables(trained, tmp_path):
    session, w, _ = trained
    tw.Saver([w]).save(session, tmp_path / "some")
    with tw.Checkpoint(tmp_path / "some") as c:
        assert list(c) == ["dense/w"] and len(c) == 1 and "dense/b" not in c
        np.testing.assert_array_equal(c["dense/w"], [[0, 1, 2], [3, 4, 5]])
        assert c.describe("dense/w") == (tw.float32, (2, 3), 24) and c.read("dense/w").shape == (2, 3)
        c.verify()
        c.verify("dense/w")
        with pytest.raises(KeyError):
            c["dense/b"]
        with pytest.raises(tw.NotFoundError):
            c.describe("dense/b")
    with pytest.raises(tw.NotFoundError, match="dense/b"):
        tw.Saver().restore(session, tmp_path / "some")


def test_checkpoints_without_a_graph(tmp_path):
    values = {"a": np.arange(3), "b/c": np.float32(1.5), "text": np.array([b"x", b"yz"], object)}
    tw.write_checkpoint(tmp_path / "plain", values)
    c = tw.Checkpoint(str(tmp_path / "plain"))
    assert c.names == ["a", "b/c", "text"]
    for name, value in values.items():
        np.testing.assert_array_equal(c[name], value)


def test_damage_and_absence_are_told(trained, tmp_path):
    session, *_ = trained
    with pytest.raises(tw.NotFoundError, match="nothing"):
        tw.Checkpoint(tmp_path / "nothing")
    with pytest.raises(tw.Error, match="nowhere"):
        tw.Saver().save(session, tmp_path / "nowhere" / "model")
    tw.Saver().save(session, tmp_path / "model")
    data = next(tmp_path.glob("model.data-*"))
    data.write_bytes(data.read_bytes()[:-1] + b"\xff")
    with pytest.raises(tw.DataLossError):
        tw.Checkpoint(tmp_path / "model").verify()
    (tmp_path / "bad.index").write_bytes(b"no index")
    with pytest.raises(tw.DataLossError):
        tw.Checkpoint(tmp_path / "bad")


def test_savers_belong_to_one_graph(trained, tmp_path):
    session, *_ = trained
    saver = tw.Saver()
    saver.save(session, tmp_path / "model")
    with tw.Graph() as other:
        tw.Variable(1.0, name="v")
    with pytest.raises(ValueError, match="another graph"):
        saver.save(tw.Session(other), tmp_path / "model")
    with pytest.raises(tw.FailedPreconditionError):
        tw.Saver().save(tw.Session(tw.Graph()), tmp_path / "model")
    with pytest.raises(ValueError, match="no variables"):
        tw.Saver([])
