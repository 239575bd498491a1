"""Training by several replicas, tables in shards, what saves them, in one process; over processes: tests/distributed/training_test.py."""
import threading
import time

import numpy as np
import pytest

import thalweg as tw

CLASSES, WIDTH = 10, 4


def test_variables_are_spread_in_turn_or_by_size():
    turns, sizes = tw.Spread("ps", 2), tw.Spread("ps", 2, by_size=True)
    assert [turns.next(1)[-1] for _ in range(3)] == ["0", "1", "0"]
    assert [sizes.next(n) for n in (10, 2, 3)] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1"]
    assert [sizes.bytes(k) for k in range(3)] == [10, 5, 0]
    with tw.Graph(), turns.device(4):
        assert tw.Variable(1.0).handle.operation.device == "/job:ps/task:1"
    with pytest.raises(tw.InvalidArgumentError, match="tasks is 0"):
        tw.Spread("ps", 0)


# ---- A trainer with parameter servers ----

@pytest.fixture
def worker(monkeypatch):
    """Worker 1 of two, with two servers that nobody has started."""
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"ps": ["grpc:a:1", "grpc:a:2"], "worker": ["grpc:a:3", "grpc:a:4"]}, '
                       '"task": {"type": "worker", "index": 1}}')
    monkeypatch.setenv("THALWEG_TARGET", "grpc:a:4")
    return tw.ParameterServers()


def test_variables_are_on_the_servers_and_the_rest_is_not(worker):
    assert (worker.worker, worker.workers, worker.servers, worker.target) == (1, 2, 2, "grpc:a:4")
    with tw.Graph() as g, worker.variables(g):
        net = tw.nn.Sequential(tw.nn.Dense(3, "relu"), tw.nn.LSTM(4, projection=2))
        y = net(tw.placeholder("float32", [None, 5, 2]))
        with tw.name_scope("own"):
            own = tw.Variable(np.zeros(3, np.float32))
        with worker.step(g):
            tw.train.Adam(0.1).minimize(y.sum())
    devices = {v.name: v.handle.operation.device for v in g.variables()}
    assert devices["sequential/dense/kernel"] == devices["sequential/dense/bias"] == "/job:ps/task:0"
    assert {devices[v.name] for v in net.parts[1].parameters()} <= {"/job:ps/task:0", "/job:ps/task:1"} and own.name == "own/Variable"
    assert all(device.startswith("/job:ps/task:") for device in devices.values())
    for name, device in devices.items():  # the state of an optimizer is beside its variable
        parts = [v for v in (*net.parameters(), own) if name.startswith(v.name)]
        assert all(device == v.handle.operation.device for v in parts)
    assert y.operation.device == "" and {o.device for o in g.operations() if o.type == "MatMul"} == {""}
    assert worker.share(np.arange(5), "abcde") == (pytest.approx([1, 3]), "bd")


@pytest.mark.parametrize("how", [dict(clip=1.0), dict(sub_batches=2), dict(sub_batches=2, clip=1.0)])
def test_gradients_are_clipped_and_accumulated_in_the_worker(worker, monkeypatch, how):
    def no_session(*_, **__):
        raise NotImplementedError

    monkeypatch.setattr("thalweg.trainer.Session", no_session)
    net = tw.nn.Sequential(tw.nn.Dense(4, "relu"), tw.nn.BatchNorm(), tw.nn.Dense(2))
    trainer = tw.train.Trainer(net, "mean_squared_error", lambda: tw.train.Adam(tw.schedules.exponential(0.1, 9, 0.9)), servers=worker, **how)
    with pytest.raises(NotImplementedError):
        trainer.build(np.zeros((2, 3), np.float32), np.zeros((2, 2), np.float32))
    devices = {}
    for operation in trainer.graph.operations():
        devices.setdefault(operation.type, set()).add(operation.device)
    assert devices["ResourceApplyAdam"] == {"/job:ps/task:0", "/job:ps/task:1"}
    if "clip" in how:
        assert devices["L2Loss"] == {""}
    if "sub_batches" in how:
        assert devices["ResourceConditionalAccumulator"] == {""}
    count, = (v for v in trainer.graph.variables() if v.name == "global_step")
    assert count.handle.operation.device == "/job:ps/task:0"


