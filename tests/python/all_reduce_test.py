"""Data-parallel training by all-reduce: several processes against one."""
import concurrent.futures
import os
import pathlib
import platform
import subprocess
import sys
import time

import numpy as np
import pytest

import thalweg as tw

HERE = pathlib.Path(__file__).parent
DATA = pathlib.Path(os.environ["THALWEG_DATA_PATH"]) / "digits.csv"
STEPS = 30
BOUND = 5  # seconds until the others learn of a lost worker


def start(folder, rank, workers, steps=STEPS, **more):
    env = os.environ | {"OMP_NUM_THREADS": "1"} | more
    for name in ("STORE", "RANK", "MEMBERS"):
        env.pop(f"THALWEG_COLLECTIVE_{name}", None)
    if workers > 1:
        env |= {"THALWEG_COLLECTIVE_STORE": str(folder / "store"), "THALWEG_COLLECTIVE_RANK": str(rank), "THALWEG_COLLECTIVE_MEMBERS": str(workers)}
    command = [sys.executable, "-B", HERE / "all_reduce_worker.py", DATA, folder / f"{rank}.npz", str(steps)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def trained(folder, workers, engine="shm"):
    """Returns the weights of each worker."""
    folder.mkdir()
    started = [start(folder, rank, workers, THALWEG_COLLECTIVE_ENGINE=engine) for rank in range(workers)]
    ends = [p.communicate(timeout=300) for p in started]
    assert [p.returncode for p in started] == [0] * workers, ends
    return [list(np.load(folder / f"{rank}.npz").values()) for rank in range(workers)]


def test_workers_hold_the_same_bits_and_train_as_one_process_does(tmp_path):
    alone = trained(tmp_path / "1", 1)[0]
    for workers in (2, 4):
        all_ = trained(tmp_path / str(workers), workers)
        for weights in all_:
            assert all(a.tobytes() == b.tobytes() for a, b in zip(weights, all_[0]))
        for ours, theirs in zip(all_[0], alone):
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)
        if workers == 2:
            for engine in ("shm", "ring", "levels"):
                again = trained(tmp_path / f"2 again, {engine}", 2, engine)[1]
                assert all(a.tobytes() == b.tobytes() for a, b in zip(again, all_[0])), engine
    assert not np.array_equal(alone[0], np.zeros_like(alone[0]))


@pytest.mark.parametrize("engine, told_so", [("shm", "member 1 (process {}) is lost: its process has ended"),
                                             ("ring", f"member 1 (process {{}} on {platform.node()}) is lost: its connection has ended")])
def test_the_loss_of_a_worker_is_told_to_the_others_with_its_rank(tmp_path, engine, told_so):
    workers = [start(tmp_path, rank, 3, steps=10 ** 9, THALWEG_COLLECTIVE_ENGINE=engine) for rank in range(3)]
    for p in workers:
        while "step 3" not in p.stdout.readline():
            assert p.poll() is None, p.stderr.read()
    workers[1].kill()
    killed = time.monotonic()
    for rank in (0, 2):
        _, told = workers[rank].communicate(timeout=60)
        assert workers[rank].returncode == 1, told
        assert told_so.format(workers[1].pid) in told, told
    took = time.monotonic() - killed
    assert took < BOUND, took
    workers[1].communicate()


def test_launch_tells_workers_who_they_are(tmp_path):
    program = "import os; print('told', *(os.environ['THALWEG_COLLECTIVE_' + n] for n in ('RANK', 'MEMBERS', 'STORE')))"
    command = pathlib.Path(os.environ["THALWEG_BINARY_DIR"]) / "bin" / "thalweg"
    done = subprocess.run([command, "launch", "-n", "2", "--", sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = sorted(line.split(" told ")[1].split() for line in done.stdout.splitlines() if " told " in line)
    assert [t[:2] for t in told] == [["0", "2"], ["1", "2"]] and told[0][2] == told[1][2], done.stdout
    assert not os.path.exists(told[0][2])


def test_sparse_gradients_are_gathered(tmp_path):
    ids, n = [[0, 2], [2, 3]], 2
    members = []
    for rank in range(n):
        with tw.Graph() as g:
            table = tw.Variable(np.arange(10.0).reshape(5, 2), name="table")
            loss = (tw.ops.gather_v2(table, np.int32(ids[rank]), 0) * (rank + 1.0)).sum()
            step = tw.train.AllReduce(tw.train.SGD(1.0), n).minimize(loss)
        session = tw.Session(g, collective_store=str(tmp_path), collective_rank=rank, collective_members=n)
        session.run(g.initializer())
        members.append((session, step, table))

    def train(member):
        session, step, table = member
        session.run(step)
        return session.run(table)

    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        tables = list(pool.map(train, members))
    want = np.arange(10.0).reshape(5, 2)
    for rank in range(n):
        for row in ids[rank]:
            want[row] -= (rank + 1) / n
    for table in tables:
        np.testing.assert_allclose(table, want, rtol=1e-6)


def test_wrong_arguments_are_refused(monkeypatch):
    monkeypatch.delenv("THALWEG_COLLECTIVE_MEMBERS", raising=False)
    with pytest.raises(ValueError, match="thalweg launch"):
        tw.train.AllReduce(tw.train.SGD(0.1))
    with pytest.raises(ValueError, match="workers=0"):
        tw.train.AllReduce(tw.train.SGD(0.1), 0)
    with pytest.raises(TypeError, match="no optimizer that AllReduce can use"):
        tw.train.AllReduce(tw.train.LossScale(tw.train.SGD(0.1)), 2)
