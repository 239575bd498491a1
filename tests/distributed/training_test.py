"""Tests training over processes that die, checkpoints of clusters, and the examples: training_test.py THALWEG TRANSPORT [TEST...]"""
import importlib.util
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import thalweg as tw
from addresses import scheme_of
from local_cluster import local_cluster
from running import run_tests

THALWEG, TRANSPORT = sys.argv[1:3]
EXAMPLES = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "distributed/examples"
DATA = pathlib.Path(os.environ["THALWEG_DATA_PATH"])
tw.load_plugin(TRANSPORT)


def cluster(**how):
    return local_cluster(THALWEG, TRANSPORT, **how)


def device(k):
    return f"/job:ps/task:{k}"


# ---- Checkpoints of clusters ----

class Model:
    """Variables and a sharded table on that many servers."""

    def __init__(self, servers, large=0):
        self.graph = tw.Graph()
        with self.graph:
            spread = tw.Spread("ps", servers)
            self.variables = []
            for i in range(5):
                with spread.device():
                    self.variables.append(tw.Variable(np.full([3, i + 1], i, np.float32), name=f"v{i}"))
            if large:
                with tw.device(device(1)):
                    self.variables.append(tw.Variable(np.zeros(large, np.float32), name="large"))
            self.table = tw.ShardedTable(11, 4, servers, name="table", devices=[device(k) for k in range(servers)], initial=rows)
            self.whole = self.table.lookup(np.arange(11, dtype=np.int32))
            self.begin = tw.initializer()
            self.change = tw.group(*(v.assign_add(np.ones(v.shape, np.float32)) for v in [*self.variables, *self.table.variables]))
        self.saver = tw.Saver(by_task=True)

    def values(self, session):
        return session.run([*self.variables, self.whole])


def rows(shape, numbers):
    return np.array([[10 * i + j for j in range(shape[1])] for i in numbers], np.float32)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_each_task_saves_its_own_and_another_number_of_tasks_restores_it():
    for ps in (3, 1):
        with cluster(ps=2) as c, cluster(ps=ps) as other:
            model = Model(2)
            with c.session(model.graph) as session:
                session.run(model.begin)
                session.run(model.change)
                saved = model.values(session)
                assert list(model.saver.tasks(session)) == [device(0), device(1)]
                model.saver.save(session, c.folder / "model")
            files = sorted(f.name for f in c.folder.iterdir() if f.name.startswith("model"))
            assert files == ["model.data-00000-of-00002", "model.data-00001-of-00002", "model.index"], files
            with tw.Checkpoint(c.folder / "model") as checkpoint:
                assert "table/part_1" in checkpoint.names and "v4" in checkpoint.names
            for f in files:
                (c.folder / f).rename(other.folder / f)
            again = Model(ps)
            with other.session(again.graph) as session:
                session.run(again.begin)
                again.saver.restore(session, other.folder / "model")
                assert same(again.values(session), saved)


def test_one_task_is_restored_and_the_others_stay_as_they_are():
    with cluster(ps=2) as c:
        model = Model(2)
        with c.session(model.graph) as session:
            session.run(model.begin)
            saved = model.values(session)
            model.saver.save(session, c.folder / "model")
            session.run(model.change)
            changed = model.values(session)
            c.kill("ps", 1)
            c.start("ps", 1)
            patiently(lambda: model.saver.restore(session, c.folder / "model", task=device(1)))
            found = model.values(session)
            for k, v in enumerate(model.variables):
                expected = saved if v.handle.operation.device == device(1) else changed
                assert np.array_equal(found[k], expected[k]), v
            assert np.array_equal(found[-1][1::2], saved[-1][1::2]) and np.array_equal(found[-1][::2], changed[-1][::2])