def test_what_servers_cannot_do_is_told(worker, monkeypatch):
    with pytest.raises(ValueError, match="averages are of one process"):
        tw.train.Trainer(tw.nn.Dense(1), "mean_squared_error", tw.train.SGD(), averages=0.9, servers=worker)
    with pytest.raises(ValueError, match="target is 'grpc:b:1', but servers say where the session is: grpc:a:4; leave target out"):
        tw.train.Trainer(tw.nn.Dense(1), "mean_squared_error", tw.train.SGD(), servers=worker, target="grpc:b:1")
    trainer = tw.train.Trainer(tw.nn.Dense(1), "mean_squared_error", tw.train.SGD(), servers=worker)
    for options in (dict(folder="here"), dict(keep_best=True)):
        with pytest.raises(ValueError, match="checkpoints and the best weights are of one process"):
            trainer.fit((np.ones((2, 1), np.float32), np.ones((2, 1), np.float32)), **options)
    monkeypatch.delenv("TF_CONFIG")
    with pytest.raises(ValueError, match="no worker of a cluster with a job 'ps'; start the program by `thalweg launch"):
        tw.ParameterServers()


# ---- Replicas ----

class Replica:
    def __init__(self, number, replicas, container, required=None):
        with tw.Graph() as graph:
            self.x = tw.placeholder("float32", [None, 3], name="x")
            w = tw.Variable(np.ones((3, 1), np.float32), name="w")
            self.loss = (tw.ops.mat_mul(self.x, w) - 1.0).reshape(-1)
            self.loss = (self.loss * self.loss).mean()
            self.sync = tw.SyncReplicas(tw.train.Adam(0.1), replicas, number, required=required).minimize(self.loss, clip=10.0)
            self.w = w
        self.session = tw.Session(graph, container=container)
        self.number = number

    def feeds(self, step):
        return {self.x: np.random.default_rng([self.number, step]).standard_normal((4, 3)).astype(np.float32)}


