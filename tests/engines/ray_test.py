"""Tests of thalweg.ray on a Ray of this machine alone: ray_test.py THALWEG
Skipped without Ray (tools/setup --engines)."""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import engine_tests
from engine_tests import DATA, MARK, digits, ran, same_losses, skip

if "THALWEG_RAY_TEST" not in os.environ:
    python = engine_tests.engines_python()
    if not python or subprocess.run([python, "-c", "import ray"], capture_output=True).returncode:
        skip("there is no Ray; tools/setup --engines installs it")
    os.execve(python, [python, "-B", *sys.argv], {**os.environ, "THALWEG_RAY_TEST": "1", "PATH": f"{os.path.dirname(python)}:{os.environ['PATH']}"})

import numpy as np
import ray

import thalweg as tw
import thalweg.ray
from running import run_tests

THALWEG = os.path.abspath(sys.argv[1])
STEPS = 150
os.environ[MARK] = str(os.getpid())
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DEDUP_LOGS="0")


def train(worker, steps=STEPS, save=10, pause=0.0):
    """Two layers by synchronous training; the batch follows from the step. Returns {step: loss}."""
    rows = np.loadtxt(DATA, delimiter=",", dtype=np.float32)[:400]
    pixels, labels = rows[:, :64] / 16, rows[:, 64].astype(np.int32)
    drawn, here = np.random.default_rng(1), f"/job:worker/task:{worker.index}"
    with tw.Graph() as graph:
        x, y = tw.placeholder("float32", [None, 64]), tw.placeholder("int32", [None])
        with tw.device("/job:ps/task:0"):
            w = tw.Variable(drawn.standard_normal((64, 10)).astype(np.float32) / 8, name="w")
            b = tw.Variable(np.zeros(10, np.float32), name="b")
        with tw.device(here):
            loss = tw.ops.mean(tw.ops.sparse_softmax_cross_entropy_with_logits(tw.ops.bias_add(tw.ops.mat_mul(x, w), b), y).loss, 0)
        sync = tw.SyncReplicas(tw.train.SGD(0.3), worker.workers, worker.index, device="/job:ps/task:0").minimize(loss)

    def batch(step):
        time.sleep(pause)
        chosen = np.random.default_rng([worker.index, step]).integers(len(labels), size=32)
        return {x: pixels[chosen], y: labels[chosen]}

    found = {}
    with tw.Session(graph, target=worker.target) as session:
        for step, value in tw.SyncTraining(session, sync, worker.folder, chief=worker.index == 0, every_steps=save, wait=200).run(steps, loss, batch):
            found[step] = float(value).hex()
            worker.report(step, loss=float(value))
    return found


def trainer(folder, fn, **how):
    return thalweg.ray.Trainer(fn, storage=folder, resources={"CPU": 1}, runtime_options=["threads=1"], timeout=200, **how)


def actors():
    """Returns {pid: name} of the living actors of tasks."""
    return {pid: words for pid, words in engine_tests.living().items() if words.startswith("ray::_Task")}


def no_actor_stays():
    """ray.kill does not wait for the end of the process."""
    until = time.monotonic() + 30
    while actors() and time.monotonic() < until:
        time.sleep(0.1)
    assert not actors(), actors()