def limit_files():
    """Imitates a full disk: limits files to 64 KiB and makes a larger write fail with an error instead of a signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))


def test_a_checkpoint_in_the_background_has_the_values_of_its_step_on_all_tasks():
    with cluster(ps=2) as c:
        model = Model(2, large=2_000_000)
        with c.session(model.graph) as session, tw.Checkpointer(session, c.folder / "run", model.saver, background=True) as checkpoints:
            session.run(model.begin)
            for step in range(1, 6):
                session.run(model.change)
                expected = model.values(session)
                checkpoints.save(step)
                for _ in range(3):
                    session.run(model.change)  # while the tasks write
                changed = model.values(session)
                assert checkpoints.restore() == step
                found = model.values(session)
                assert same(found, expected), (step, found[0], expected[0])
                assert same(changed, [value + 3 for value in expected])
            report = checkpoints.report()
            assert report.saves == 5 and report.failed == 0 and report.bytes > 8_000_000, report


def test_a_save_in_the_background_of_variables_without_contents_fails_at_once():
    with cluster(ps=2) as c:
        model = Model(2)
        with c.session(model.graph) as session, tw.Checkpointer(session, c.folder / "run", model.saver, background=True) as checkpoints:
            try:
                checkpoints.save(1)
                raise AssertionError("there was nothing to save")
            except tw.FailedPreconditionError as e:
                assert "/job:ps/task:" in str(e), e
            session.run(model.begin)
            checkpoints.save(2)
            checkpoints.wait()


def test_a_full_disk_of_one_task_leaves_the_last_checkpoint_of_all():
    for background in (False, True):
        full_disk(background)


def full_disk(background):
    with cluster(ps=2, limits={("ps", 1): limit_files}) as c:
        model = Model(2, large=100_000)
        with c.session(model.graph) as session:
            session.run(model.begin)
            process = c.processes["ps", 1].pid
            resource.prlimit(process, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            folder = c.folder / "run"
            with tw.Checkpointer(session, folder, model.saver, every_steps=1, background=background) as checkpoints:
                checkpoints.save(1)
                checkpoints.wait()
                before, saved = sorted(f.name for f in folder.iterdir()), model.values(session)
                session.run(model.change)
                resource.prlimit(process, resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
                try:
                    checkpoints.save(2)
                    checkpoints.wait()
                    raise AssertionError("the disk was full")
                except tw.Error as e:
                    assert device(1) in str(e) and "model.ckpt-2.part1of2" in str(e), e
                assert sorted(f.name for f in folder.iterdir()) == before
                assert checkpoints.restore() == 1
                assert same(model.values(session), saved)
                resource.prlimit(process, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                session.run(model.change)
                checkpoints.save(2)
                saved = model.values(session)
                session.run(model.change)
                assert checkpoints.restore() == 2
                assert same(model.values(session), saved)


def patiently(f):
    """Calls f until no task is dead any more. Returns its result."""
    for attempt in range(10):
        try:
            return f()
        except (tw.UnavailableError, tw.AbortedError):
            if attempt == 9:
                raise


def test_a_server_that_dies_during_a_save_leaves_a_whole_checkpoint():
    drawn, outcomes = random.Random(5), []
    with cluster(ps=2) as c:
        model = Model(2, large=500_000)
        with c.session(model.graph) as session, tw.Checkpointer(session, c.folder / "run", model.saver) as checkpoints:
            session.run(model.begin)
            checkpoints.save(0)
            first, changes = model.values(session), 0
            for i in range(int(os.environ.get("THALWEG_KILLS", "10"))):
                session.run(model.change)
                timer = threading.Timer(drawn.uniform(0, 0.025), lambda: c.kill("ps", 1))
                timer.start()
                try:
                    checkpoints.save(i + 1)
                    saved = True
                except (tw.UnavailableError, tw.AbortedError):
                    saved = False
                timer.join()
                c.start("ps", 1)
                patiently(checkpoints.restore)
                found = model.values(session)
                count = found[0][0, 0] - first[0][0, 0]
                assert count == changes + 1 or (not saved and count == changes), (saved, count, changes)
                assert same(found, [value + count for value in first]), "a mix of two checkpoints"
                outcomes.append(saved)
                changes = count
    print(f"  {outcomes.count(False)} of {len(outcomes)} saves did not end")


# ---- The examples ----

def launch(*words, example, ps, workers, folder, options=(), stop=None):
    """Runs an example and calls `stop(process)` meanwhile. Returns its output."""
    command = [THALWEG, "launch", "-n", str(workers), "--ps", str(ps), "--scheme", scheme_of(TRANSPORT), "--plugin", TRANSPORT, "--threads", "1",
               "--server-option", f"allow_files={folder}", *options, "--", sys.executable, "-B", str(EXAMPLES / example), "--plugin",
               TRANSPORT, "--folder", str(folder), *words]
    with open(pathlib.Path(folder) / "said", "w+") as said:
        with subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, text=True) as process:
            try:
                if stop:
                    stop(process)
                process.wait(timeout=60 + 10 * int(os.environ.get("THALWEG_KILLS", "6")))
            finally:
                process.terminate()
        said.seek(0)
        out = said.read()
    assert process.returncode == 0, out
    return out


def digits(folder, mode, *words, workers=2, **how):
    data = str(DATA / "digits.csv")
    if mode == "single":
        return subprocess.run([sys.executable, "-B", str(EXAMPLES / "digits.py"), "--data", data, "--mode", mode, "--folder", str(folder),
                               *words], capture_output=True, text=True, check=True).stdout
    return launch("--data", data, "--mode", mode, *words, example="digits.py", ps=2, workers=workers, folder=folder, **how)


def accuracies(out):
    return [float(line.split("accuracy ")[1].split()[0].strip(",")) for line in out.splitlines() if "accuracy " in line]


def losses(folder, mode, worker):
    """Returns {step: loss}, each loss as it was written, with every bit."""
    lines = (pathlib.Path(folder) / f"{mode}-{worker}.csv").read_text().splitlines()[1:]
    return {int(step): loss for step, _, loss in (line.split(",") for line in lines)}


def test_digits_are_learned_in_three_ways_as_well_as_in_one_process():
    with tempfile.TemporaryDirectory() as folder:
        alone, = accuracies(digits(folder, "single", "--steps", "300"))
        assert alone > 0.85, alone
        for mode in ("async", "sync", "backup"):
            out = digits(folder, mode, "--steps", "300")
            found = accuracies(out)
            assert len(found) == 2 and min(found) > alone - 0.03, (mode, found, alone)
        subprocess.run([sys.executable, str(EXAMPLES / "digits.py"), "--plot", folder], check=True)
        drawn = (pathlib.Path(folder) / "loss.svg").read_text()
        assert drawn.count("<polyline") == 3 and "NaN" not in drawn and "nan" not in drawn


def test_a_trainer_with_parameter_servers_learns_in_two_workers():
    example = EXAMPLES.parents[1] / "bindings/python/examples/models/parameter_servers.py"
    program = [sys.executable, "-B", str(example), "--data", str(DATA / "digits.csv"), "--epochs", "12", "--threads", "1"]
    cluster_of = [THALWEG, "launch", "-n", "2", "--ps", "2", "--scheme", scheme_of(TRANSPORT), "--plugin", TRANSPORT, "--threads", "1", "--"]
    found = []
    for command in ([*program, "--alone"], [*cluster_of, *program, "--plugin", TRANSPORT]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        found.append([float(line.split("held-out loss ")[1].split()[0]) for line in done.stdout.splitlines() if "held-out loss" in line])
    (alone,), both = found
    # Each of two workers makes half of the steps. They end at different times, so the first one measures earlier weights.
    assert alone < 26 and len(both) == 2 and max(both) < alone + 2, found


def test_workers_over_servers_accumulate_by_themselves_and_save_what_the_servers_hold():
    program = pathlib.Path(__file__).parent / "servers_program.py"
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([THALWEG, "launch", "-n", str(workers), "--ps", "2", "--scheme", scheme_of(TRANSPORT), "--plugin", TRANSPORT,
                                   "--threads", "1", "--allow", folder, "--", sys.executable, "-B", str(program), TRANSPORT, folder],
                                  capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(accuracies(done.stdout)) == workers and min(accuracies(done.stdout)) > 0.7, done.stdout
        assert ("restored" in done.stdout) == (workers == 1)


def children(process):
    """Returns {name, such as ps/0: process} of the living processes of a cluster that thalweg launch started."""
    found = {}
    for pid in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        try:
            config = dict(v.split("=", 1) for v in pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in v)["TF_CONFIG"]
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError, KeyError):
            continue
        task = json.loads(config)["task"]
        found[f"{task['type'] if words[1:2] == ['worker'] else 'client'}/{task['index']}"] = int(pid)
    return found


def kills(n, seed, checkpoints):
    """Returns a function that kills n processes, every role in turn, once training runs; and the list of the killed names."""
    drawn, killed, to_come = random.Random(seed), [], []

    def stop(process):
        while process.poll() is None and not any(checkpoints.glob("model.ckpt-*.index")):
            time.sleep(0.02)
        while len(killed) < n and process.poll() is None:
            time.sleep(drawn.uniform(0.2, 0.8))
            there = children(process)
            if len(there) < 6:
                continue  # a process is still dead
            if not to_come:
                to_come.extend(drawn.sample(sorted(there), len(there)))
            name = to_come.pop()
            try:
                os.kill(there[name], signal.SIGKILL)
                killed.append(name)
            except ProcessLookupError:
                pass
    return stop, killed


def test_whoever_is_killed_the_losses_of_synchronous_training_have_the_same_bits():
    n = int(os.environ.get("THALWEG_KILLS", "6"))
    steps = str(400 + 250 * n)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        digits(folder, "sync", "--steps", steps)
        stop, killed = kills(n, 7, pathlib.Path(other) / "sync")
        out = digits(other, "sync", "--steps", steps, "--save-every", "50", "--background", options=["--restart", str(n)], stop=stop)
        print("  killed:", " ".join(killed))
        assert len(killed) >= min(n, 2), out
        assert out.count("starting it again") >= len(killed), out
        for worker in range(2):
            expected, found = losses(folder, "sync", worker), losses(other, "sync", worker)
            assert len(expected) == int(steps) and set(found) <= set(expected) and len(found) > 0
            assert all(found[step] == expected[step] for step in found), "the losses differ"
        weights = []
        for where in (folder, other):
            with tw.Checkpoint(tw.latest_checkpoint(pathlib.Path(where) / "sync")) as checkpoint:
                weights.append({name: checkpoint[name] for name in checkpoint.names})
        assert weights[0].keys() == weights[1].keys()
        assert all(np.array_equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_who_dies_more_often_than_allowed_ends_all():
    with tempfile.TemporaryDirectory() as folder:
        marks = pathlib.Path(folder) / "marks"
        program = f"open({str(marks)!r}, 'a').write('x'); raise SystemExit(3)"
        done = subprocess.run([THALWEG, "launch", "-n", "1", "--scheme", scheme_of(TRANSPORT), "--plugin", TRANSPORT, "--restart", "2", "--",
                               sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
        assert done.returncode == 3 and marks.read_text() == "xxx", done
        assert done.stderr.count("client/0 ended with status 3; starting it again") == 2, done.stderr
        assert "client/0 ended with status 3; ending all" in done.stderr, done.stderr


def test_asynchronous_training_goes_on_when_a_parameter_server_is_killed():
    with tempfile.TemporaryDirectory() as folder:
        stop, killed = kills(2, 3, pathlib.Path(folder) / "async")
        out = digits(folder, "async", "--steps", "1500", "--save-every", "50", options=["--restart", "5"], stop=stop)
        assert killed and min(accuracies(out)) > 0.85, out


def test_word_vectors_are_learned_in_four_shards():
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "part.txt"
        data.write_bytes((DATA / "kjv.txt").read_bytes()[:300_000])
        out = launch("--data", str(data), "--steps", "150", "--vocabulary", "500", "--width", "16", example="words.py", ps=4, workers=2,
                     folder=folder)
        line, = (line for line in out.splitlines() if " at first, " in line)
        first, last = float(line.split("loss ")[1].split()[0]), float(line.split("first, ")[1].split()[0])
        assert last < first - 0.2, out
        assert "near 'lord': " in out, out
        with tw.Checkpoint(tw.latest_checkpoint(folder)) as checkpoint:
            assert [checkpoint[f"vectors/part_{k}"].shape for k in range(4)] == [(125, 16)] * 4


def test_the_character_model_learns_with_its_softmax_on_the_servers():
    with tempfile.TemporaryDirectory() as folder:
        for softmax in ("full", "sampled"):
            out = launch("--data", str(DATA / "kjv.txt"), "--steps", "60", "--cells", "24", "--limit", "200000", "--softmax", softmax,
                         example="char_lm.py", ps=2, workers=2, folder=folder)
            found = [float(line.split("perplexity ")[1].split()[0]) for line in out.splitlines() if "perplexity " in line]
            assert len(found) == 2 and found[0] == found[1] and found[0] < 25, out


# ---- Stages of a pipeline ----

def pipeline_module():
    spec = importlib.util.spec_from_file_location("pipeline", EXAMPLES / "pipeline.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expected_losses(pipeline, stages, width, steps, rate=0.1):
    """The losses of the pipeline's model, with whole batches and in float64."""
    pixels, labels = pipeline.load(DATA / "digits.csv")
    weights = [[np.float64(w), np.float64(b)] for w, b in pipeline.start(stages, width)]
    losses = []
    for i in range(steps):
        rows = np.random.default_rng(i).integers(len(labels), size=pipeline.BATCH)
        hs = [np.float64(pixels[rows])]
        for s, (w, b) in enumerate(weights):
            h = hs[-1] @ w + b
            hs.append(np.maximum(h, 0) if s + 1 < stages else h)
        p = np.exp(hs[-1] - hs[-1].max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        at = np.arange(len(rows)), labels[rows]
        losses.append(-np.log(p[at]).mean())
        p[at] -= 1
        d = p / len(rows)
        for s in reversed(range(stages)):
            w, b = weights[s]
            dw, db = hs[s].T @ d, d.sum(0)
            d = (d @ w.T) * (hs[s] > 0)
            weights[s] = [w - rate * dw, b - rate * db]
    return losses


def test_a_model_in_stages_learns_as_in_one_process_and_shows_its_bubble():
    pipeline, steps, stages, parts, width = pipeline_module(), 6, 3, 8, 48
    expected = expected_losses(pipeline, stages, width, steps)
    common = ["--data", str(DATA / "digits.csv"), "--steps", str(steps), "--stages", str(stages), "--width", str(width)]
    written = {}
    with tempfile.TemporaryDirectory() as folder:
        for schedule in pipeline.SCHEDULES:
            trace = pathlib.Path(folder) / "trace.json"
            command = [THALWEG, "launch", "-n", "1", "--ps", str(stages), "--scheme", scheme_of(TRANSPORT), "--plugin", TRANSPORT, "--threads",
                       "1", "--", sys.executable, "-B", str(EXAMPLES / "pipeline.py"), "--plugin", TRANSPORT, "--schedule", schedule,
                       "--parts", str(parts), "--trace", str(trace), *common]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stdout + done.stderr
            found = [line for line in done.stdout.splitlines() if "loss " in line]
            losses = [float.fromhex(line.split("(")[1].split(")")[0]) for line in found]
            numbers = [steps - 1 if "last" in line else int(line.split("step ")[1].split(":")[0]) for line in found]
            assert len(losses) == steps + 1 and np.allclose(losses, [expected[i] for i in numbers], rtol=2e-5), (losses, expected)
            written[schedule] = losses
            share = float(done.stdout.split("bubble ")[1].split()[0])
            assert 0 <= share < 1 and f"; {2 / 10:.3f} if" in done.stdout, done.stdout
            assert sum("stage " in line for line in done.stdout.splitlines()) == stages, done.stdout
            check_trace(json.loads(trace.read_text()), schedule, stages, parts)
    assert written["gpipe"] == written["1f1b"], "the order of the parts changed the bits"


def check_trace(trace, schedule, stages, parts):
    """Each stage is on its own task, and with 1f1b keeps no more parts than it may."""
    times, places = {}, {}
    for e in trace["traceEvents"]:
        match = re.match(r"(gradients\w*/)?stage(\d+)/forward(\d+)/", e.get("args", {}).get("node", ""))
        if match and e["ph"] == "X" and e["name"] == "MatMul":
            way, s, part = "backward" if match[1] else "forward", int(match[2]), int(match[3])
            begin, end = times.get((s, way, part), (float("inf"), 0))
            times[s, way, part] = min(begin, e["ts"]), max(end, e["ts"] + e["dur"])
            places.setdefault(s, set()).add(e["pid"])
    assert set(times) == {(s, way, m) for s in range(stages) for way in ("forward", "backward") for m in range(parts)}, sorted(times)
    assert all(len(p) == 1 for p in places.values()) and len(set.union(*places.values())) == stages, places
    if schedule == "1f1b":
        for s in range(stages):
            for m in range(stages - s, parts):
                forward, back = times[s, "forward", m][0], times[s, "backward", m - (stages - s)][1]
                assert forward >= back - 1, (s, m, forward, back)  # in microseconds, which are rounded


def test_a_bubble_is_the_time_without_work():
    pipeline = pipeline_module()
    # Two stages, two parts of one forward and one backward unit each, without gaps but those of a pipeline: 6 units in all, 2 idle at each.
    found = {0: [(0, 1, "forward", 0), (1, 2, "forward", 1), (4, 5, "backward", 0), (5, 6, "backward", 1)],
             1: [(1, 2, "forward", 0), (2, 3, "forward", 1), (3, 4, "backward", 0), (4, 5, "backward", 1)]}
    assert abs(pipeline.bubble(found) - 1 / 3) < 1e-12  # (2 - 1) / (2 + 2 - 1)
    found[0].insert(1, (0, 1, "forward", 0))  # at the same time, by another thread
    assert abs(pipeline.bubble(found) - 1 / 3) < 1e-12
    assert pipeline.drawn(found, columns=6) == ["stage 0 01..ab", "stage 1 .01ab."]


def test_examples_say_that_they_need_a_cluster():
    alone = {name: value for name, value in os.environ.items() if name not in ("TF_CONFIG", "THALWEG_TARGET")}
    for name, folder in {"digits.py": ["--folder", "x"], "digits_async.py": [], "words.py": ["--folder", "x"], "char_lm.py": ["--folder", "x"]}.items():
        done = subprocess.run([sys.executable, "-B", EXAMPLES / name, "--data", "x", *folder], capture_output=True, text=True, env=alone, timeout=60)
        assert done.returncode == 2 and "there is no cluster" in done.stderr and "start it by `thalweg launch -n 2" in done.stderr, done


if __name__ == "__main__":
    run_tests(globals(), sys.argv[3:])