def train(container, folder, replicas=3, steps=8, pauses=(0, 0, 0)):
    """The losses of each replica by step, and the weights."""
    all = [Replica(i, replicas, container) for i in range(replicas)]
    losses = [{} for _ in all]

    def run(replica, found, pause):
        training = tw.SyncTraining(replica.session, replica.sync, folder, chief=replica.number == 0, every_steps=3, wait=20)

        def feeds(step):
            time.sleep(pause)
            return replica.feeds(step)

        for step, loss in training.run(steps, replica.loss, feeds):
            found[step] = loss

    threads = [threading.Thread(target=run, args=a) for a in zip(all, losses, pauses)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    return losses, all[0].session.run(all[0].w)


def test_synchronous_training_does_not_depend_on_who_is_fast(tmp_path):
    first = train("sync0", tmp_path / "a")
    assert all(sorted(found) == list(range(8)) for found in first[0])
    for i, pauses in enumerate([(0.01, 0, 0.005), (0, 0.01, 0)]):
        again = train(f"sync{i + 1}", tmp_path / f"b{i}", pauses=pauses)
        assert again[0] == first[0] and np.array_equal(again[1], first[1])


def test_a_program_that_begins_anew_goes_on_beside_a_step_of_the_one_before(tmp_path):
    whole, _ = train("sync-alone", tmp_path, replicas=1, steps=3)
    chief = Replica(0, 1, "sync-beside")
    chief.session.run(chief.session.graph.initializer())
    ticket = np.array([7, 0], np.int64)
    chief.session.run(chief.sync.reset, {chief.sync.ticket: ticket})
    for step in range(3):
        before = [Replica(0, 1, "sync-beside") for _ in range(2)]
        left = [r.session.run_async(r.sync.next, {r.sync.ticket: ticket, **r.feeds(step)}, timeout=20) for r in before]
        time.sleep(0.2)
        now = Replica(0, 1, "sync-beside")
        assert np.array_equal(now.session.run(now.sync.current, timeout=10), ticket)  # not behind what those wait for
        assert all(np.array_equal(s.result(), ticket) for s in left)
        going = now.session.run_async([now.loss, now.sync.next], {now.sync.ticket: ticket, **now.feeds(step)}, timeout=20)
        time.sleep(0.05)
        assert not going.done()  # nothing of `current` is left
        chief.session.run(chief.sync.update, timeout=10)
        loss, ticket = going.result()
        assert loss == whole[0][step] and list(ticket) == [8 + step, 1 + step]


def test_who_waits_for_a_replica_that_has_left_is_told_in_time_and_goes_on_when_it_is_back(tmp_path):
    whole, _ = train("sync-all", tmp_path / "all", replicas=2)

    def run(i, steps, found, leaves=False, **how):  # as a program that is started anew
        replica = Replica(i, 2, "sync-left")
        training = tw.SyncTraining(replica.session, replica.sync, tmp_path / "left", chief=i == 0, every_steps=3, **how)
        for step, loss in training.run(steps, replica.loss, replica.feeds):
            found[step] = loss
            if leaves and step == 2:
                return

    left, alone = {}, {}
    leaves = threading.Thread(target=run, args=(1, 8, left, True), kwargs={"wait": 20})
    leaves.start()
    began = time.monotonic()
    with pytest.raises(tw.DeadlineExceededError):
        run(0, 8, alone, wait=1, timeout=0.5)
    assert time.monotonic() - began < 10 and max(alone) < 4 and alone == {step: whole[0][step] for step in alone}
    leaves.join()
    back = threading.Thread(target=run, args=(1, 8, left), kwargs={"wait": 20})
    back.start()
    run(0, 8, alone, wait=20)
    back.join()
    assert alone == whole[0] and left == whole[1]


def test_a_step_whose_gradients_were_given_before_says_nothing_of_variables_that_have_changed(tmp_path):
    whole, _ = train("sync-unbroken", tmp_path / "whole", replicas=2)
    replicas, found = [Replica(i, 2, "sync-again") for i in range(2)], [{}, {}]
    given, made = threading.Event(), threading.Event()  # the gradients of step 3 by replica 1, and its update

    def waits(step):
        if step == 3:
            assert given.wait(20)
        if step == 4:
            made.set()
        return replicas[0].feeds(step)

    def gives_and_dies(step):  # between asking for the ticket and using it, as a program before this one would
        if step == 3 and not given.is_set():
            replica = replicas[1]
            with pytest.raises(tw.DeadlineExceededError):
                replica.session.run(replica.sync.next, {replica.sync.ticket: replica.session.run(replica.sync.current),
                                                        **replica.feeds(step)}, timeout=0.2)
            given.set()
            assert made.wait(20)
        return replicas[1].feeds(step)

    def run(i, feeds):
        training = tw.SyncTraining(replicas[i].session, replicas[i].sync, tmp_path / "again", chief=i == 0, every_steps=3, wait=20)
        for step, loss in training.run(8, replicas[i].loss, feeds):
            found[i][step] = loss

    threads = [threading.Thread(target=run, args=a) for a in enumerate([waits, gives_and_dies])]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert found[0] == whole[0]
    assert found[1] == {step: loss for step, loss in whole[1].items() if step != 3}


def test_an_update_that_another_chief_left_on_its_way_is_noticed_before_anything_is_saved(tmp_path):
    whole, weights = train("sync-one", tmp_path / "one", replicas=1)
    chief, before = Replica(0, 1, "sync-two"), Replica(0, 1, "sync-two")
    left = []

    def feeds(step):
        if step == 4 and not left:
            left.append(before.session.run_async(before.sync.update, timeout=20))
            time.sleep(0.3)  # it stands in line behind that of the chief
        return chief.feeds(step)

    training = tw.SyncTraining(chief.session, chief.sync, tmp_path / "two", chief=True, every_steps=3, wait=20, timeout=10)
    found = dict(training.run(8, chief.loss, feeds))
    left[0].result()
    assert found == whole[0] and training.restores >= 1
    assert np.array_equal(chief.session.run(chief.w), weights)


def test_a_chief_in_whose_place_another_has_begun_says_so_and_touches_nothing(tmp_path):
    first, second = Replica(0, 1, "sync-rivals"), Replica(0, 1, "sync-rivals")
    with second.session.graph:
        state = tw.ops.var_handle_op(dtype="int64", shape=[-1], shared_name="sync/state")
        begun = tw.ops.assign_variable_op(state, tw.ops.read_variable_op(state, dtype="int64") + np.array([10**9, 0, 0, 0, 0], np.int64))
    told = []

    def feeds(step):
        if step == 4 and not told:
            second.session.run(begun)
            told.append(training.restores)
        return first.feeds(step)

    training = tw.SyncTraining(first.session, first.sync, tmp_path, chief=True, every_steps=3, wait=20, timeout=2)
    with pytest.raises(tw.AlreadyExistsError, match="another chief has begun since this one has"):
        list(training.run(5, first.loss, feeds))
    assert told == [training.restores]


def test_a_stamp_is_above_those_that_were_also_where_the_clock_has_gone_back(tmp_path, monkeypatch):
    train("sync-clock", tmp_path / "a", replicas=1, steps=3)
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    chief = Replica(0, 1, "sync-clock")
    training = tw.SyncTraining(chief.session, chief.sync, tmp_path / "a", chief=True, every_steps=3, wait=20)
    at = []

    def feeds(step):
        at.append(chief.session.run(chief.sync.current)[0])
        return chief.feeds(step)

    assert [step for step, _ in training.run(6, chief.loss, feeds)] == [3, 4, 5]
    assert at[0] > 10**15 and at == sorted(set(at))


@pytest.mark.parametrize("given", [(6, 3), (3, 6)])
def test_programs_with_different_numbers_of_steps_are_told_both_and_nobody_waits_for_ever(tmp_path, given):
    failed = [None, None]

    def run(i):
        replica = Replica(i, 2, f"sync-unlike-{given[0]}")
        training = tw.SyncTraining(replica.session, replica.sync, tmp_path, chief=i == 0, wait=1, timeout=1)
        try:
            list(training.run(given[i], replica.loss, replica.feeds))
        except tw.Error as e:
            failed[i] = e

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads)
    assert isinstance(failed[0], tw.DeadlineExceededError)  # its updates lack the other's gradients
    assert isinstance(failed[1], tw.FailedPreconditionError)
    assert f"replica 1 is to make {given[1]} steps, and the chief {given[0]}; give all the same number" in str(failed[1])


