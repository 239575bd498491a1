"""Collective operations: sessions of this process are the members; NumPy is the oracle. The ops are CollectiveReduceV2,
CollectiveReduceScatterV2, CollectiveGatherV2, CollectiveAllToAllV2, CollectiveBcastSendV2, CollectiveBcastRecvV2 and CollectivePermute.
Each test runs over every engine that this build has."""
import concurrent.futures
import contextlib
import gc
import itertools
import os
import re
import signal
import socket
import stat
import struct
import time

import numpy as np
import pytest

import thalweg as tw

KEYS = {"group_size": 3, "group_key": 1, "instance_key": 1}
TYPES = ["float32", "float64", "int32", "int64", "float16"]


@pytest.fixture(autouse=True, params=["shm", "ring", "levels"])
def engine(request, monkeypatch):
    """The engine of sessions that name none."""
    monkeypatch.setenv("THALWEG_COLLECTIVE_ENGINE", request.param)
    return request.param


over_the_network = pytest.mark.parametrize("engine", ["ring"], indirect=True)


class Members:
    """n sessions, each a member. build: a function of the rank, called in the member's graph, that returns what to fetch."""

    def __init__(self, folder, n, build, runtime=None, **options):
        self.fetches, self.sessions = [], []
        for rank in range(n):
            with tw.Graph(runtime) as g:
                self.fetches.append(build(rank))
            self.sessions.append(tw.Session(g, collective_store=str(folder), collective_rank=rank, collective_members=n, **options))

    def start(self, rank, pool):
        return pool.submit(self.sessions[rank].run, self.fetches[rank])

    def run(self, ranks=None):
        """Returns what each member fetched, or its error."""
        with concurrent.futures.ThreadPoolExecutor(len(self.sessions)) as pool:
            started = [self.start(r, pool) for r in ranks or range(len(self.sessions))]
            return [f.exception() or f.result() for f in started]


def together(folder, n, build, **options):
    results = Members(folder, n, build, **options).run()
    for r in results:
        if isinstance(r, Exception):
            raise r
    return results


def values(rank, shape, dtype):
    return np.asarray(np.random.default_rng(rank).integers(-9, 10, shape), dtype)


def reduce(x, keys=None, **attrs):
    return tw.ops.collective_reduce_v2(x, **(keys or KEYS), ordering_token=[], **{"merge_op": "Add", "final_op": "Id", **attrs})


@pytest.mark.parametrize("dtype", TYPES)
def test_reductions_are_those_of_numpy(tmp_path, dtype):
    ways = {"Add": np.add, "Mul": np.multiply, "Min": np.minimum, "Max": np.maximum}
    shapes = [(), (0,), (5,), (3, 7)]
    cases = list(enumerate(itertools.product(ways, shapes)))
    inputs = [[values(100 * r + i, shape, dtype) for i, (_, shape) in cases] for r in range(3)]
    got = together(tmp_path, 3, lambda r: [reduce(inputs[r][i], KEYS | {"instance_key": i}, merge_op=way) for i, (way, _) in cases])
    for i, (way, shape) in cases:
        want = ways[way](ways[way](inputs[0][i], inputs[1][i]), inputs[2][i])
        for r in range(3):
            assert got[r][i].shape == shape and got[r][i].dtype == dtype
            np.testing.assert_array_equal(got[r][i], want, f"{way} of {shape}, member {r}")


def test_sums_are_in_the_order_of_ranks_whatever_the_size(tmp_path):
    n = 300_001  # more than a member copies at once, and than a window takes
    runtime = tw.Runtime(**{"plugin.org.thalweg.ring.window": 65536})
    inputs = [np.random.default_rng(r).standard_normal(n).astype(np.float32) for r in range(3)]
    for attempt in range(2):
        got = together(tmp_path / str(attempt), 3, lambda r: [reduce(inputs[r]), reduce(inputs[r], KEYS | {"instance_key": 2}, final_op="Div")],
                       runtime=runtime)
        want = (inputs[0] + inputs[1]) + inputs[2]
        for r in range(3):
            assert got[r][0].tobytes() == want.tobytes()
            assert got[r][1].tobytes() == (want / np.float32(3)).tobytes()


