"""Recorded steps and their replay: the same bits in another process, with dropout, random numbers, iterators and loops."""
import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest

import thalweg as tw

rng = np.random.default_rng(26)
IMAGES, LABELS = rng.normal(size=(40, 8, 8, 1)).astype(np.float32), rng.integers(0, 4, 40).astype(np.int32)


@pytest.fixture(scope="module")
def trained():
    """A net with dropout and batch normalisation, some steps into a training with Adam: (session, fetches, feeds)."""
    tw.random.seed(5)
    with tw.Graph() as graph:
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


def test_an_update_before_a_value_that_is_drawn_is_replayed(graph, tmp_path):
    count = tw.Variable(np.float32(2), name="count")
    with tw.control_dependencies([count.assign_add(1)]):
        x = tw.ops.identity(tw.constant(np.float32(4)))
    y = tw.py_function(lambda x: [np.float32(x + 1)], [x], ["float32"], [[]])[0]
    with tw.Session(graph) as s:
        s.run(graph.initializer())
        assert tw.record_step(s, y, folder=tmp_path / "step") == 5
    replay = tw.replay_step(tmp_path / "step")
    assert replay.same and replay.values["variable count"].numpy() == 3


def test_checks_of_numbers_are_not_drawn(graph, tmp_path):
    """The replay computes what a check looks at, so it sees another value."""
    count = tw.Variable(np.float32(2), name="count")
    y = tw.ops.check_numerics(count * 3, message="count")
    with tw.Session(graph) as s:
        s.run(graph.initializer())
        assert tw.record_step(s, y, folder=tmp_path / "step") == 6
    assert tw.replay_step(tmp_path / "step").same
    tw.write_checkpoint(tmp_path / "step" / "before", {"count": np.float32(-0.0)})
    tw.write_checkpoint(tmp_path / "step" / "results", {y.name: np.float32(0)})
    assert tw.replay_step(tmp_path / "step").differing == [f"{y.name}: 1 of 1 elements differ, by up to 0"]


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
        inside = {"RandomStandardNormal draws random numbers.*stateless": lambda: tw.ops.random_standard_normal([], dtype="float32"),
                  "PyFunc may give something else": lambda: tw.py_function(lambda: [np.float32(1)], [], ["float32"], [[]])[0],
                  "ReadFile may give something else": lambda: tw.ops.string_to_number(tw.ops.read_file(tw.constant("file", "string")))}
        for k, (message, value) in enumerate(inside.items()):
            with pytest.raises(tw.UnimplementedError, match=f"If 'If.*calls the function '.*', in which {message}"):
                tw.record_step(s, tw.cond(x > 0, value, lambda: tw.constant(np.float32(0))), {x: 1}, folder=tmp_path / f"b{k}")
        assert not (tmp_path / "a/step.json").exists()
        with pytest.raises(FileExistsError, match="has files already"):
            (tmp_path / "c").mkdir()
            (tmp_path / "c/file").touch()
            tw.record_step(s, x + 1, {x: 1}, folder=tmp_path / "c")


def test_a_recording_of_a_stranger_calls_nothing(x, tmp_path):
    """The graph of a recording was exchanged for one that calls a function of this program, or reads a file."""
    of, calls = tmp_path / "step", []
    with tw.Session(x.graph) as s:
        tw.record_step(s, x * 2, {x: 3}, folder=of)
    about = json.loads((of / "step.json").read_text())

    def called():
        return tw.py_function(lambda: [calls.append(1) or np.float32(1)], [], ["float32"], [[]])[0]
    for value in (called, lambda: tw.function(called)(), lambda: tw.ops.read_file(tw.constant(str(of / "step.json"), "string"))):
        with tw.Graph() as other:
            fetched, graph = value(), other.to_bytes()
            (of / "graph.pb").write_bytes(graph)
            (of / "step.json").write_text(json.dumps(about | {"graph": hashlib.sha256(graph).hexdigest(), "fetches": [fetched.name], "inputs": []}))
            with pytest.raises((tw.InvalidArgumentError, tw.UnimplementedError), match="something else"):
                tw.replay_step(of)
    assert not calls


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