def test_a_replica_whose_chief_is_gone_before_its_last_save_is_told_so_in_time(tmp_path):
    chief, replica = Replica(0, 2, "sync-headless"), Replica(1, 2, "sync-headless")
    training = [tw.SyncTraining(r.session, r.sync, tmp_path, chief=False, wait=0.5, timeout=0.5) for r in (chief, replica)]
    training[0]._reset(3)
    chief.session.run(chief.sync.reset, {chief.sync.ticket: np.array([9, 3], np.int64)})  # as after the third update
    began = time.monotonic()
    with pytest.raises(tw.DeadlineExceededError, match="training 'sync': all 3 steps are made, but the chief"):
        list(training[1].run(3, replica.loss, replica.feeds))
    assert time.monotonic() - began < 15


def test_training_goes_on_from_the_last_checkpoint(tmp_path):
    whole = train("sync-whole", tmp_path / "whole")
    train("sync-part", tmp_path / "part", steps=5)
    rest = train("sync-rest", tmp_path / "part")
    assert all(sorted(found) == [5, 6, 7] for found in rest[0])
    assert all(found[step] == expected[step] for found, expected in zip(rest[0], whole[0]) for step in found)
    assert np.array_equal(rest[1], whole[1])


def test_what_no_replica_can_be_is_refused():
    with tw.Graph():
        w = tw.Variable(1.0, name="w")
        with pytest.raises(tw.InvalidArgumentError, match="replica is 2"):
            tw.SyncReplicas(tw.train.SGD(), 2, 2).minimize(w.read() * 2.0)
        with pytest.raises(ValueError, match="no gradients"):
            tw.SyncReplicas(tw.train.SGD(), 2, 0).apply([None], [w])