def test_parts_are_gathered_scattered_and_exchanged_by_rank(tmp_path):
    for number, rows in enumerate((2, 100_000)):
        inputs = [np.random.default_rng(r).standard_normal((3 * rows, 2)) for r in range(3)]

        def build(r, inputs=inputs):
            x = tw.constant(inputs[r])
            more = {"ordering_token": []}
            return [tw.ops.collective_gather_v2(x, **KEYS, **more),
                    tw.ops.collective_reduce_scatter_v2(x, **KEYS | {"instance_key": 2}, **more, merge_op="Add", final_op="Id"),
                    tw.ops.collective_all_to_all_v2(x, **KEYS | {"instance_key": 3}, **more)]

        got = together(tmp_path / str(number), 3, build)
        total = (inputs[0] + inputs[1]) + inputs[2]
        for r in range(3):
            np.testing.assert_array_equal(got[r][0], np.concatenate(inputs))
            np.testing.assert_array_equal(got[r][1], total[r * rows:(r + 1) * rows])
            np.testing.assert_array_equal(got[r][2], np.concatenate([x[r * rows:(r + 1) * rows] for x in inputs]))


@pytest.mark.parametrize("root", range(3))
def test_one_member_sends_to_all(tmp_path, root):
    x = np.arange(200_000, dtype=np.float64)

    def build(r):
        if r == root:
            return tw.ops.collective_bcast_send_v2(x, **KEYS)
        return tw.ops.collective_bcast_recv_v2(**KEYS, shape=[200_000], T="float64")

    for got in together(tmp_path, 3, build):
        np.testing.assert_array_equal(got, x)


def test_values_are_permuted(tmp_path):
    pairs = np.int32([[0, 2], [2, 0], [1, 1]])
    got = together(tmp_path, 3, lambda r: tw.ops.collective_permute(np.complex64([r, 1j * r]), pairs, name="all"))
    for r, source in enumerate((2, 1, 0)):
        np.testing.assert_array_equal(got[r], np.complex64([source, 1j * source]))
    got = together(tmp_path / "some", 3, lambda r: tw.ops.collective_permute(np.float32([r + 1]), np.int32([[0, 1]]), name="some"))
    assert [g.tolist() for g in got] == [[0], [1], [0]]  # nobody sends to members 0 and 2


def test_large_values_are_permuted(tmp_path):
    """Larger than what a member copies at once; one member has two targets, one sends to itself, one gets nothing."""
    n, pairs = 300_001, np.int32([[2, 0], [1, 1], [2, 2]])
    inputs = [np.random.default_rng(r).standard_normal(n) for r in range(4)]
    got = together(tmp_path, 4, lambda r: tw.ops.collective_permute(inputs[r], pairs, name="all"))
    for r, want in enumerate((inputs[2], inputs[1], inputs[2], np.zeros(n))):
        assert got[r].tobytes() == want.tobytes(), r


def test_permutations_that_differ_are_refused_at_all_members(tmp_path):
    pairs = [np.int32([[0, 1]]), np.int32([[1, 0]])]
    for error in Members(tmp_path, 2, lambda r: tw.ops.collective_permute(np.zeros(3, np.float32), pairs[r], name="p")).run():
        assert isinstance(error, tw.InvalidArgumentError) and "the members disagree" in str(error), error
        assert len(set(re.findall("permute of 3 float, sources of checksum ([0-9]+)", str(error)))) == 2, error


def tcp_bytes():
    """Returns how many bytes this process has received over the TCP connections that it has now."""
    gc.collect()  # ends the connections of earlier tests now, and not between two counts
    received = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as s:
                if s.family in (socket.AF_INET, socket.AF_INET6) and s.type == socket.SOCK_STREAM:
                    info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
                    received += struct.unpack_from("Q", info, 128)[0]  # tcpi_bytes_received
    return received


@over_the_network
def test_a_permutation_sends_only_what_its_targets_get(tmp_path, engine):
    n = 1 << 20
    members = Members(tmp_path, 3, lambda r: tw.ops.collective_permute(np.full(n, r + 1, np.uint8), np.int32([[0, 1]]), name="p"))
    assert [got.max() for got in members.run()] == [0, 1, 0]
    before = tcp_bytes()
    members.run()
    sent = tcp_bytes() - before
    assert n <= sent < n + n // 8, sent  # and a few messages


