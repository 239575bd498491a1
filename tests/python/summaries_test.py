"""SummaryWriter: the bytes of event files, read by event_files.py, which shares no code with the library."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import event_files as ef
import numpy as np
import pytest

import thalweg as tw


def written(folder, write, **options):
    """The values that `write` gives to a writer."""
    with tw.SummaryWriter(folder, **options) as w:
        write(w)
    return [v[:4] for v in ef.values(folder)]


def test_scalars_of_every_kind_have_step_time_and_value(tmp_path):
    begun = time.time()
    with tw.SummaryWriter(tmp_path / "a/b/run") as w:  # folders are made
        w.scalar("loss", 0.25, 0)
        w.scalar("loss", np.float64(1) / 3, 7)
        w.scalar("loss", tw.Tensor(np.float32([[4]])), -3)
        w.scalar("größe", np.int8(-3), 2**40)
        w.scalar("loss", float("nan"), 1)
        w.scalars({"a": 1, "b": True}, 5, prefix="test/")
        path = pathlib.Path(w.path)
    assert path.parent == tmp_path / "a/b/run" and path.name.startswith("events.out.tfevents.")
    got = [(v[0], v[1], v[3]) for v in ef.values(path)]
    assert got[:4] == [(0, "loss", 0.25), (7, "loss", float(np.float32(1 / 3))), (-3, "loss", 4), (2**40, "größe", -3)]
    assert got[4][:2] == (1, "loss") and np.isnan(got[4][2]) and got[5:] == [(5, "test/a", 1), (5, "test/b", 1)]
    times = [t for t, _, _ in ef.events(path)]
    assert times == sorted(times) and begun - 1 <= times[0] and times[-1] <= time.time() + 1


def limits():
    """The buckets, from their description."""
    positive, v = [], 1e-12
    while v < 1e20:
        positive.append(v)
        v *= 1.1
    positive.append(np.finfo(np.float64).max)
    return np.array([-p for p in reversed(positive)] + [0] + positive)


@pytest.mark.parametrize("values", [np.random.default_rng(0).normal(size=5000).astype(np.float32), np.zeros(3), np.float16([-1e3, 2, 2]),
                                    np.int64([5, -7, 1 << 40]), np.uint8([[1, 255]]), np.bool_([True, False]), np.float64([1e-300, 1e150]), []])
def test_histograms_count_what_is_there(tmp_path, values):
    values = np.asarray(values)
    (_, tag, kind, got), = written(tmp_path, lambda w: w.histogram("h", values, 3))
    x = values.astype(np.float64).ravel()
    assert (tag, kind, got["num"]) == ("h", "histogram", x.size)
    np.testing.assert_allclose([got["sum"], got["squares"]], [x.sum(), (x * x).sum()], rtol=1e-9)
    if x.size:
        assert (got["min"], got["max"]) == (x.min(), x.max())
    whole = limits()
    assert set(got["limits"]) <= set(whole) and got["counts"].sum() == x.size
    edges = np.concatenate([[-np.inf], got["limits"]])
    for low, high, count in zip(edges, edges[1:], got["counts"]):
        assert count == ((x >= low) & (x < high)).sum(), (low, high)
    empty = got["counts"] == 0
    assert not (empty[1:] & empty[:-1]).any()  # neighbours that are empty were joined
    for high, count in zip(got["limits"], got["counts"]):  # others are as wide as they are
        assert count == 0 or count == ((x >= whole[np.searchsorted(whole, high) - 1]) & (x < high)).sum()


def test_images_keep_their_bytes_and_are_scaled_otherwise(tmp_path):
    rng = np.random.default_rng(1)
    many = rng.integers(0, 256, (4, 9, 7, 3), np.uint8)
    flat = np.full((5, 6), 9, np.uint8)
    opaque = rng.integers(0, 256, (3, 2, 4), np.uint8)
    positive, mixed = rng.random((8, 5, 1), np.float32), rng.normal(size=(8, 5, 3))
    odd = np.array([[[1.0, 2, 3], [np.nan, 0, 0], [np.inf, 1, 1]]], np.float32)

    def write(w):
        w.images("many", many, 1, most=2)
        w.image("flat", flat, 2)
        w.image("opaque", opaque, 3)
        w.image("positive", positive, 4)
        w.image("mixed", mixed, 5)
        w.image("odd", odd, 6)
        w.image("half", positive.astype(np.float16), 7)
        w.image("zeros", np.zeros((2, 2, 1), np.float32), 8)

    got = {(step, tag): pixels for step, tag, kind, pixels in written(tmp_path, write)}
    assert list(got)[:3] == [(1, "many/image/0"), (1, "many/image/1"), (2, "flat/image")]
    np.testing.assert_array_equal(got[1, "many/image/1"], many[1])
    np.testing.assert_array_equal(got[2, "flat/image"][..., 0], flat)
    np.testing.assert_array_equal(got[3, "opaque/image"], opaque)
    np.testing.assert_allclose(got[4, "positive/image"], positive * (255 / positive.max()), atol=1.01)
    np.testing.assert_allclose(got[5, "mixed/image"], mixed * (127 / np.abs(mixed).max()) + 128, atol=1.01)
    assert got[6, "odd/image"].tolist() == [[[85, 170, 255], [255, 0, 0], [255, 0, 0]]]
    np.testing.assert_allclose(got[7, "half/image"], got[4, "positive/image"], atol=1.01)
    assert not got[8, "zeros/image"].any()


def test_sound_text_and_tensors(tmp_path):
    wave = np.sin(np.arange(400, dtype=np.float32) / 5)
    stereo = np.stack([wave, 3 * wave], -1)[None]  # the second channel is cut off

    def write(w):
        w.audio("tone", wave, 1, rate=8000)
        w.audio("stereo", stereo, 2, rate=44100, most=2)
        w.text("note", "**bold** größer\nline", 3)
        w.tensor("matrix", np.float32([[1, 2]]), 4, plugin="mine", content=b"\x08\x01")

    got = written(tmp_path, write)
    assert [v[:3] for v in got] == [(1, "tone/audio", "audio"), (2, "stereo/audio/0", "audio"), (3, "note", "tensor"), (4, "matrix", "tensor")]
    rate, samples = got[0][3]
    assert rate == 8000
    np.testing.assert_allclose(samples[:, 0], wave * 32768, atol=1.01)
    np.testing.assert_allclose(got[1][3][1][:, 1], np.clip(3 * wave * 32768, -32768, 32767), atol=1.01)
    assert got[2][3] == ([], ["**bold** größer\nline".encode()])
    assert got[3][3].tolist() == [[1, 2]]
    assert [v[4:] for v in ef.values(tmp_path)][2:] == [("text", b""), ("mine", b"\x08\x01")]


def test_graph_and_step_statistics(tmp_path, graph):
    x = tw.placeholder("float32", [None, 3], name="x")
    y = tw.ops.mat_mul(x, np.ones((3, 2), np.float32), name="product")
    stats = tw.StepStats()
    with tw.Session(graph) as s:
        s.run(y, {x: np.ones((4, 3))}, stats=stats)
    with tw.SummaryWriter(tmp_path) as w:
        w.graph(graph)
        w.step_stats("step 1", stats, 1)
        path = w.path
    (_, _, first), (_, step, second) = ef.events(path)
    names = [ef.one(ef.fields(n), 1) for n in ef.fields(ef.one(first, 4))[1]]
    assert b"x" in names and b"product" in names and step == 1
    tagged = ef.fields(ef.one(second, 8))
    device, = ef.fields(ef.one(ef.fields(ef.one(tagged, 2)), 1))[1]
    nodes = {ef.one(ef.fields(n), 1): ef.fields(n) for n in ef.fields(device)[2]}
    assert ef.one(tagged, 1) == b"step 1" and b"CPU" in ef.one(ef.fields(device), 1)
    assert ef.one(ef.fields(ef.one(nodes[b"product"], 6)), 2) == 4 * 2 * 4 and ef.one(nodes[b"product"], 8) == b"product = MatMul"


def test_hyper_parameters_and_the_end_of_a_run(tmp_path):
    given = {"rate": 0.5, "layers": 3, "fast": True, "optimizer": "adam"}
    with tw.SummaryWriter(tmp_path / "good") as w:
        w.hparams(given, metrics=["loss"])
        with pytest.raises(tw.FailedPreconditionError, match="already"):
            w.hparams(given)
    with pytest.raises(KeyError), tw.SummaryWriter(tmp_path / "bad") as w:
        w.hparams({})
        raise KeyError
    found = {run: {v[1]: ef.fields(v[5]) for v in ef.values(tmp_path / run)} for run in ("good", "bad")}
    start = ef.fields(ef.one(found["good"]["_hparams_/session_start_info"], 3))
    values = {ef.one(ef.fields(e), 1).decode(): ef.fields(ef.one(ef.fields(e), 2)) for e in start[1]}
    assert {k: ef.double(v[2][0]) for k, v in values.items() if 2 in v} == {"rate": 0.5, "layers": 3}
    assert values["fast"] == {4: [1]} and values["optimizer"] == {3: [b"adam"]}
    experiment = ef.fields(ef.one(found["good"]["_hparams_/experiment"], 2))
    assert [ef.one(ef.fields(i), 4) for i in experiment[4]] == [3, 3, 2, 1]
    assert ef.one(ef.fields(ef.one(ef.fields(ef.one(experiment, 5)), 1)), 2) == b"loss"
    ends = {run: ef.one(ef.fields(ef.one(found[run]["_hparams_/session_end_info"], 4)), 1) for run in found}
    assert ends == {"good": 1, "bad": 2}


def test_whole_summaries_and_events(tmp_path):
    message = b"\x0a\x0a\x0a\x01a\x15" + np.float32(2.5).tobytes()
    message = b"\x0a" + bytes([len(message) - 2]) + message[2:]
    with tw.SummaryWriter(tmp_path) as w:
        w.summary(message, 4)
        w.event(b"\x09" + np.float64(12).tobytes() + b"\x10\x05\x2a" + bytes([len(message)]) + message)
        for wrong in (b"\x0a\xff", b"\x07"):
            with pytest.raises(tw.InvalidArgumentError, match="is no message"):
                w.summary(wrong, 0)
            with pytest.raises(tw.InvalidArgumentError, match="is no message"):
                w.event(wrong)
        path = w.path
    assert [(t if t == 12 else 0, s) for t, s, _ in ef.events(path)] == [(0, 4), (12, 5)] and [v[3] for v in ef.values(path)] == [2.5, 2.5]


def test_files_rotate_by_size_and_lose_nothing(tmp_path):
    got = written(tmp_path, lambda w: [w.scalar("x", i, i) for i in range(2000)], file_bytes=10000, suffix=".s")
    files = sorted(tmp_path.iterdir())
    assert len(files) > 5 and all(f.name.endswith(".s") and f.stat().st_size < 11000 for f in files)
    assert [v[0] for v in got] == list(range(2000)) == [v[3] for v in got]


def test_many_threads_and_a_small_queue_lose_nothing(tmp_path):
    with tw.SummaryWriter(tmp_path, queue_bytes=2000) as w:
        threads = [threading.Thread(target=lambda k=k: [w.scalar(f"t{k}", i, i) for i in range(500)]) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    got = ef.scalars(tmp_path)
    assert got == {f"t{k}": [(i, i) for i in range(500)] for k in range(4)}


def test_flushed_events_survive_a_kill_and_what_follows_them_is_whole(tmp_path):
    program = ("import sys, thalweg as tw\nw = tw.SummaryWriter(sys.argv[1], flush_seconds=0)\nfor i in range(100): w.scalar('x', i, i)\n"
               "w.flush()\nprint('flushed', flush=True)\ni = 100\nwhile True:\n    w.scalar('x', i, i)\n    i += 1\n")
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "flushed\n"
        p.send_signal(signal.SIGKILL)
    file, = tmp_path.iterdir()
    data = file.read_bytes()
    steps = [ef.signed(ef.one(ef.fields(r), 2, 0)) for r in ef.record_bytes(data)]  # also that no record is cut short
    assert steps[:101] == [0, *range(100)] and steps[1:] == list(range(len(steps) - 1))


def test_bad_input_is_refused_and_the_writer_goes_on(tmp_path):
    with tw.SummaryWriter(tmp_path) as w:
        cases = [(lambda: w.scalar("", 1, 0), "tag of a summary is empty"),
                 (lambda: w.scalar("x", [1, 2], 0), "summary 'x': a scalar is one real number, not int64"),
                 (lambda: w.scalar("x", 1, 0.5), "step is 0.5; it must be an integer"),
                 (lambda: w.scalar("x", 1, 2**63), "must fit into 64 bits"),
                 (lambda: w.histogram("h", np.float32([1, np.nan]), 0), "summary 'h': an element is NaN"),
                 (lambda: w.histogram("h", ["a"], 0), "summary 'h': a histogram is of real numbers, not of string"),
                 (lambda: w.images("i", np.zeros((2, 3, 4, 2), np.uint8), 0), r"summary 'i': images are uint8 \[2, 3, 4, 2\]; they must be"),
                 (lambda: w.image("i", np.zeros((0, 4, 3), np.uint8), 0), "summary 'i': an image of 0 x 4 pixels"),
                 (lambda: w.image("i", np.zeros((4, 4), np.int32), 0), "summary 'i': images are int32"),
                 (lambda: w.images("i", np.zeros((1, 2, 2, 1), np.uint8), 0, most=0), "most is 0"),
                 (lambda: w.audio("a", np.zeros(4), 0, rate=0), "summary 'a': the sample rate is 0"),
                 (lambda: w.audio("a", np.zeros((1, 2, 3, 4)), 0, rate=1), "summary 'a': sounds are float"),
                 (lambda: w.hparams({"x": [1]}), "hyper-parameter 'x' is"),
                 (lambda: w.hparams({"": 1}), "name '' of a hyper-parameter is empty")]
        for call, message in cases:
            with pytest.raises((tw.Error, ValueError, TypeError), match=message):
                call()
        w.scalar("x", 1, 1)
    assert [v[:4] for v in ef.values(tmp_path)] == [(1, "x", "scalar", 1.0)]
    w.close()
    with pytest.raises(tw.FailedPreconditionError, match="is closed"):
        w.scalar("x", 1, 2)
    for options in (dict(flush_seconds=-1), dict(suffix="a/b"), dict(file_bytes=0)):
        with pytest.raises((tw.InvalidArgumentError, ValueError)):
            tw.SummaryWriter(tmp_path, **options)
    (tmp_path / "file").write_text("")
    with pytest.raises(tw.Error, match="file"):
        tw.SummaryWriter(tmp_path / "file" / "run")


def test_a_full_disk_is_told_by_flush_and_every_later_call():
    """/dev/full cannot be a folder, so the limit of a file's size stands for a full disk."""
    program = ("import resource, signal, sys, tempfile, thalweg as tw\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
               "w = tw.SummaryWriter(tempfile.mkdtemp())\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
               "for i in range(1000): w.scalar('x', i, i)\n"
               "for call in (w.flush, lambda: w.scalar('x', 1, 1), w.close):\n"
               "    try:\n        call()\n    except tw.Error as e:\n        assert 'tfevents' in str(e), e\n        print('told')\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "told\n" * 3, done.stderr


def test_a_forked_process_is_refused_and_ends(tmp_path):
    w = tw.SummaryWriter(tmp_path)
    w.scalar("x", 1, 1)
    child = os.fork()
    if child == 0:
        try:
            w.scalar("x", 2, 2)
        except tw.FailedPreconditionError:
            del w
            os._exit(3)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    w.close()
    assert ef.scalars(tmp_path) == {"x": [(1, 1)]}


PLOT = pathlib.Path(os.environ.get("THALWEG_BINARY_DIR", "")) / "bin/thalweg"


@pytest.mark.skipif(not PLOT.is_file(), reason=f"{PLOT} is not there; build thalweg_program")
def test_the_command_plots_what_a_writer_writes(tmp_path):
    for run in ("a", "b"):
        with tw.SummaryWriter(tmp_path / run) as w:
            w.hparams({"rate": 1})
            w.text("note", "text", 0)
            w.histogram("h", [1.0], 0)
            w.image("picture", np.zeros((2, 2), np.uint8), 0)
            for i in range(4):
                w.scalar("loss", i * 0.5, i)
    with tw.SummaryWriter(tmp_path / "b") as w:  # goes on from step 2
        w.scalar("loss", 7, 2)
    found = json.loads(subprocess.run([PLOT, "plot", tmp_path, "--json"], check=True, capture_output=True).stdout)
    assert {(s["run"], s["tag"]): s["points"] for s in found} == {("a", "loss"): [[i, i * 0.5] for i in range(4)],
                                                                  ("b", "loss"): [[0, 0], [1, 0.5], [2, 7]]}


def test_fit_writes_losses_metrics_and_the_graph(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 5)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int32)
    steps = []

    class Look:
        def after_step(self, at):
            steps.append((at.step, at.values["loss"]))

    trainer = tw.train.Trainer(tw.nn.Sequential(tw.nn.Dense(2)), "sparse_softmax_cross_entropy", tw.train.SGD(0.1), metrics=["accuracy"])
    history = trainer.fit((x, y), epochs=3, batch=30, validation=(x[:10], y[:10]), callbacks=[Look()], logdir=tmp_path)
    train, validation = ef.scalars(tmp_path / "train"), ef.scalars(tmp_path / "validation")
    f32 = lambda values: [float(np.float32(v)) for v in values]
    assert train["step/loss"] == [(s, float(np.float32(v))) for s, v in steps] and [s for s, _ in steps] == list(range(1, 10))
    for name in ("loss", "accuracy"):
        assert train[f"epoch/{name}"] == list(zip([3, 6, 9], f32(history[name])))
        assert validation[f"epoch/{name}"] == list(zip([3, 6, 9], f32(history.validation[name])))
    file, = (tmp_path / "train").iterdir()
    assert sum(4 in e for _, _, e in ef.events(file)) == 1
    trainer.fit((x, y), epochs=1, batch=30, logdir=tmp_path / "sparse", log_every_steps=2)
    assert [s for s, _ in ef.scalars(tmp_path / "sparse/train")["step/loss"]] == [10, 12]
    with pytest.raises(tw.InvalidArgumentError, match="log_every_steps is -1"):
        trainer.fit((x, y), logdir=tmp_path, log_every_steps=-1)
