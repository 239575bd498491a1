"""Recorded steps and their replay: the same bits in another process, with dropout, random numbers, iterators and loops."""
import json
import subprocess
import sys

import numpy as np
import pytest

import thalweg as tw

rng = np.random.default_rng(26)
IMAGES, LABELS = rng.normal(size=(40, 8, 8, 1)).astype(np.float32), rng.integers(0, 4, 40).astype(np.int32)


@pytest.fixture
def trained(graph):
    """A net with dropout and batch normalisation, some steps into a training with Adam: (session, fetches, feeds)."""
    tw.random.seed(5)
    x, y = tw.placeholder("float32", [None, 8, 8, 1], name="x"), tw.placeholder("int32", [None], name="y")
    net = tw.nn.Sequential(tw.nn.Conv2D(4, 3, "relu"), tw.nn.BatchNorm(), tw.nn.Flatten(), tw.nn.Dropout(0.5), tw.nn.Dense(4))
    loss = tw.ops.sparse_softmax_cross_entropy_with_logits(net(x), y).loss.mean()
    step = tw.train.Adam(0.01).minimize(loss)
    tw.random.seed(None)
    feeds = {x: IMAGES, y: LABELS, tw.nn.training(graph): True}
    with tw.Session(graph) as s:
        s.run(graph.initializer())
        for _ in range(7):
            s.run(step, feeds)
        yield s, [loss, step], feeds


def test_a_step_with_dropout_is_replayed_with_the_same_bits(trained, tmp_path):
    session, (loss, step), feeds = trained
    got = tw.record_step(session, {"loss": loss, "step": [step]}, feeds, folder=tmp_path / "step")
    assert got["step"] == [None]
    replay = tw.replay_step(tmp_path / "step")
    assert replay.same and replay.differing == []
    assert replay.values[loss.name].numpy().tobytes() == got["loss"].tobytes()
    updated = {name.removeprefix("variable ") for name in replay.values if name.startswith("variable ")}
    assert {v.name for v in session.graph.variables() if v.trainable} <= updated and any("dropout_draws" in name for name in updated)
    for v in session.graph.variables():
        if v.name in updated:
            assert replay.values[f"variable {v.name}"].numpy().tobytes() == session.run(v).tobytes(), v.name
    assert session.run(loss, feeds) != got["loss"]  # the mask of the next step is another
    assert tw.replay_step(tmp_path / "step", threads=1).same  # again, and with another number of threads


def test_the_replay_of_another_process_has_the_same_bits(trained, tmp_path):
    session, fetches, feeds = trained
    loss = tw.record_step(session, fetches, feeds, folder=tmp_path / "step")[0]
    program = ("import sys, thalweg as tw\nr = tw.replay_step(sys.argv[1])\n"
               "print(r.same, *(t.numpy().tobytes().hex() for n, t in r.values.items() if not n.startswith('variable ')))")
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "step")], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", loss.tobytes().hex()]


def test_the_command_replays_and_says_what_differs(trained, tmp_path):
    session, (loss, step), feeds = trained
    tw.record_step(session, [loss, step], feeds, folder=tmp_path / "step")

    def replay(status):
        done = subprocess.run([sys.executable, "-m", "thalweg", "replay", str(tmp_path / "step"), "--json"], capture_output=True, text=True)
        assert done.returncode == status, done
        return done
    found = json.loads(replay(0).stdout)["results"]
    assert {r["name"] for r in found} == set(tw.replay_step(tmp_path / "step").values) and not any(r["differing"] for r in found)
    values = dict(tw.Checkpoint(tmp_path / "step" / "results"))
    values[loss.name] = np.nextafter(values[loss.name], np.float32(9))
    tw.write_checkpoint(tmp_path / "step" / "results", values)
    done = replay(1)
    assert {r["name"]: r["differing"] for r in json.loads(done.stdout)["results"] if r["differing"]} == {loss.name: 1}
    assert f"thalweg replay: 1 of {len(values)} results differ from the recorded step" in done.stderr
    (tmp_path / "step/step.json").unlink()
    assert "is no recording of a step" in replay(1).stderr


def test_a_replay_names_what_differs(trained, tmp_path):
    session, (loss, step), feeds = trained
    tw.record_step(session, [loss, step], feeds, folder=tmp_path / "step")
    held = tw.Checkpoint(tmp_path / "step" / "before")
    values = {name: held.read(name) for name in held}
    name = next(n for n in values if "dropout_draws" in n)
    values[name] = tw.Tensor(values[name].numpy() + 1)
    held.close()
    tw.write_checkpoint(tmp_path / "step" / "before", values)
    replay = tw.replay_step(tmp_path / "step")
    assert not replay.same and any(line.startswith(f"{loss.name}: 1 of 1 elements differ, by up to ") for line in replay.differing), replay.differing