def test_sizes_that_only_the_step_knows(tmp_path):
    def build(r):
        x = tw.ops.where(tw.ops.equal(np.int64([1, 0, 1, 1]), np.int64(1)))  # [3, 1], which no shape rule knows
        size = tw.ops.identity(np.int32(3))
        more = {"group_size": size, "group_key": 4, "ordering_token": []}
        return [tw.ops.collective_gather_v2(x, instance_key=1, **more), tw.ops.collective_all_to_all_v2(x, instance_key=2, **more),
                tw.ops.collective_reduce_scatter_v2(x, instance_key=3, merge_op="Max", final_op="Id", **more)]

    for r, (gathered, exchanged, scattered) in enumerate(together(tmp_path, 3, build, optimize=False)):
        assert gathered.ravel().tolist() == [0, 2, 3] * 3
        assert exchanged.ravel().tolist() == [[0, 2, 3][r]] * 3 and scattered.tolist() == [[[0, 2, 3][r]]]


def test_steps_follow_each_other_and_groups_need_no_order(tmp_path):
    def build(r):
        x = tw.placeholder("float32", [4], name="x")
        first, second = reduce(x), reduce(x * 2.0, KEYS | {"instance_key": 2})
        return x, [first, second] if r % 2 else [second, first]

    members = Members(tmp_path, 3, build)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for step in range(50):
            x = np.full(4, step, np.float32)
            done = [pool.submit(s.run, f[1], {f[0]: x}) for s, f in zip(members.sessions, members.fetches)]
            sums = [f.result() for f in done]
            assert all(sorted(part[0] for part in s) == [3 * step, 6 * step] for s in sums)


def test_some_of_the_members_are_a_group(tmp_path):
    keys = {"group_size": 2, "group_key": 9, "instance_key": 1}
    members = Members(tmp_path, 3, lambda r: reduce(np.float32(r + 1), keys))
    first, second, third = members.run()
    assert (first, second) == (3, 3)
    assert isinstance(third, tw.InvalidArgumentError) and "has 2 members, and this one has rank 2" in str(third)


