import copy
import os
import pathlib
import pickle

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
        tw.Saver().save(session, tmp_path / "nowhere" / "deeper" / "model")
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


def value(session, variable):
    return session.run(variable).tolist()


def test_names_in_files_and_shards(trained, tmp_path):
    session, w, b = trained
    saver = tw.Saver(names={"dense/*": "old/*", "dense/b": "bias"}, shards=2)
    saver.save(session, tmp_path / "model")
    assert tw.Checkpoint(tmp_path / "model").names == ["bias", "old/w"]
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".data-00000-of-00002", ".data-00001-of-00002", ".index"]
    session.run(b.assign([0, 0, 0]))
    saver.restore(session, tmp_path / "model")
    assert value(session, b) == [1, 2, 3]
    with pytest.raises(tw.InvalidArgumentError, match="dense/\\*"):
        tw.Saver(names={"dense/*": "x"}).save(session, tmp_path / "model")
    with pytest.raises(ValueError, match="shards is 0"):
        tw.Saver(shards=0)


def test_a_misspelt_name_is_an_error_with_the_closest(trained, tmp_path):
    session, w, b = trained
    names = {"dense/*": "old/*", "dense/bb": "bias"}
    with pytest.raises(tw.InvalidArgumentError, match="'dense/bb' to 'bias' is for none of the 2 variables; the closest is 'dense/b'"):
        tw.Saver(names=names).save(session, tmp_path / "model")
    tw.Saver(names=names, unused_names=True).save(session, tmp_path / "model")
    assert tw.Checkpoint(tmp_path / "model").names == ["old/b", "old/w"]


def test_two_checkpointers_share_a_folder(trained, tmp_path):
    session, _, b = trained
    with tw.Checkpointer(session, tmp_path, keep_last=1) as c, tw.Checkpointer(session, tmp_path, name="other", keep_last=1) as other:
        for step in range(1, 4):
            session.run(b.assign([step, step, step]))
            c.save(step)
            other.save(10 * step)
        assert c.restore() == 3 and other.restore() == 30
    assert sorted(p.stem for p in tmp_path.glob("*.index")) == ["model.ckpt-3", "other-30"]


def test_a_partial_restore_says_what_it_did(trained, tmp_path):
    session, w, b = trained
    tw.write_checkpoint(tmp_path / "other", {"old/w": np.ones((2, 3), np.float32), "old/b": np.ones(2), "old/c": np.float32(1)})
    report = tw.Saver(names={"dense/*": "old/*"}).restore_partial(session, tmp_path / "other")
    assert [(r.outcome, r.variable, r.name) for r in report] == [("restored", "dense/w", "old/w"), ("other dtype", "dense/b", "old/b"),
                                                                 ("unused", None, "old/c")]
    assert "dense/b" in report[1].text and "double" in report[1].text
    assert value(session, w) == [[1, 1, 1], [1, 1, 1]] and value(session, b) == [1, 2, 3]


@pytest.mark.parametrize("background", [False, True])
def test_training_goes_on_where_it_was(trained, tmp_path, background):
    session, _, b = trained
    with tw.Checkpointer(session, tmp_path / "run", every_steps=4, keep_last=2, background=background) as c:
        assert c.restore() == 0 and c.report().step is None
        for step in range(1, 11):
            session.run(b.assign([step, step, step]))
            assert c.step(step) == (step % 4 == 0)
        c.wait()
        assert c.report().step == 8 and c.report().saves == 2
        assert 0 < c.report().stall < 5 and 0 < c.report().seconds < 5 and c.report().bytes == 36
    assert tw.latest_checkpoint(tmp_path / "run") == str(tmp_path / "run" / "model.ckpt-10")  # the last step, saved by leaving the block
    assert sorted(p.stem for p in (tmp_path / "run").glob("*.index")) == ["model.ckpt-10", "model.ckpt-8"]
    session.run(b.assign([0, 0, 0]))
    with tw.Checkpointer(session, tmp_path / "run") as c:
        assert c.restore() == 10 and value(session, b) == [10, 10, 10]
    with pytest.raises(ValueError, match="closed"):
        c.save(11)


def test_an_error_in_the_block_saves_nothing_more(trained, tmp_path):
    session, *_ = trained
    with pytest.raises(KeyError):
        with tw.Checkpointer(session, tmp_path / "run") as c:
            c.step(1)
            raise KeyError
    assert tw.latest_checkpoint(tmp_path / "run") is None


def test_the_best_and_the_newest_whole_checkpoint(trained, tmp_path):
    session, _, b = trained
    with tw.Checkpointer(session, tmp_path / "run", every_steps=1, keep_last=2, keep_best=1, smaller_is_better=True) as c:
        for step, loss in enumerate([3.0, 1, 2, 4, 5], 1):
            session.run(b.assign([step, step, step]))
            c.step(step, loss)
        assert c.restore("best") == 2 and value(session, b) == [2, 2, 2]
        next((tmp_path / "run").glob("model.ckpt-5.data*")).write_bytes(b"torn")
        assert c.restore() == 4 and value(session, b) == [4, 4, 4]
        assert tw.latest_checkpoint(tmp_path / "run").endswith("model.ckpt-4")
        for index in (tmp_path / "run").glob("*.index"):
            index.write_bytes(b"torn")
        with pytest.raises(tw.DataLossError, match="no whole checkpoint"):
            c.restore()
        with pytest.raises(ValueError, match="newest"):
            c.restore("newest")
    with pytest.raises(ValueError, match="keep_last is 0"):
        tw.Checkpointer(session, tmp_path / "run", keep_last=0)