def test_workers_that_are_killed_in_a_row_change_no_bit_of_the_losses():
    kills = int(os.environ.get("THALWEG_KILLS", "10"))
    with tempfile.TemporaryDirectory() as folder:
        calm = trainer(folder, train, workers=2, ps=1, name="calm").fit()
        assert [len(v) for v in calm.values] == [STEPS] * 2 and calm.restarts == 0
        assert [r["training_iteration"] for r in calm.history] == list(range(STEPS))
        assert calm.checkpoint and pathlib.Path(calm.checkpoint).parent == pathlib.Path(folder, "calm/checkpoint_000000")
        assert calm.metrics["loss"] < calm.history[0]["loss"] / 2
        assert json.loads(pathlib.Path(folder, "calm/params.json").read_text())["worker"] == 2
        killed, drawn, over = [], random.Random(5), threading.Event()

        def kill():
            results = pathlib.Path(folder, "stormy/result.json")
            while len(killed) < kills and not over.is_set():
                time.sleep(drawn.uniform(0.2, 0.6))
                there = sorted(set(actors()) - set(killed))
                before = results.stat().st_size if results.exists() else 0
                if len(there) < 3 or before == 0:
                    continue  # an actor is still dead
                pid = drawn.choice(there)
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                while not over.is_set() and results.stat().st_size == before:
                    time.sleep(0.05)

        storm = threading.Thread(target=kill)
        storm.start()
        try:
            stormy = trainer(folder, lambda worker: train(worker, pause=0.05), workers=2, ps=1, name="stormy", max_restarts=kills).fit()
        finally:
            over.set()
            storm.join()
        print(f"  killed: {len(killed)}, restarts: {stormy.restarts}")
        assert len(killed) >= min(kills, 3) and stormy.restarts >= len(killed), (killed, stormy.restarts)
        for i in range(2):
            assert stormy.values[i] and all(calm.values[i][step] == loss for step, loss in stormy.values[i].items()), "the losses differ"
        calmly = {r["training_iteration"]: r["loss"] for r in calm.history}
        assert all(calmly[r["training_iteration"]] == r["loss"] for r in stormy.history) and len(stormy.history) > STEPS / 2
        with tw.Checkpoint(calm.checkpoint) as one, tw.Checkpoint(stormy.checkpoint) as other:
            assert one.names == other.names and all(np.array_equal(one[name], other[name]) for name in one.names)
        no_actor_stays()


def test_certificates_travel_with_the_actors():
    os.environ["PATH"] += f":{os.path.dirname(THALWEG)}"
    with tempfile.TemporaryDirectory() as folder:
        result = trainer(folder, lambda worker: (train(worker, 5), os.environ["THALWEG_CREDENTIALS"])[1], workers=2, ps=1, secure=True).fit()
        assert [value.rsplit("/", 1)[1] for value in result.values] == ["client-worker-0", "client-worker-1"], result.values


def test_what_cannot_be_is_an_error():
    with tempfile.TemporaryDirectory() as folder:
        for fn, words in [(lambda worker: 1 // worker.index, "division by zero"), (lambda worker: os.kill(os.getpid(), signal.SIGKILL),
                                                                                    "worker/0 on .* died 2 times, and max_restarts is 1")]:
            try:
                trainer(folder, fn, max_restarts=1).fit()
                raise AssertionError("nothing was wrong")
            except Exception as e:
                assert engine_tests.re.search(words, str(e)), e
        try:
            thalweg.ray.Trainer(train, resources={"CPU": 1000}, timeout=2, storage=folder).fit()
            raise AssertionError("there are no 1000 processors")
        except RuntimeError as e:
            assert "Ray has not placed 1 actors of {'CPU': 1000} within 2 s; the cluster has" in str(e), e
        try:
            thalweg.ray.Trainer(train, workers=0)
            raise AssertionError("no workers")
        except ValueError as e:
            assert "workers is 0" in str(e), e
        no_actor_stays()


def test_launch_runs_a_program_for_each_worker():
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
        ran(digits(THALWEG, here))
        # The Ray of this test, which has as many processors as the launch has actors, and more than this machine may have.
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "RAY_ADDRESS": ray.get_runtime_context().gcs_address}
        done = ran(digits(THALWEG, there, on="ray", options=["--shared", there]), environment=environment)
        same_losses(here, there, 60)
        assert "[client/1] accuracy" in done.stdout + done.stderr, done
        done = ran([THALWEG, "launch", "--on", "ray", "--shared", there, "--", "sh", "-c", "exit 7"], environment=environment, status=7)
        assert "client/0 ended with status 7" in done.stderr, done


if __name__ == "__main__":
    ray.init(num_cpus=4, include_dashboard=False)
    try:
        run_tests(globals(), sys.argv[2:])
    finally:
        ray.shutdown()