def test_what_keeps_failing_ends_the_training(tmp_path):
    replica = Replica(1, 2, "nobody-begins")
    training = tw.SyncTraining(replica.session, replica.sync, tmp_path, chief=False, wait=0.2)
    with pytest.raises(tw.FailedPreconditionError, match="sync/state"):
        list(training.run(3, replica.loss, replica.feeds))


def test_a_save_that_fails_on_the_way_does_not_end_the_training(tmp_path):
    replica, failed = Replica(0, 1, "full-disk"), []
    training = tw.SyncTraining(replica.session, replica.sync, tmp_path, chief=True, every_steps=2, wait=20)

    def step(number):
        failed.append(number)
        raise tw.ResourceExhaustedError("no space left on device")

    training._folder().step = step
    assert len(list(training.run(5, replica.loss, replica.feeds))) == 5
    assert failed == [1, 2, 3, 4] and tw.latest_checkpoint(tmp_path).endswith("-5")


def test_a_last_save_takes_the_time_that_it_takes(tmp_path):
    replica = Replica(0, 1, "slow-disk")
    training = tw.SyncTraining(replica.session, replica.sync, tmp_path, chief=True, every_steps=100, wait=1, timeout=1)
    save = training._folder().save

    def slow(number):
        time.sleep(4)
        return save(number)

    training._folder().save = slow
    assert len(list(training.run(2, replica.loss, replica.feeds))) == 2
    assert tw.latest_checkpoint(tmp_path).endswith("-2")


def test_whatever_ends_the_chief_ends_its_replica(tmp_path):
    replica = Replica(0, 1, "no-disk")
    training = tw.SyncTraining(replica.session, replica.sync, tmp_path, chief=True, every_steps=100, wait=1, timeout=1)

    def fail(number):
        raise OSError("the disk has gone")

    training._folder().save = fail
    with pytest.raises(OSError, match="the disk has gone"):
        list(training.run(2, replica.loss, replica.feeds))


def test_asynchronous_training_begins_heals_and_saves(tmp_path):
    def make(container):
        with tw.Graph() as graph:
            w = tw.Variable(np.float32(4), name="w")
            loss = w.read() * w.read()
            count = tw.schedules.global_step()
            step = tw.train.SGD(0.1).minimize(loss)
        session = tw.Session(graph, container=container)
        return session, w, loss, tw.AsyncTraining(session, step, count, tmp_path, chief=True, every_steps=2)

    session, w, loss, training = make("async")
    found = [value for _, value in training.run(6, loss, lambda step: {})]
    assert found == sorted(found, reverse=True) and len(found) >= 6
    assert tw.latest_checkpoint(tmp_path)
    reached = session.run(w)
    again, w, loss, training = make("async-again")  # where nothing is, as on a server that was started again
    _, first = next(training.run(100, loss, lambda step: {}))
    assert training.restores == 1 and first == reached * reached


# ---- Tables ----