def test_what_stands_for_an_object_is_neither_copied_nor_pickled(trained, tmp_path):
    session, *_ = trained
    saver = tw.Saver()
    saver.save(session, tmp_path / "model")
    with tw.Checkpointer(session, tmp_path / "run") as checkpointer, tw.Checkpoint(tmp_path / "model") as checkpoint:
        for owner in (saver, checkpointer, checkpoint):
            for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError, match="cannot be copied or pickled"):
                    duplicate(owner)
        assert len(checkpoint) == 2


def test_a_checkpoint_that_is_closed_says_so(trained, tmp_path):
    tw.Saver().save(trained[0], tmp_path / "model")
    with tw.Checkpoint(tmp_path / "model") as c:
        assert repr(c) == "<Checkpoint of 2 tensors>"
    for read in (lambda: c["dense/w"], lambda: c.describe("dense/w"), c.verify):
        with pytest.raises(ValueError, match="the checkpoint is closed"):
            read()
    c.close()


@pytest.mark.parametrize("wrong", ["w", 3, None])
def test_a_saver_is_given_variables(trained, tmp_path, wrong):
    session, w, _ = trained
    with pytest.raises(TypeError, match=r"variables\[1\] is .*, neither a variable nor the handle of a resource"):
        tw.Saver([w, wrong]).save(session, tmp_path / "model")
    with pytest.raises(TypeError, match=r"variables\[0\]"):
        tw.Saver([wrong]).save(session, tmp_path / "model")


def test_a_zero_byte_does_not_cut_a_path_or_a_name(trained, tmp_path):
    session, *_ = trained
    tw.Saver().save(session, tmp_path / "model")
    path = str(tmp_path / "model\0x")
    for call in (lambda: tw.Saver().save(session, path), lambda: tw.Saver().restore(session, path), lambda: tw.Checkpoint(path),
                 lambda: tw.Saver().restore_partial(session, path), lambda: tw.latest_checkpoint(str(tmp_path) + "\0"),
                 lambda: tw.write_checkpoint(path, {}), lambda: tw.write_checkpoint(tmp_path / "w", {"a\0b": 1.0}),
                 lambda: tw.Checkpointer(session, str(tmp_path) + "\0"), lambda: tw.Checkpointer(session, tmp_path, name="a\0b"),
                 lambda: tw.Saver(names={"dense/w\0": "x"}).save(session, tmp_path / "w"),
                 lambda: tw.Checkpoint(tmp_path / "model").verify("dense/w\0"),
                 lambda: tw.Checkpoint(tmp_path / "model").describe("dense/w\0")):
        with pytest.raises(ValueError, match="zero byte"):
            call()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.data-00000-of-00001", "model.index"]


def test_numbers_that_would_wrap_are_refused(trained, tmp_path):
    session, *_ = trained
    for wrong in ({"keep_last": 2**32 + 1}, {"keep_best": -1}, {"shards": 2**32 + 1}, {"shards": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            tw.Checkpointer(session, tmp_path, **wrong)


def test_slices_are_saved_merged_and_restored_by_the_ops(tmp_path):
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    text = lambda *values: np.array([str(v).encode() for v in values], object)
    with tw.Graph() as g:
        saves = [tw.ops.save_v2(tw.constant(str(tmp_path / "temp" / part).encode()), text("w"), text(f"4 3 {2 * i},2:-"),
                                [tw.constant(rows[2 * i:2 * i + 2])]) for i, part in enumerate("ab")]
        with tw.control_dependencies(saves):
            parts = tw.constant(text(tmp_path / "temp" / "a", tmp_path / "temp" / "b"))
            merge = tw.ops.merge_v2_checkpoints(parts, tw.constant(str(tmp_path / "c").encode()))
        prefix = tw.constant(str(tmp_path / "c").encode())
        whole, middle, outside = (tw.ops.restore_v2(prefix, text("w"), text(slices), dtypes=["float32"])
                                  for slices in ("", "4 3 1,2:1,2", "5 3 1,2:-"))
    session = tw.Session(g)
    session.run(merge)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.data-00000-of-00002", "c.data-00001-of-00002", "c.index"]
    first = lambda value: value[0] if isinstance(value, (list, tuple)) else value
    np.testing.assert_array_equal(session.run(first(whole)), rows)
    np.testing.assert_array_equal(session.run(first(middle)), rows[1:3, 1:])
    with pytest.raises(tw.InvalidArgumentError, match=r"shape \[4, 3\] in the file, not \[5, 3\]"):
        session.run(first(outside))


def test_paths_of_a_plugins_file_system():
    runtime = tw.Runtime()
    runtime.load_plugin(pathlib.Path(os.environ["THALWEG_BINARY_DIR"]) / "examples/plugins/libmem.so")
    tw.write_checkpoint("mem://models/m-3", {"v": np.float32([1, 2])}, runtime)
    assert tw.latest_checkpoint("mem://models", runtime) == "mem://models/m-3"
    with tw.Checkpoint("mem://models/m-3", runtime) as c:
        np.testing.assert_array_equal(c["v"], [1, 2])
    with pytest.raises(tw.FailedPreconditionError, match="no plugin has a file system 'far://'; there are: mem://"):
        tw.Checkpoint("far://x", runtime)