def test_calls_that_differ_are_refused_at_all_members(tmp_path):
    results = Members(tmp_path, 3, lambda r: reduce(np.zeros(2 + r // 2, np.float32))).run()
    for error in results:
        assert isinstance(error, tw.InvalidArgumentError), error
        assert "all_reduce of 2 float" in str(error) and "all_reduce of 3 float" in str(error)


def test_two_senders_are_refused(tmp_path):
    results = Members(tmp_path, 2, lambda r: tw.ops.collective_bcast_send_v2(np.float32(r), group_size=2, group_key=1, instance_key=1)).run()
    assert all(isinstance(e, tw.InvalidArgumentError) and "2 members send, and one must" in str(e) for e in results), results


def test_a_member_that_does_not_come_is_named_in_time(tmp_path):
    members = Members(tmp_path, 3, lambda r: reduce(np.float32(r), timeout_seconds=0.5))
    for error in members.run([0, 1]):
        assert isinstance(error, tw.DeadlineExceededError), error
        assert re.search("missing: .*2|2 of 3 members", str(error)), error


def test_a_member_that_leaves_is_named(tmp_path):
    members = Members(tmp_path, 3, lambda r: reduce(np.float32(r)))
    assert members.run() == [3, 3, 3]
    members.sessions[1].close()
    for error in members.run([0, 2]):
        assert isinstance(error, tw.UnavailableError) and "member 1 (process" in str(error) and "has left the group" in str(error), error
    again = members.run([0])[0]
    assert isinstance(again, tw.UnavailableError) and "has failed before" in str(again)


def test_the_next_group_may_have_fewer_members(tmp_path):
    for n in (3, 2):  # rank 2 has made fewer sessions afterwards, so it would not meet the others
        members = Members(tmp_path, n, lambda r, n=n: reduce(np.float32(r + 1), KEYS | {"group_size": n}))
        assert members.run() == [n * (n + 1) / 2] * n
        for session in members.sessions:
            session.close()


PAIR = {"group_size": 2, "group_key": 1, "instance_key": 1}


def pair(folder, runtime=None, **options):
    return Members(folder, 2, lambda r: reduce(np.float32(r), PAIR), runtime, **options)


def test_a_step_that_gives_up_ends_the_others(tmp_path):
    members = pair(tmp_path)
    assert members.run() == [1, 1]
    with pytest.raises(tw.DeadlineExceededError):
        members.sessions[0].run(members.fetches[0], timeout=0.2)
    error = members.run([1])[0]
    assert isinstance(error, tw.AbortedError) and "member 0 (process" in str(error) and "has aborted" in str(error), error


def test_a_forked_child_that_closes_a_session_does_not_end_its_parents_member(tmp_path):
    members = pair(tmp_path)
    assert members.run() == [1, 1]
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)  # the default action ends a child that waits for a thread of its parent
            members.sessions[0].close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert members.run() == [1, 1]


def test_cancelling_ends_the_wait_for_members(tmp_path):
    members, token = pair(tmp_path), tw.CancelToken()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        started = pool.submit(members.sessions[0].run, members.fetches[0], cancel=token)
        while not any(tmp_path.iterdir()):
            assert not started.done(), started.exception()
        token.cancel()
        assert isinstance(started.exception(), tw.CancelledError), started.exception()


def test_a_deadline_of_the_step_ends_the_wait_for_members(tmp_path):
    members = pair(tmp_path)
    with pytest.raises(tw.DeadlineExceededError):
        members.sessions[0].run(members.fetches[0], timeout=0.2)


def test_closing_a_session_ends_its_wait(tmp_path):
    members = pair(tmp_path)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        started = pool.submit(members.sessions[0].run, members.fetches[0])
        while not any(tmp_path.iterdir()):
            assert not started.done(), started.exception()
        members.sessions[0].close()
        assert isinstance(started.exception(), tw.CancelledError), started.exception()


def test_sessions_of_no_group_and_wrong_options_are_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("THALWEG_COLLECTIVE_STORE", raising=False)
    with tw.Graph() as g:
        total = reduce(np.float32(1), {"group_size": 1, "group_key": 1, "instance_key": 1})
    with pytest.raises(tw.FailedPreconditionError, match="set its options collective_store"):
        tw.Session(g).run(total)
    with pytest.raises(tw.InvalidArgumentError, match="collective_rank is 2, and collective_members 2"):
        tw.Session(g, collective_store=str(tmp_path), collective_rank=2, collective_members=2)
    with pytest.raises(tw.NotFoundError, match="no collective engine 'none'"):
        tw.Session(g, collective_store=str(tmp_path), collective_members=1, collective_engine="none").run(total)
    assert tw.Session(g, collective_store=str(tmp_path), collective_members=1).run(total) == 1
    monkeypatch.setenv("THALWEG_COLLECTIVE_STORE", str(tmp_path))
    monkeypatch.setenv("THALWEG_COLLECTIVE_RANK", "x")
    with pytest.raises(tw.InvalidArgumentError, match="THALWEG_COLLECTIVE_RANK is 'x'"):
        tw.Session(g)


def test_wrong_shapes_and_keys_are_refused(graph, tmp_path):
    one = {"group_size": 1, "group_key": 1, "instance_key": 1}
    more = {"ordering_token": []}
    for build, told in (
            (lambda: reduce(np.float32(1), one | {"group_key": [1]}), "group_key"),
            (lambda: reduce(np.float32(1), one | {"group_size": 0}), "group_size is 0"),
            (lambda: tw.ops.collective_gather_v2(np.float32(1), **one, **more), "input"),
            (lambda: tw.ops.collective_reduce_scatter_v2(np.zeros(5, np.float32), **one | {"group_size": 2}, **more, merge_op="Add", final_op="Id"), "5"),
            (lambda: tw.ops.collective_all_to_all_v2(np.zeros(5, np.float32), **one | {"group_size": 2}, **more), "divisible by group_size, 2"),
            (lambda: tw.ops.collective_permute(np.zeros(5, np.float32), np.zeros((1, 3), np.int32)), "3 columns"),
            (lambda: tw.ops.collective_bcast_recv_v2(**one, shape=[-1], T="float32"), "-1")):
        with pytest.raises(tw.InvalidArgumentError, match=told):
            build()
    member = tw.Session(graph, collective_store=str(tmp_path), collective_members=1)
    for pairs, told in (([[0, 1]], "there are 1 members"), ([[0, 0], [0, 0]], "another source, 0")):
        with pytest.raises(tw.InvalidArgumentError, match=told):
            member.run(tw.ops.collective_permute(np.zeros(5, np.float32), np.int32(pairs)))
    with pytest.raises(tw.UnimplementedError, match="'Div' is for merge_op 'Add' of floats"):
        member.run(reduce(np.int32(1), one, final_op="Div"))


def record_of(folder, rank):
    """Returns the file in which the engine `ring` names a member of the first group of a pair, when the file is there."""
    file = folder / f"k1%2f1%2e1%2fring%2f{rank}"
    until = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < until, list(folder.iterdir())
        time.sleep(0.001)
    return file


@over_the_network
@pytest.mark.parametrize("setting, value, told", [
    ("address", "nobody.invalid", "setting 'address' is 'nobody.invalid', which cannot be found"),
    ("address", "192.0.2.1", "which is no address of this host"),
    ("interface", "none0", "no interface of that name has an IP address; there are '"),
    ("port", "4000-", "it must be a port, such as 4000, or a range"),
    ("window", "1", "setting 'window' is '1'; it must be a number from 4096 to"),
    ("lost_after_ms", "soon", "setting 'lost_after_ms' is 'soon'")])
def test_wrong_settings_are_named(tmp_path, engine, setting, value, told):
    members = pair(tmp_path, tw.Runtime(**{f"plugin.org.thalweg.ring.{setting}": value}))
    with pytest.raises(tw.InvalidArgumentError) as error:
        members.sessions[0].run(members.fetches[0])
    assert told in str(error.value)


@over_the_network
def test_a_port_that_is_taken_is_named(tmp_path, engine):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        runtime = tw.Runtime(**{"plugin.org.thalweg.ring.address": "127.0.0.1", "plugin.org.thalweg.ring.port": port})
        members = pair(tmp_path, runtime)
        with pytest.raises(tw.UnavailableError, match=f"cannot listen at 127.0.0.1, port {port}: Address already in use; give other ports"):
            members.sessions[0].run(members.fetches[0])
    assert pair(tmp_path / "free", runtime).run() == [1, 1]


@over_the_network
def test_members_of_groups_of_different_sizes_are_told(tmp_path, engine):
    sizes = [3, 2]
    sessions = []
    for rank, n in enumerate(sizes):
        with tw.Graph() as g:
            total = reduce(np.float32(1), PAIR | {"group_size": n})
        sessions.append((tw.Session(g, collective_store=str(tmp_path), collective_rank=rank, collective_members=n), total))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        errors = [f.exception() for f in [pool.submit(s.run, total) for s, total in sessions]]
    for error in errors:
        assert isinstance(error, tw.InvalidArgumentError), error
        assert "the group of member 0 has 3 members, that of member 1 has 2" in str(error) or (
            "the group of member 1 has 2 members, that of member 0 has 3" in str(error)), error


@over_the_network
def test_a_member_of_another_version_is_told(tmp_path, engine):
    tmp_path.joinpath("k1%2f1%2e1%2fring%2f1").write_text("ring 7 and what that version adds")
    members = pair(tmp_path)
    with pytest.raises(tw.FailedPreconditionError, match="member 1 has version 7 of this engine, and this member version 1; install the same"):
        members.sessions[0].run(members.fetches[0])


@over_the_network
def test_a_second_member_of_one_rank_is_refused(tmp_path, engine):
    members = pair(tmp_path)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = members.start(0, pool)
        # The store says that a group that lives has rank 1.
        tmp_path.joinpath("k1%2f1%2e1%2fring%2f1").write_bytes(record_of(tmp_path, 0).read_bytes())
        with pytest.raises(tw.AlreadyExistsError, match="the group already has a member 1, process [0-9]+ on .*; give each member another rank"):
            members.sessions[1].run(members.fetches[1])
        members.sessions[0].close()
        assert isinstance(first.exception(), tw.CancelledError), first.exception()


@over_the_network
def test_a_failure_whose_code_is_unknown_fails_the_group(tmp_path, engine):
    members = pair(tmp_path)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = members.start(0, pool)
        words = record_of(tmp_path, 0).read_text().split()
        token, door = [int(w, 16) for w in words[4:6]], int(words[6], 16)
        host, port = words[9].rsplit(":", 1)
        with socket.create_connection((host.strip("[]"), int(port))) as caller:
            caller.sendall(struct.pack("<5Q", 0x676e69722d777401, *token, 77, 0))
            caller.sendall(struct.pack("<2I2Q2IQ", 5, 1, door, 0, 0, 3, 1 << 32) + b"why")  # kFailed; the low half of the code is 0
            with pytest.raises(tw.AbortedError, match="why"):
                first.result()


@over_the_network
def test_bytes_that_come_before_their_operation_fail_the_group(tmp_path, engine):
    members = Members(tmp_path, 2, lambda r: reduce(np.float32(r), PAIR, timeout_seconds=20))
    with concurrent.futures.ThreadPoolExecutor(1) as pool, socket.create_server(("127.0.0.1", 0)) as listener:
        first = members.start(0, pool)
        words = record_of(tmp_path, 0).read_text().split()
        token, door = [int(w, 16) for w in words[4:6]], int(words[6], 16)
        own = f"ring 1 2 {77:016x} {1:016x} {2:016x} {3:016x} 5 elsewhere 127.0.0.1:{listener.getsockname()[1]}".encode()
        host, port = words[9].rsplit(":", 1)
        with socket.create_connection((host.strip("[]"), int(port))) as caller:
            caller.sendall(struct.pack("<5Q", 0x676e69722d777401, *token, 77, 0))
            caller.sendall(struct.pack("<2I2Q2IQ", 1, 1, door, 0, 0, len(own), 0) + own)  # kJoin of member 1
            caller.sendall(struct.pack("<2I2Q2IQ", 4, 1, door, 1, 1, 4, 0) + b"\0\0\x80\x3f")  # kData of operation 1
            with pytest.raises(tw.InternalError, match=r"member 1 \(process 5 on elsewhere\) has sent bytes of operation 1, which this member has not"):
                first.result()


@over_the_network
def test_a_record_that_is_none_is_shown(tmp_path, engine):
    tmp_path.joinpath("k1%2f1%2e1%2fring%2f1").write_text("nonsense")
    members = pair(tmp_path)
    with pytest.raises(tw.DataLossError, match="the store holds 'nonsense' for member 1, which is no record of this engine; set a new folder"):
        members.sessions[0].run(members.fetches[0])


@over_the_network
def test_strangers_and_the_records_of_an_earlier_start_do_no_harm(tmp_path, engine):
    nobody = socket.create_server(("127.0.0.1", 0))
    gone = f"127.0.0.1:{nobody.getsockname()[1]}"
    nobody.close()
    tmp_path.joinpath("k1%2f1%2e1%2fring%2f1").write_text(f"ring 1 2 {1:016x} {2:016x} {3:016x} {4:016x} 5 elsewhere {gone}")
    members = pair(tmp_path)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first = members.start(0, pool)
        words = record_of(tmp_path, 0).read_text().split()
        host, port = words[9].rsplit(":", 1)
        magic = 0x676e69722d777401
        hellos = [b"GET / HTTP/1.1\r\nHost: thalweg\r\n\r\n" * 3, bytes(4096), struct.pack("<5Q", magic, 1, 2, 3, 4),
                  struct.pack("<5Q", magic, 1, 2, 0, 4), b"x"]
        callers = [socket.create_connection((host.strip("[]"), int(port))) for _ in range(100)]
        for i, caller in enumerate(callers):
            caller.settimeout(10)
            caller.sendall(hellos[i % len(hellos)])
        for i in range(95, 99):
            with contextlib.suppress(ConnectionResetError):
                assert callers[i].recv(1) == b"", hellos[i % len(hellos)]
        second = members.start(1, pool)
        assert [first.result(), second.result()] == [1, 1]
        assert members.run() == [1, 1]
        for caller in callers:
            caller.close()
