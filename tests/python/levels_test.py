"""Collective operations on two levels: members of a host over shared memory, one member of each host over TCP. The setting `host` of the
plugin makes hosts of one machine. NumPy's float64 is the oracle."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

import numpy as np
import pytest

import thalweg as tw
from collectives_test import reduce, tcp_bytes
from levels_worker import value

HERE = pathlib.Path(__file__).parent
DATA = pathlib.Path(os.environ["THALWEG_DATA_PATH"]) / "digits.csv"
BOUND = 5  # seconds until the others learn of a lost worker
KEYS = {"group_size": 4, "group_key": 1, "instance_key": 1}
TOLERANCE = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-13, "int64": 0}


def environment(folder, rank, host, engine="levels"):
    options = [*filter(None, [os.environ.get("THALWEG_OPTIONS")]), f"plugin.org.thalweg.ring.host={host}"]
    return os.environ | {"OMP_NUM_THREADS": "1", "THALWEG_OPTIONS": ";".join(options), "THALWEG_COLLECTIVE_ENGINE": engine,
                         "THALWEG_COLLECTIVE_STORE": str(folder / "store"), "THALWEG_COLLECTIVE_RANK": str(rank),
                         "THALWEG_COLLECTIVE_MEMBERS": "4"}


def start(folder, rank, host, *words):
    command = [sys.executable, "-B", *map(str, words)]
    return subprocess.Popen(command, env=environment(folder, rank, host), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Hosts:
    """Four sessions of this process, each on the host that its letter names. build: as of collectives_test.Members."""

    def __init__(self, folder, letters, build, engine="levels", settings=None):
        self.runtimes = {letter: tw.Runtime(**{"plugin.org.thalweg.ring.host": letter, **(settings or {}).get(letter, {})})
                         for letter in sorted(set(letters))}
        self.fetches, self.sessions = [], []
        for rank, letter in enumerate(letters):
            with tw.Graph(self.runtimes[letter]) as g:
                self.fetches.append(build(rank))
            self.sessions.append(tw.Session(g, collective_store=str(folder), collective_rank=rank, collective_members=len(letters),
                                            collective_engine=engine))

    def run(self, ranks=range(4)):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            started = [pool.submit(self.sessions[r].run, self.fetches[r]) for r in ranks]
            return [f.exception() or f.result() for f in started]

    def results(self):
        got = self.run()
        for g in got:
            if isinstance(g, Exception):
                raise g
        return got


def check(name, rank, got):
    """Compares what a member got with the oracle."""
    what, *words = name.split()
    if what in ("reduce", "scatter"):
        dtype, n, merge, final = words
        inputs = np.array([value(r, dtype, int(n)) for r in range(4)], np.float64)
        want = {"Add": np.sum, "Mul": np.prod, "Min": np.min, "Max": np.max}[merge](inputs, axis=0) / (4 if final == "Div" else 1)
        if what == "scatter":
            want = np.split(want, 4)[rank]
        assert got.dtype == dtype, name
        scale = np.abs(inputs).sum(axis=0).max() if merge == "Add" else 1  # sums may cancel
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale, err_msg=name)
    elif what == "gather":
        np.testing.assert_array_equal(got, np.concatenate([value(r, words[0], int(words[1])) for r in range(4)]), name)
    else:
        inputs = [value(r, "float64", len(got)) for r in range(4)]
        wants = {"exchange": lambda: np.concatenate([np.split(x, 4)[rank] for x in inputs]),
                 "permute": lambda: [inputs[3], inputs[1], np.zeros(len(got)), inputs[0]][rank],
                 "broadcast": lambda: inputs[int(words[0])]}
        np.testing.assert_array_equal(got, wants[what](), name)


def test_four_processes_on_two_hosts_agree_with_numpy_and_with_each_other(tmp_path):
    started = [start(tmp_path, rank, "aabb"[rank], HERE / "levels_worker.py", tmp_path / f"{rank}.npz") for rank in range(4)]
    ends = [p.communicate(timeout=120) for p in started]
    assert [p.returncode for p in started] == [0] * 4, ends
    results = [np.load(tmp_path / f"{rank}.npz") for rank in range(4)]
    assert len(results[0].files) > 50
    for name in results[0].files:
        for rank in range(4):
            check(name, rank, results[rank][name])
            if name.startswith(("reduce", "gather", "broadcast")):
                assert results[rank][name].tobytes() == results[0][name].tobytes(), (name, rank)
    assert any("/leaders" in name.replace("%2f", "/") for name in os.listdir(tmp_path / "store"))


@pytest.mark.parametrize("letters", ["aabb", "abab", "aaab", "abcb"])
def test_sums_are_in_the_order_of_hosts_in_every_run(tmp_path, letters):
    n = 100_000
    inputs = [np.random.default_rng(r).standard_normal(n).astype(np.float32) for r in range(4)]
    want = None
    for host in dict.fromkeys(letters):
        own = None
        for x in (inputs[r] for r in range(4) if letters[r] == host):
            own = x if own is None else own + x
        want = own if want is None else want + own

    def build(r):
        x, more = tw.constant(inputs[r]), {"ordering_token": []}
        return [reduce(x, KEYS), reduce(x, KEYS | {"instance_key": 2}, final_op="Div"),
                tw.ops.collective_gather_v2(x, **KEYS | {"instance_key": 3}, **more),
                tw.ops.collective_reduce_scatter_v2(x, **KEYS | {"instance_key": 4}, **more, merge_op="Add", final_op="Id"),
                tw.ops.collective_all_to_all_v2(x, **KEYS | {"instance_key": 5}, **more)]

    for attempt in range(2):
        for r, (total, mean, gathered, part, exchanged) in enumerate(Hosts(tmp_path / str(attempt), letters, build).results()):
            assert total.tobytes() == want.tobytes(), (attempt, r)
            assert mean.tobytes() == (want / np.float32(4)).tobytes(), (attempt, r)
            assert gathered.tobytes() == np.concatenate(inputs).tobytes(), (attempt, r)
            assert part.tobytes() == np.split(want, 4)[r].tobytes(), (attempt, r)
            assert exchanged.tobytes() == np.concatenate([np.split(x, 4)[r] for x in inputs]).tobytes(), (attempt, r)


def test_a_mean_of_large_halves_does_not_overflow_on_the_way(tmp_path):
    x = np.full(9, 60000, np.float16)  # the largest half is 65504
    for got in Hosts(tmp_path, "aabb", lambda r: reduce(x, KEYS, final_op="Div")).results():
        np.testing.assert_array_equal(got, x)


@pytest.mark.parametrize("dtype, share", [("float32", 0.34), ("float16", 0.51)])
def test_a_reduction_sends_at_most_half_the_bytes_of_one_level(tmp_path, dtype, share):
    """Half is folded in float, and takes more."""
    sent = {}
    for engine in ("ring", "levels"):
        hosts = Hosts(tmp_path / engine, "aabb", lambda r: reduce(np.full(1 << 18, r, dtype), KEYS), engine)
        hosts.results()
        before = tcp_bytes()
        for got in hosts.results():
            np.testing.assert_array_equal(got, np.full(1 << 18, 6, dtype))
        sent[engine] = tcp_bytes() - before
        for session in hosts.sessions:
            session.close()
    assert 0 < sent["levels"] <= share * sent["ring"], sent


def test_one_host_sends_no_values_over_tcp(tmp_path):
    hosts = Hosts(tmp_path, "aaaa", lambda r: reduce(np.full(1 << 18, r, np.float32), KEYS))
    hosts.results()
    before = tcp_bytes()
    hosts.results()
    assert tcp_bytes() == before


def test_a_member_can_switch_levels_off(tmp_path):
    inputs = [np.random.default_rng(r).standard_normal(1000).astype(np.float32) for r in range(4)]
    flat, levels = ((inputs[0] + inputs[1]) + inputs[2]) + inputs[3], (inputs[0] + inputs[1]) + (inputs[2] + inputs[3])
    assert flat.tobytes() != levels.tobytes()
    off = {"b": {"plugin.org.thalweg.ring.levels": "off"}}
    for got in Hosts(tmp_path, "aabb", lambda r: reduce(inputs[r], KEYS), settings=off).results():
        assert got.tobytes() == flat.tobytes()
    wrong = {"a": {"plugin.org.thalweg.ring.levels": "maybe"}}
    with pytest.raises(tw.InvalidArgumentError, match="setting 'levels' is 'maybe'; it must be auto or off"):
        hosts = Hosts(tmp_path / "wrong", "aabb", lambda r: reduce(inputs[r], KEYS), settings=wrong)
        hosts.sessions[0].run(hosts.fetches[0])


def test_calls_that_differ_are_refused_at_all_members(tmp_path):
    """The members of each host agree with each other."""
    for error in Hosts(tmp_path, "aabb", lambda r: reduce(np.zeros(2 + r // 2, np.float32), KEYS)).run():
        assert isinstance(error, tw.InvalidArgumentError), error
        assert "all_reduce of 2 float" in str(error) and "all_reduce of 3 float" in str(error), error


def test_a_member_that_does_not_come_is_named_to_all(tmp_path):
    hosts = Hosts(tmp_path, "aabb", lambda r: reduce(np.float32(r), KEYS, timeout_seconds=2))
    assert hosts.results() == [6] * 4
    for error in hosts.run([0, 1, 2]):
        assert isinstance(error, tw.DeadlineExceededError), error
        assert re.search(r"member 3 \(process \d+ on .*\) did not come to operation 2 within 2000 ms", str(error)), error


def test_a_step_that_gives_up_ends_the_others(tmp_path):
    hosts = Hosts(tmp_path, "aabb", lambda r: reduce(np.float32(r), KEYS))
    assert hosts.results() == [6] * 4
    with pytest.raises(tw.DeadlineExceededError):
        hosts.sessions[3].run(hosts.fetches[3], timeout=0.2)
    for error in hosts.run([0, 1, 2]):
        assert isinstance(error, tw.AbortedError) and "member 3 (process" in str(error) and "has aborted" in str(error), error


def test_a_member_that_leaves_is_named(tmp_path):
    hosts = Hosts(tmp_path, "aabb", lambda r: reduce(np.float32(r), KEYS))
    assert hosts.results() == [6] * 4
    hosts.sessions[2].close()
    for error in hosts.run([0, 1, 3]):
        assert isinstance(error, tw.UnavailableError) and re.search(r"member 2 \(process .* has left the group", str(error)), error


@pytest.mark.parametrize("lost", [2, 3], ids=["leader", "other"])
def test_the_loss_of_a_worker_is_told_to_all_others_with_its_rank(tmp_path, lost):
    workers = [start(tmp_path, rank, "aabb"[rank], HERE / "all_reduce_worker.py", DATA, tmp_path / f"{rank}.npz", 10 ** 9)
               for rank in range(4)]
    for p in workers:
        while "step 3" not in p.stdout.readline():
            assert p.poll() is None, p.stderr.read()
    workers[lost].kill()
    killed = time.monotonic()
    for rank in set(range(4)) - {lost}:
        _, told = workers[rank].communicate(timeout=60)
        assert workers[rank].returncode == 1, told
        assert re.search(rf"UnavailableError.*member {lost} \(process {workers[lost].pid}\b.*\) is lost: its (process|connection) has ended", told), told
    took = time.monotonic() - killed
    assert took < BOUND, took
    workers[lost].communicate()