def values(shape, rows):
    return np.array([[10 * i + j for j in range(WIDTH)] for i in rows], np.float32).reshape(shape)


@pytest.mark.parametrize("partition", ["mod", "div"])
@pytest.mark.parametrize("shards", [1, 3])
def test_rows_are_those_of_the_table(partition, shards, tmp_path):
    whole = values([CLASSES, WIDTH], range(CLASSES))
    ids = np.array([[3, 9], [0, 3]], np.int32)
    with tw.Graph() as graph:
        table = tw.ShardedTable(CLASSES, WIDTH, shards, name="table", partition=partition, initial=values)
        found = table.lookup(ids)
        step = tw.train.SGD(1.0).minimize(found.reshape(-1).sum())
        every = table.lookup(np.arange(CLASSES, dtype=np.int64))
    with tw.Session(graph, container=f"table-{partition}-{shards}") as session:
        session.run(graph.initializer())
        assert np.array_equal(session.run(found), whole[ids])
        session.run(step)
        changed = session.run(every)
        assert np.array_equal(changed, whole - np.bincount(ids.reshape(-1), minlength=CLASSES)[:, None])
        tw.Saver().save(session, tmp_path / "model")
    with tw.Graph() as other:
        again = tw.ShardedTable(CLASSES, WIDTH, 2, name="table", partition=partition)
        every = again.lookup(np.arange(CLASSES, dtype=np.int64))
    with tw.Session(other, container=f"other-{partition}-{shards}") as session:
        session.run(other.initializer())
        tw.Saver().restore(session, tmp_path / "model")
        assert np.array_equal(session.run(every), changed)


def test_both_softmaxes_learn_the_right_class():
    hidden, labels = np.eye(3, WIDTH, dtype=np.float32), np.array([1, 4, 7])
    with tw.Graph() as graph:
        weights = tw.ShardedTable(CLASSES, WIDTH, 2, name="weights")
        biases = tw.ShardedTable(CLASSES, (), 2, name="biases", initial=lambda shape, rows: np.zeros(shape, np.float32))
        full = tw.sharded_softmax(weights, biases, labels, hidden).mean()
        sampled = tw.sharded_sampled_softmax(weights, biases, labels.reshape(-1, 1), hidden, 6, seed=3).mean()
        steps = [tw.train.SGD(1.0).minimize(loss) for loss in (full, sampled)]
    for i, step in enumerate(steps):
        with tw.Session(graph, container=f"softmax{i}") as session:
            session.run(graph.initializer())
            before = session.run(full)
            assert abs(before - np.log(CLASSES)) < 0.2
            for _ in range(60):
                session.run(step)
            assert session.run(full) < before / 2


def test_what_is_no_table_is_refused():
    with tw.Graph():
        with pytest.raises(ValueError, match="cannot be in 4 shards"):
            tw.ShardedTable(3, 1, 4, name="t")
        with pytest.raises(ValueError, match="'mod' or 'div'"):
            tw.ShardedTable(3, 1, 2, name="t", partition="hash")
        with pytest.raises(ValueError, match="1 devices for 2 shards"):
            tw.ShardedTable(3, 1, 2, name="t", devices=["/job:ps/task:0"])


def test_a_saver_by_task_knows_whose_variables_are_whose(tmp_path):
    with tw.Graph() as graph:
        tw.Variable(1.0, name="a")
    with tw.Session(graph, container="by-task") as session:
        session.run(graph.initializer())
        saver = tw.Saver(by_task=True)
        assert saver.tasks(session) == {"": ["a"]} and tw.Saver().tasks(session) == {}
        saver.save(session, tmp_path / "model")
        saver.restore(session, tmp_path / "model", task="")
        assert sorted(f.name for f in tmp_path.iterdir() if "part" in f.name) == []
        with pytest.raises(ValueError, match="nothing of task '/job:ps/task:0' by itself"):
            saver.restore(session, tmp_path / "model", task="/job:ps/task:0")
