"""Tests data services over processes that die: data_service_test.py THALWEG TRANSPORT [TEST...]"""
import contextlib
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

import numpy as np

import thalweg as tw
from thalweg import service
from addresses import new_address
from local_cluster import local_cluster
from running import run_tests

THALWEG, TRANSPORT = sys.argv[1:3]
TRAINER = pathlib.Path(__file__).with_name("data_trainer.py")
KILLS = int(os.environ.get("THALWEG_KILLS", "10"))
tw.load_plugin(TRANSPORT)


def readers(n=2):
    return local_cluster(THALWEG, TRANSPORT, jobs={"reader": n})


def target(c, k=0):
    return c.address["reader"][k]


def fails(f, kind, *words):
    """Returns the error that f raises, whose text has these words."""
    try:
        f()
    except kind as e:
        for word in words:
            assert word in str(e), (word, str(e))
        return e
    raise AssertionError(f"{kind} was to be raised")


def eventually(condition):
    """Waits until a condition holds which another process brings about."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


class Takers:
    """Trainers of one service, each on a thread, which take everything. found: the elements of each, as numbers. errors: what was raised."""

    def __init__(self, iterators, slow=()):
        self.found, self.errors, self.gates = [[] for _ in iterators], [], {k: threading.Semaphore(0) for k in slow}
        self.threads = [threading.Thread(target=self.take, args=(k, i)) for k, i in enumerate(iterators)]
        for t in self.threads:
            t.start()

    def take(self, k, iterator):
        try:
            while True:
                if k in self.gates:
                    self.gates[k].acquire()
                element = next(iterator, None)
                if element is None:
                    return
                self.found[k].append(int(element))
        except Exception as e:  # told by the test
            self.errors.append(e)

    def join(self):
        for t in self.threads:
            t.join()
        assert not self.errors, self.errors
        return self.found


def every(found):
    return sorted(x for part in found for x in part)


# ---- Without failures ----

def test_two_trainers_that_take_what_comes_first_see_each_element_once():
    with readers() as c:
        data = tw.data.range(200).shuffle(8, seed=2).map(lambda x: x * 3)
        both = [data.distribute(target(c, k), name="first", seed=1).iterator() for k in range(2)]
        with both[0], both[1]:
            for epoch in range(2):
                found = Takers(both).join()
                assert every(found) == [3 * i for i in range(200)], epoch
                for i in both:
                    assert next(i, None) is None, "the end is told again"
                    i.reset(epoch + 1)
            with data.distribute(target(c), name="first", seed=1).iterator() as late:
                assert list(late) == [], "epoch 0 is over"
                assert late.join() == 1


def test_trainers_with_shares_see_each_element_once_in_an_order_that_readers_do_not_change():
    orders = []
    for n in (1, 3):
        with readers(n) as c:
            data = tw.data.range(101).shuffle(8, seed=2).batch(3).unbatch()
            parts = [data.distribute(target(c), name="shares", mode="exactly_once", seed=7, trainer=t, trainers=2).iterator() for t in range(2)]
            with parts[0], parts[1]:
                found = Takers(parts).join()
                assert every(found) == list(range(101))
                for p in parts:
                    p.reset(1)
                second = Takers(parts).join()
                assert every(second) == list(range(101)) and second != found
                orders.append((found, second))
    assert orders[0] == orders[1], "the order depends on the readers"


def test_files_are_splits():
    with readers() as c:
        names = write_files(c.folder, 5, 4)
        data = tw.data.records(names).map(lambda x: tw.ops.string_to_number(x, out_type="int64")).distribute(target(c), name="files", sharding="file")
        assert data.splits == 5
        with data.iterator() as i:
            assert sorted(map(int, i)) == list(range(20))
        more = tw.data.lines([str(c.folder / "missing")]).distribute(target(c), name="missing", mode="exactly_once", wait=1)
        with more.iterator() as i:
            for _ in range(2):
                fails(lambda: next(i), tw.NotFoundError, "missing")


def test_with_sharding_off_each_reader_gives_all():
    with readers() as c, tw.data.range(9).distribute(target(c), name="off", sharding="off").iterator() as i:
        assert sorted(map(int, i)) == sorted([*range(9)] * 2)


def test_a_slow_trainer_holds_no_other():
    with readers() as c:
        both = [tw.data.range(100).distribute(target(c), name="slow", prefetch=1).iterator() for _ in range(2)]
        with both[0], both[1]:
            first = int(next(both[1]))
            takers = Takers(both, slow=[1])
            takers.threads[0].join()  # it comes to the end of the epoch while the other takes nothing
            assert len(takers.found[0]) >= 100 - 1 - len(c.address["reader"]), "the other holds more than one element from each reader"
            for _ in range(100):
                takers.gates[1].release()
            assert sorted([first, *every(takers.join())]) == list(range(100))


def test_an_error_of_an_element_is_told_with_its_task():
    def checked(x):
        with tw.control_dependencies([tw.current_graph().op("Assert", x != 5, [x], T=["int64"])]):
            return x + 0
    with readers(1) as c:
        data = tw.data.range(10).map(checked, parallel=1)
        with data.distribute(target(c), name="wrong", splits=1).iterator() as i:
            found = [int(next(i)) for _ in range(5)]
            fails(lambda: next(i), tw.Error, "/job:reader/task:0")
            assert found + [int(x) for x in i] == [0, 1, 2, 3, 4, 6, 7, 8, 9]
        with data.distribute(target(c), name="wrong again", mode="exactly_once", splits=1, wait=1).iterator() as i:
            assert [int(next(i)) for _ in range(5)] == [0, 1, 2, 3, 4]
            for _ in range(2):
                fails(lambda: next(i), tw.Error, "/job:reader/task:0")


def test_wrong_uses_are_refused():
    with readers(1) as c:
        data, at = tw.data.range(10), dict(target=target(c), name="x")
        fails(lambda: data.distribute(**at, mode="twice"), ValueError, "mode is 'twice'", "'exactly_once'")
        fails(lambda: data.distribute(**at, sharding="hint"), ValueError, "sharding is 'hint'")
        fails(lambda: data.distribute(**at, trainer=2, trainers=2), ValueError, "trainer is 2")
        fails(lambda: data.distribute(**at, mode="exactly_once", sharding="off"), ValueError, "sharding='off'")
        fails(lambda: data.distribute(**at, sharding="file"), ValueError, "rows and no files")
        fails(lambda: data.distribute(**at, lease="y"), ValueError, "option 'lease'")
        fails(lambda: data.distribute(**at, seed=1 << 60), ValueError, "seed is 1152921504606846976")
        fails(lambda: data.distribute(**at, wait=-1), ValueError, "wait is -1")
        fails(lambda: data.distribute(target(c), name="a,b"), ValueError, "'a,b'")
        for wrong in (data.take(3), data.skip(1), data.cache(), data.repeat(), tw.data.zip(data, data), data.shard(2, 0)):
            fails(lambda d=wrong: d.distribute(**at), ValueError, "splits")
        fails(lambda: tw.data.generator(lambda: [1], "int64", ()).distribute(**at), ValueError, "generator")
        fails(lambda: data.distribute(**at, job="trainer").iterator(), ValueError, "no job 'trainer'", "'reader'")
        fails(lambda: data.distribute(new_address(TRANSPORT), name="x", wait=0).iterator(), tw.UnavailableError, "target")
        with data.distribute(**at).iterator() as i:
            assert int(next(i)) in range(10)
            with tw.data.range(10).map(lambda x: tw.ops.cast(x, DstT="float32")).distribute(**at).iterator() as other:
                fails(lambda: next(other), tw.InvalidArgumentError, "another pipeline", "float32", "/job:reader/task:0")
            with data.distribute(**at, mode="exactly_once").iterator() as other:
                fails(lambda: next(other), tw.InvalidArgumentError, "another pipeline", "exactly_once")
            fails(i.save, tw.UnimplementedError, "exactly_once")
            fails(lambda: i.reset(-1), tw.InvalidArgumentError, "-1")
            i.reset(1)
            fails(lambda: next(i), tw.InvalidArgumentError, "epoch 0", "join()")
        fails(lambda: next(i), tw.InvalidArgumentError, "closed")
        shares = data.distribute(target(c), name="y", mode="exactly_once", trainer=1, trainers=2).iterator()
        position = shares.save()
        with shares, data.distribute(target(c), name="y", mode="exactly_once", trainers=3).iterator() as other:
            fails(lambda: other.restore(position), tw.InvalidArgumentError, "all 2 trainers")
            fails(lambda: shares.restore(other.save()), tw.InvalidArgumentError, "all 3 trainers")
            fails(lambda: shares.restore(b"{}"), tw.InvalidArgumentError, "no position")
            fails(lambda: shares.restore(position[:-1]), tw.InvalidArgumentError, "no position")
        fails(lambda: tw.Session(tw.Graph(), lease="a"), tw.InvalidArgumentError, "lease", "no target")


def test_a_model_trains_on_it_and_its_checkpoint_has_the_position():
    with readers(1) as c:
        x = np.arange(40, dtype=np.float32).reshape(40, 1) / 40
        data = tw.data.arrays(x, 2 * x).shuffle(5, seed=3).batch(5).distribute(target(c), name="model", mode="exactly_once", splits=2, seed=1)
        losses = {}
        for name, parts in (("whole", [4]), ("parts", [2, 4])):
            for epochs in parts:
                tw.random.seed(1)
                trainer = tw.train.Trainer(tw.nn.Dense(1), "mean_squared_error", tw.train.SGD(0.1))
                losses[name] = trainer.fit(data, epochs, folder=c.folder / name)["loss"]
        assert losses["whole"][-1] == losses["parts"][-1], losses


# ---- State at the readers ----

def pieces(c, k=0):
    """How many keys the table of a service has at a reader, asked by a session that leases nothing."""
    graph = tw.Graph()
    table = graph.op("MutableHashTableV2", container="data_service/leased", shared_name="reader", key_dtype="int64", value_dtype="int64")
    with tw.Session(graph, target=target(c, k)) as session:
        return int(session.run(graph.op("LookupTableSizeV2", table)))


def test_the_state_at_the_readers_ends_with_the_last_trainer():
    with readers(1) as c:
        data = tw.data.range(10).distribute(target(c), name="leased")
        first, second = data.iterator(), data.iterator()
        next(first), next(second)
        first.close()
        assert pieces(c) > 0
        assert len(list(second)) > 0, "the service goes on"
        assert pieces(c) > 0
        second.close()
        eventually(lambda: pieces(c) == 0)
        with data.iterator() as again:
            assert sorted(map(int, again)) == list(range(10)), "a new service begins at epoch 0"


def test_the_state_at_the_readers_ends_with_a_trainer_that_is_killed():
    program = ("import sys, thalweg as tw; tw.load_plugin(sys.argv[1]); i = tw.data.range(10).distribute(sys.argv[2], name='leased').iterator(); "
               "next(i); print('here', flush=True); sys.stdin.read()")
    with readers(1) as c:
        with subprocess.Popen([sys.executable, "-c", program, TRANSPORT, target(c)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            assert p.stdout.readline() == "here\n"
            assert pieces(c) > 0
            p.kill()
        eventually(lambda: pieces(c) == 0)


def test_a_program_may_end_with_an_open_iterator():
    program = ("import sys, thalweg as tw; tw.load_plugin(sys.argv[1])\n"
               "all = [tw.data.range(100).distribute(sys.argv[2], name=n, mode=m, prefetch=1).iterator() for n, m in (('leased', 'first_come'), "
               "('other', 'exactly_once'))]\n"
               "for i in all: next(i)")
    with readers(1) as c:
        subprocess.run([sys.executable, "-c", program, TRANSPORT, target(c)], check=True)
        eventually(lambda: pieces(c) == 0)


# ---- First come, with deaths ----

@contextlib.contextmanager
def before_a_split_begins(f):
    """Calls f(work, reader) in the threads of trainers that are about to begin a split which they have claimed."""
    begin = service._begin

    def called(work, reader, state, split):
        f(work, reader)
        return begin(work, reader, state, split)
    service._begin = called
    try:
        yield
    finally:
        service._begin = begin


def rest(i):
    """What an iterator gives until the end of the epoch: elements, and the texts of errors that tell of lost readers."""
    found, told = [], []
    while True:
        try:
            element = next(i, None)
        except tw.UnavailableError as e:
            told.append(str(e))
            continue
        if element is None:
            return found, told
        found.append(int(element))


def test_a_reader_that_dies_is_named_once_and_the_others_go_on():
    with readers() as c:
        data = tw.data.range(200).distribute(target(c), name="dies", prefetch=1)
        with data.iterator() as i:
            found = [int(next(i))]
            eventually(lambda: i._work.readers[1].given)
            began = time.monotonic()
            c.kill("reader", 1)
            more, told = rest(i)
            found += more
            assert time.monotonic() - began < 15
            assert len(told) == 1 and "/job:reader/task:1" in told[0] and c.address["reader"][1] in told[0], told
            assert len(found) == len(set(found)), "an element came twice"
            assert 200 - len(found) <= 4, "of 64 splits of at most four elements one is lost"
            c.start("reader", 1)
            i.reset(1)
            assert sorted(map(int, i)) == list(range(200)), "the next epoch is whole, with the reader or without"


def test_a_reader_that_dies_before_it_begins_a_claimed_split_is_named_too():
    killed = []

    def kill(work, reader):
        if reader is work.readers[1] and not killed:
            killed.append(reader)
            c.kill("reader", 1)
    with readers() as c, before_a_split_begins(kill), tw.data.range(200).distribute(target(c), name="claimed", prefetch=1).iterator() as i:
        found, told = rest(i)
        assert killed and len(told) == 1 and "/job:reader/task:1" in told[0], told
        assert len(found) == len(set(found)) and 200 - 4 <= len(found) < 200, "the claimed split is lost"


def test_who_joins_an_epoch_may_meet_readers_that_are_not_there_yet():
    gate = threading.Event()
    with readers() as c:
        data = tw.data.range(100).distribute(target(c), name="joins", prefetch=1)
        with data.iterator() as first, data.iterator() as late:
            assert sorted(rest(first)[0]) == list(range(100))
            with before_a_split_begins(lambda work, reader: work is first._work and reader is work.readers[1] and gate.wait()):
                try:
                    first.reset(1)
                    found = [int(next(first))]  # of reader 0
                    assert late.join() == 1
                    found += rest(late)[0]
                finally:
                    gate.set()
                assert sorted(found + rest(first)[0]) == list(range(100))


def test_losses_are_passed_over_when_the_program_wants_to_go_on():
    with readers() as c, tw.data.range(100).distribute(target(c), name="on", prefetch=1, on_loss="continue").iterator() as i:
        found = [int(next(i)) for _ in range(10)]
        c.kill("reader", 1)
        found += map(int, i)
        assert len(found) == len(set(found)) and len(found) >= 90


def test_the_loss_of_the_reader_that_hands_out_splits_is_told_in_each_call():
    with readers() as c, tw.data.range(1000).distribute(target(c, 1), name="table", prefetch=1).iterator() as i:
        next(i)
        c.kill("reader", 0)
        told = []
        while not any("hands out the splits" in e for e in told):
            try:
                assert next(i, None) is not None, "the epoch ended, though its splits are lost"
            except tw.UnavailableError as e:
                told.append(str(e))
        fails(lambda: next(i), tw.UnavailableError, "hands out the splits", "/job:reader/task:0", "reset")
        c.start("reader", 0)
        i.reset(0)
        assert sorted(map(int, i)) == list(range(1000)), "the epoch begins again, without what is left of splits from before"
        i.reset(1)
        assert sorted(map(int, i)) == list(range(1000))


def test_each_trainer_is_told_of_the_loss_of_the_reader_that_hands_out_splits():
    with readers() as c:
        data = tw.data.range(500).distribute(target(c, 1), name="tables", prefetch=1)
        with data.iterator() as one, data.iterator() as other:
            next(one), next(other)
            c.kill("reader", 0)
            c.start("reader", 0)
            for i in one, other:
                told = ""
                while "splits" not in told or "reset" not in told:
                    try:
                        assert next(i, None) is not None, "the epoch ended, though its splits are lost"
                    except tw.UnavailableError as e:
                        told = str(e)
            one.reset(0)
            other.reset(0)
            assert every(Takers([one, other]).join()) == list(range(500))


def test_a_trainer_that_is_killed_takes_what_it_has_and_nothing_else():
    program = ("import sys, thalweg as tw; tw.load_plugin(sys.argv[1]); "
               "i = tw.data.range(200).distribute(sys.argv[2], name='killed', prefetch=1).iterator()\n"
               "for x in i: print(int(x), flush=True); sys.stdin.readline()")
    with readers() as c, tw.data.range(200).distribute(target(c), name="killed", prefetch=1).iterator() as i:
        with subprocess.Popen([sys.executable, "-c", program, TRANSPORT, target(c)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            theirs = []
            for _ in range(10):
                theirs.append(int(p.stdout.readline()))
                p.stdin.write("\n")
                p.stdin.flush()
            found = [int(next(i))]
            p.kill()
        found += map(int, i)
        both = found + theirs
        assert len(both) == len(set(both)) and len(both) >= 200 - 2 * len(c.address["reader"]) - 1, len(both)


# ---- Exactly once, with deaths ----

def write_files(folder, n, size):
    names = []
    for k in range(n):
        names.append(str(pathlib.Path(folder) / f"{k}.tfrecord"))
        with tw.data.RecordWriter(names[-1]) as w:
            for j in range(size):
                w.write(b"%d" % (size * k + j))
    return names


class Trainers:
    """Processes of data_trainer.py, which go on from their checkpoints when they are started again."""

    def __init__(self, c, files, epochs, trainers, before=0, stop_after=None):
        self.c, self.n, self.processes = c, trainers, {}
        self.how = dict(transport=TRANSPORT, target=target(c), name="exact", files=files, folder=str(c.folder), trainers=trainers, epochs=epochs,
                        before=before, stop_after=stop_after)

    def start(self, t):
        self.processes[t] = subprocess.Popen([sys.executable, "-B", TRAINER, json.dumps({**self.how, "trainer": t})],
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self, t):
        """Waits for the next line of a trainer, and lets it go on: the number of its next example, or None when it is done."""
        process = self.processes[t]
        line = process.stdout.readline().strip()
        assert line, f"trainer {t} ended with status {process.wait()}"
        if line == "done":
            return None
        process.stdin.write("\n")
        process.stdin.flush()
        return int(line)

    def kill(self, t):
        process = self.processes.pop(t)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.forget(process)

    def end(self, t):
        while self.line(t) is not None:
            pass
        process = self.processes.pop(t)
        assert process.wait() == 0
        self.forget(process)

    @staticmethod
    def forget(process):
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()

    def seen(self):
        return [tuple(x) for t in range(self.n) for x in json.loads((self.c.folder / f"{self.n}-{t}.json").read_text())["seen"]]

    def close(self):
        for t in list(self.processes):
            self.kill(t)


@contextlib.contextmanager
def trainers(*args, **how):
    all = Trainers(*args, **how)
    try:
        yield all
    finally:
        all.close()


def test_each_example_is_seen_exactly_once_over_kills_of_readers_and_trainers():
    drawn, epochs, files, size = random.Random(4), 2, 6, 4 + KILLS
    with readers() as c:
        with trainers(c, write_files(c.folder, files, size), epochs, 2) as all:
            for t in range(2):
                all.start(t)
            for kill in range(KILLS):
                t = drawn.randrange(2)
                for _ in range(drawn.randrange(1, 5)):
                    if all.line(t) is None:
                        raise AssertionError("the training ended before the kills did; give it more examples")
                if kill % 2:
                    k = drawn.randrange(2)
                    c.kill("reader", k)
                    c.start("reader", k)
                else:
                    all.kill(t)
                    all.start(t)
            for t in range(2):
                all.end(t)
            expected = sorted((e, x) for e in range(epochs) for x in range(files * size))
            assert sorted(all.seen()) == expected


def test_readers_may_become_more_and_fewer():
    orders = []
    with readers(3) as c:
        data = tw.data.range(60).shuffle(7, seed=1).distribute(target(c), name="number", mode="exactly_once", seed=2, wait=30)
        with data.iterator() as i:
            orders.append([int(x) for x in i])
            i.reset(0)
            half = [int(next(i)) for _ in range(30)]
            c.kill("reader", 1)
            c.kill("reader", 2)
            orders.append(half + [int(x) for x in i])
            position = i.save()
        c.start("reader", 2)
        with data.iterator() as i:
            i.restore(position)
            assert next(i, None) is None
            i.reset(0)
            orders.append([int(x) for x in i])
    assert sorted(orders[0]) == list(range(60)) and orders[0] == orders[1] == orders[2]


def test_each_example_is_seen_exactly_once_when_the_number_of_trainers_changes():
    with readers() as c:
        files, seen, before = write_files(c.folder, 6, 5), [], 0
        for n, stop in ((2, 8), (3, 5), (1, None)):
            with trainers(c, files, 2, n, before=before, stop_after=stop) as all:
                for t in range(n):
                    all.start(t)
                for t in range(n):
                    all.end(t)
                seen += all.seen()
            before = n
        assert sorted(seen) == sorted((e, x) for e in range(2) for x in range(30)), "an example is missing, or came twice"


def test_no_reader_at_all_is_an_error_after_the_wait():
    with readers(2) as c:
        data = tw.data.range(50).distribute(target(c), name="none", mode="exactly_once", wait=0.5, prefetch=1)
        with data.iterator() as i:
            next(i)
            c.kill("reader", 0)
            c.kill("reader", 1)
            text = str(fails(lambda: list(i), tw.Error))
            assert "/job:reader/task:" in text, text


if __name__ == "__main__":
    run_tests(globals(), sys.argv[3:])