def test_what_a_step_draws_is_recorded(graph, tmp_path):
    """Random numbers, elements of an iterator and of a queue, and results of a function of Python are fed to the replay."""
    steps = tw.data.range(100).shuffle(seed=3).map(lambda n: n * 2).batch(4).steps()
    queue = tw.FIFOQueue(10, ["int64"], shapes=[[]])
    calls = []

    def counted(x):
        calls.append(x)
        return [np.int64(len(calls))]

    noise = tw.ops.random_standard_normal([4], dtype="float64")
    total = tw.Variable(np.zeros(4), name="total")
    drawn = queue.dequeue()
    value = tw.ops.cast(steps.next, DstT="float64") + noise + tw.ops.cast(drawn + tw.py_function(counted, [drawn], ["int64"], [[]])[0], DstT="float64")
    step = total.assign_add(value)
    fill = queue.enqueue(np.int64(5))
    with tw.Session(graph) as s:
        s.run([graph.initializer(), steps.start])
        for _ in range(3):
            s.run(fill)
        s.run(step)
        got = tw.record_step(s, [value, step], folder=tmp_path / "step")[0]
        about, n = json.loads((tmp_path / "step/step.json").read_text()), len(calls)
        assert len(about["drawn"]) == 4 and about["before"] == ["total"], about
        assert not np.array_equal(s.run(value), got)
        replay = tw.replay_step(tmp_path / "step")
        assert replay.same and np.array_equal(replay.values[value.name].numpy(), got) and len(calls) == n + 1


def test_a_loop_is_replayed(graph, tmp_path):
    cell = tw.recurrent.GRUCell(3, 5, seed=2)
    x = tw.placeholder("float32", [None, 2, 3])
    outputs, last = cell.loop(x)
    loss = (last * last).sum()
    step = tw.train.Adam(0.01).minimize(loss)
    with tw.Session(graph) as s:
        s.run(graph.initializer())
        tw.record_step(s, [loss, outputs, step], {x: rng.normal(size=(6, 2, 3)).astype(np.float32)}, folder=tmp_path / "step")
    replay = tw.replay_step(tmp_path / "step")
    assert replay.same and len(replay.values) > 3


def test_what_cannot_be_recorded_is_refused(graph, x, tmp_path):
    queue = tw.FIFOQueue(10, ["float32"], shapes=[[]])
    with tw.Session(graph) as s:
        with pytest.raises(tw.UnimplementedError, match="QueueEnqueueV2 .* has state that is neither a variable nor"):
            tw.record_step(s, queue.enqueue(x), {x: 1}, folder=tmp_path / "a")
        noisy = tw.cond(x > 0, lambda: tw.ops.random_standard_normal([2], dtype="float32"), lambda: tw.ops.random_standard_normal([2], dtype="float32"))
        try:
            tw.record_step(s, noisy, {x: 1}, folder=tmp_path / "b")
        except tw.UnimplementedError as e:
            assert "random" in str(e) and "stateless" in str(e)
        else:  # the condition was lowered, and its random numbers are values of the step
            assert tw.replay_step(tmp_path / "b").same
        assert not (tmp_path / "a/step.json").exists()
        with pytest.raises(FileExistsError, match="has files already"):
            (tmp_path / "c").mkdir()
            (tmp_path / "c/file").touch()
            tw.record_step(s, x + 1, {x: 1}, folder=tmp_path / "c")


def test_a_damaged_recording_is_refused(graph, x, tmp_path):
    of = tmp_path / "step"
    with pytest.raises(tw.InvalidArgumentError, match="is no recording of a step"):
        tw.replay_step(of)
    with tw.Session(graph) as s:
        assert tw.record_step(s, x * 2, {x: 3}, folder=of) == 6
    assert tw.replay_step(of).same
    whole = json.loads((of / "step.json").read_text())
    for change, message in [({"format": 9}, "reads format 1"), ({"fetches": 3}, "'fetches' must be a list"), ({"graph": "x"}, "is not the graph of the recording"),
                            ({"inputs": ["x:0", "y:0"]}, "has no tensor 'y:0'")]:
        (of / "step.json").write_text(json.dumps(whole | change))
        with pytest.raises(tw.InvalidArgumentError, match=message):
            tw.replay_step(of)
    (of / "step.json").write_text(json.dumps(whole))
    name = next(of.glob("inputs.data-*"))
    data = bytearray(name.read_bytes())
    data[0] ^= 1
    name.write_bytes(bytes(data))
    with pytest.raises(tw.DataLossError):
        tw.replay_step(of)
