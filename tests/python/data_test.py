"""Datasets: elements and their order against Python's own lists, positions, errors."""
import gc
import gzip
import math
import os
import pathlib
import signal
import struct
import subprocess
import sys
import threading
import zlib

import numpy as np
import pytest
import records

import thalweg as tw
from thalweg import data


def values(dataset):
    """Its elements as Python's lists and numbers."""
    def plain(x):
        if isinstance(x, tuple):
            return tuple(map(plain, x))
        if isinstance(x, dict):
            return {k: plain(v) for k, v in x.items()}
        return x.numpy().tolist()
    return [plain(x) for x in dataset]


# ---- The order of a shuffle, from its description (plugins/data/shuffle.cc) ----

MASK = (1 << 64) - 1


def mixed(x):
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


def combined(a, b):
    return mixed(mixed(a + 0x9e3779b97f4a7c15 & MASK) ^ b)


def shuffled(elements, size, seed, epoch=0, each_pass=True):
    state = combined(seed & MASK, 0)
    state = combined(state, epoch) if each_pass else state
    left, buffer, out = list(elements), [], []
    while left or buffer:
        while left and len(buffer) < size:
            buffer.append(left.pop(0))
        state = state + 0x9e3779b97f4a7c15 & MASK
        k = mixed(state) * len(buffer) >> 64
        out.append(buffer[k])
        last = buffer.pop()
        if k < len(buffer):
            buffer[k] = last
    return out


# ---- Elements ----

@pytest.mark.parametrize("size", [1, 2, 7, 50, 1000])
def test_a_shuffle_has_the_order_of_its_description(size):
    assert values(data.range(50).shuffle(size, seed=7)) == shuffled(range(50), size, 7)


def test_each_epoch_and_each_pass_has_an_order_of_its_own():
    d = data.range(20).shuffle(20, seed=3)
    epochs = [shuffled(range(20), 20, 3, e) for e in range(3)]
    assert len(set(map(tuple, epochs))) == 3
    assert values(d.repeat(3)) == sum(epochs, [])
    i = d.iterator()
    for e in (2, 0, 1):
        i.reset(e)
        assert [int(x) for x in i] == epochs[e]
    same = data.range(20).shuffle(20, seed=3, each_pass=False)
    assert values(same.repeat(2)) == 2 * shuffled(range(20), 20, 3, each_pass=False)


def test_numbers():
    for args in ((5,), (2, 9), (0, 10, 3), (10, 0, -3), (3, 3), (5, 2), (-4, 4, 5), (0, -1, -1)):
        assert values(data.range(*args)) == list(range(*args)), args
    assert data.range(10, 0, -3).iterator().n_elements == 4


def test_rows_of_arrays_in_their_structure():
    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([b"a", b"", b"ccc", b"d"], object)
    assert values(data.arrays(x)) == x.tolist()
    assert values(data.arrays(x, y)) == list(zip(x.tolist(), y.tolist()))
    assert values(data.arrays({"x": x, "y": (y, y)}))[2] == {"x": [6, 7, 8], "y": (b"ccc", b"ccc")}
    assert data.arrays({"x": x, "y": y}).spec == {"x": (tw.float32, (3,)), "y": (tw.string, ())}
    with pytest.raises(ValueError, match="component 0 is a scalar"):
        values(data.arrays(3.0))
    with pytest.raises(tw.InvalidArgumentError, match="4 and 3 rows"):
        values(data.arrays(x, np.zeros(3)))


def test_which_elements():
    d, n = data.range(10), list(range(10))
    assert values(d.take(3)) == n[:3] and values(d.take(99)) == n and values(d.take(-1)) == n and values(d.take(0)) == []
    assert values(d.skip(3)) == n[3:] and values(d.skip(10)) == [] and values(d.skip(-1)) == []
    assert [values(d.shard(3, i)) for i in range(3)] == [n[i::3] for i in range(3)]
    assert values(d.take(2).repeat(3)) == n[:2] * 3 and values(d.repeat(0)) == [] and values(d.repeat().take(25)) == (n * 3)[:25]
    assert values(d.take(0).repeat()) == []
    assert values(d.take(2).concatenate(d.skip(8))) == [0, 1, 8, 9]
    assert values(data.zip(d, d.skip(7))) == list(zip(n, n[7:]))
    assert values(d.filter(lambda x: x % 3 == 0)) == n[::3]
    assert values(d.take_while(lambda x: x < 4)) == n[:4]
    assert values(d.scan(np.int64(1), lambda s, x: (s * 2, s + x))) == [2 ** k + k for k in n]
    with pytest.raises(tw.InvalidArgumentError, match="'index' is 3"):
        values(d.shard(3, 3))
    with pytest.raises(TypeError, match="same types and structure"):
        values(d.concatenate(data.arrays(np.zeros(3))))
    with pytest.raises(TypeError, match="one truth value"):
        values(d.filter(lambda x: x))


def test_batches_and_rows():
    d, n = data.range(7), list(range(7))
    assert values(d.batch(3)) == [n[:3], n[3:6], n[6:]]
    assert values(d.batch(3, drop_remainder=True)) == [n[:3], n[3:6]]
    assert d.batch(3).spec == (tw.int64, (None,)) and d.batch(3, drop_remainder=True).spec == (tw.int64, (3,))
    assert values(d.batch(3).unbatch()) == n
    assert values(data.arrays(np.array([[b"a"], [b"bb"]], object)).batch(2)) == [[[b"a"], [b"bb"]]]
    big = np.random.default_rng(1).normal(size=(40, 100, 101)).astype(np.float32)  # copied by several threads
    assert np.array_equal(next(data.arrays(big).batch(40).iterator()).numpy(), big)
    with pytest.raises(tw.InvalidArgumentError, match=r"component 0 .* element 0 is \[0\], element 1 is \[1\]; use padded_batch"):
        values(d.map(lambda x: tw.ops.fill(tw.ops.expand_dims(x, 0), x)).batch(2))
    with pytest.raises(tw.InvalidArgumentError, match="'batch_size' is 0"):
        values(d.batch(0))


def padded(rows, shape, fill):
    sizes = [max([r.shape[a] for r in rows]) if s is None else s for a, s in enumerate(shape)]
    out = np.full([len(rows), *sizes], fill, rows[0].dtype)
    for o, r in zip(out, rows):
        o[tuple(slice(n) for n in r.shape)] = r
    return out


@pytest.mark.parametrize("shape", [(None, None, None), (5, None, 6), (5, 5, 6)])
def test_padded_batches_like_numpy(shape):
    rng = np.random.default_rng(5)
    rows = [rng.normal(size=rng.integers(0, 6, 3)).astype(np.float32) for _ in range(9)]
    texts = [np.array([b"x" * int(k) for k in range(n)], object) for n in rng.integers(0, 4, 9)]
    d = data.generator(lambda: zip(rows, texts), ("float32", "string"), ((None, None, None), (None,)))
    got = list(d.padded_batch(4, shapes=(shape, (None,)), padding=(-1.5, b"pad")))
    assert len(got) == 3
    for k, (x, y) in enumerate(got):
        assert np.array_equal(x.numpy(), padded(rows[4 * k:4 * k + 4], shape, -1.5))
        assert np.array_equal(y.numpy(), padded(texts[4 * k:4 * k + 4], (None,), b"pad"))
    with pytest.raises(tw.InvalidArgumentError, match="larger than padded_shapes"):
        list(d.padded_batch(4, shapes=((1, 1, 1), (None,))))


def test_windows():
    def windows(n, size, shift, stride, drop):
        out = []
        for at in range(0, n, shift):
            w = list(range(at, min(n, at + (size - 1) * stride + 1), stride))
            if len(w) == size or not drop:
                out.append(w)
        return out
    for size, shift, stride, drop in ((3, 1, 1, True), (3, 1, 1, False), (2, 3, 2, False), (2, 5, 1, False), (3, 2, 2, True), (9, 4, 1, False)):
        d = data.range(8).window(size, shift, stride, drop).flat_map(lambda w: w.batch(100))
        assert values(d) == windows(8, size, shift, stride, drop), (size, shift, stride, drop)


def interleaved(n, length, cycle, block):
    places, todo, out, at = [], list(range(n)), [], 0
    places = [None] * cycle
    while True:
        live = False
        for _ in range(cycle):
            if places[at] is None and todo:
                k = todo.pop(0)
                places[at] = [(k, j) for j in range(length(k))]
            if places[at] is not None:
                live = True
                for _ in range(block):
                    if not places[at]:
                        places[at] = None
                        break
                    out.append(places[at].pop(0))
            at = (at + 1) % cycle
        if not live and not todo:
            return [100 * k + j for k, j in out]


@pytest.mark.parametrize("cycle,block", [(1, 1), (2, 1), (3, 2), (4, 5), (9, 1)])
def test_interleaved_datasets(cycle, block):
    d = data.range(6).interleave(lambda k: data.range(10).take_while(lambda j: j < k % 4).map(lambda j: 100 * k + j), cycle, block)
    assert values(d) == interleaved(6, lambda k: k % 4, cycle, block)
    if cycle == 1:
        flat = data.range(6).flat_map(lambda k: data.range(10).take_while(lambda j: j < k % 4).map(lambda j: 100 * k + j))
        assert values(flat) == [100 * k + j for k in range(6) for j in range(k % 4)]


@pytest.mark.parametrize("parallel", [1, 2, 5, data.AUTO])
def test_map_keeps_the_order_and_captures_values(parallel):
    scale = 7
    d = data.range(300).map(lambda x: (x * scale, {"text": tw.ops.as_string(x)} if hasattr(tw.ops, "as_string") else {"text": x}), parallel)
    assert [a for a, _ in values(d.batch(64).unbatch())] == [7 * k for k in range(300)]


def test_a_cache_reads_its_input_once():
    runs = []
    d = data.generator(lambda: (runs.append(0), iter(range(4)))[1], "int64", ()).cache()
    i = d.iterator()
    for epoch in range(3):
        i.reset(epoch)
        assert [int(x) for x in i] == [0, 1, 2, 3]
    assert len(runs) == 1


# ---- Positions ----

def pipelines(folder):
    names = [records.written(folder / f"{k}.tfrecord", [b"%d.%d" % (k, j) for j in range(9)]) for k in range(3)]
    r = data.range(37)
    yield "numbers", r
    yield "shuffle", r.shuffle(10, seed=2).repeat(2)
    yield "batch", r.shuffle(10, seed=2).map(lambda x: x * x, 4).batch(5)
    yield "filter", r.filter(lambda x: x % 2 == 0).skip(3).take(11).shard(2, 1)
    yield "records", data.files(str(folder / "*.tfrecord")).shuffle(8, seed=1).batch(4)
    yield "interleave", data.arrays(np.array(names, object)).interleave(lambda f: data.records(f), cycle=2, block_length=2)
    yield "windows", r.window(4, 3).flat_map(lambda w: w.batch(4)).padded_batch(2)
    yield "held windows", r.window(4, 3).shuffle(5, seed=1).flat_map(lambda w: w.batch(4))
    yield "scan", data.zip(r, r.scan(np.int64(0), lambda s, x: (s + x, s)))
    yield "cache", r.cache().repeat(2)
    yield "concatenate", r.take(3).concatenate(r.skip(30)).unbatch() if False else r.take(3).concatenate(r.skip(30))
    yield "rows", r.batch(5).unbatch().prefetch(3)
    yield "take_while", r.take_while(lambda x: x < 20).prefetch(2)
    yield "generator", data.generator(lambda: iter(range(12)), "int64", ()).shuffle(4, seed=1).prefetch()


def test_a_restored_iterator_goes_on_with_the_next_element(tmp_path):
    for name, d in pipelines(tmp_path):
        whole = values(d)
        assert len(whole) > 4, name
        for at in {0, 1, len(whole) // 2, len(whole) - 1, len(whole)}:
            i = d.iterator()
            before = [next(i) for _ in range(at)]
            position = i.save()
            assert values(i) == whole[at:], f"{name}: saving changes nothing"
            again = d.iterator()
            again.restore(position)
            assert again.save() == position, f"{name} at {at}: the position of a restored iterator"
            assert values(again) == whole[at:], f"{name} at {at}"
            del before


def test_positions_of_others_are_refused_and_change_nothing():
    i = data.range(9).shuffle(4, seed=1).iterator()
    first = int(next(i))
    other = data.range(9).shuffle(5, seed=1).iterator()
    whole = shuffled(range(9), 4, 1)
    for position, message in ((other.save(), "is of the dataset"), (b"", "no position"), (b"x" * 40, "no position"), (i.save()[:-1], "no position")):
        with pytest.raises(tw.InvalidArgumentError, match=message):
            i.restore(position)
    assert [first, *(int(x) for x in i)] == whole


def test_damaged_positions_are_refused(tmp_path):
    rng = np.random.default_rng(1)
    for name, d in pipelines(tmp_path):
        i = d.iterator()
        next(i), next(i)
        position = bytearray(i.save())
        for _ in range(40):
            bad = bytearray(position)
            for _ in range(int(rng.integers(1, 4))):
                bad[int(rng.integers(len(bad)))] = int(rng.choice([0, 1, 127, 255, rng.integers(256)]))
            if rng.integers(4) == 0:
                del bad[int(rng.integers(len(bad))):]
            try:
                i.restore(bytes(bad))
                for _ in range(3):
                    next(i, None)
            except tw.Error:
                pass
            i.restore(bytes(position))


# ---- In the steps of a graph, and checkpoints ----

def test_steps_take_elements_and_savers_save_the_position(tmp_path):
    d = data.range(20).shuffle(20, seed=5).batch(2)
    order = shuffled(range(20), 20, 5)

    def program():
        with tw.Graph() as g:
            steps, total = d.steps("input"), tw.Variable(np.int64(0), name="total")
            add = total.assign_add(steps.next.sum())
            saver = tw.Saver()
        return g, steps, total, add, saver

    g, steps, total, add, saver = program()
    with tw.Session(g) as s:
        s.run(g.initializer())
        with pytest.raises(tw.FailedPreconditionError, match="run MakeIterator"):
            s.run(add)
        s.run(steps.start)
        for _ in range(4):
            s.run(add)
        saver.save(s, str(tmp_path / "model"))
    g, steps, total, add, saver = program()
    with tw.Session(g) as s:
        s.run(g.initializer())
        saver.restore(s, str(tmp_path / "model"))
        assert s.run(total.read()) == sum(order[:8])
        with pytest.raises(tw.FailedPreconditionError, match="was restored"):
            s.run(add)
        s.run(steps.start)
        assert s.run(steps.next).tolist() == order[8:10]
        for _ in range(5):
            s.run(add)
        with pytest.raises(tw.OutOfRangeError, match="End of sequence"):
            s.run(add)
        assert s.run(total.read()) == sum(order) - sum(order[8:10])


def test_generators_in_the_steps_of_a_graph():
    with tw.Graph() as g:
        steps = data.generator(lambda: iter([[1], [2, 3]]), "int32", [None]).steps()
    with tw.Session(g) as s:
        s.run(steps.start)
        assert [s.run(steps.next).tolist() for _ in range(2)] == [[1], [2, 3]]
        with pytest.raises(tw.OutOfRangeError):
            s.run(steps.next)


# ---- Errors ----

def test_errors_name_what_is_wrong(tmp_path):
    with pytest.raises(tw.InvalidArgumentError, match="not a number|NaN|Inf"):
        values(data.range(5).map(lambda x: tw.ops.check_numerics(tw.ops.cast(x, DstT="float32") / 0.0, message="x")))
    bad = data.generator(lambda: iter([1, 2, "three"]), "int64", ())
    i = bad.iterator()
    assert [int(next(i)), int(next(i))] == [1, 2]
    with pytest.raises(tw.InvalidArgumentError, match="the generator raised"):
        next(i)
    with pytest.raises(FileNotFoundError, match="nothing"):
        data.files(str(tmp_path / "nothing*"))
    with pytest.raises(tw.NotFoundError, match="gone"):
        values(data.records(str(tmp_path / "gone")))
    with pytest.raises(TypeError, match="no function"):
        values(data.range(3).map(3))
    with pytest.raises(TypeError, match="must give a Dataset"):
        values(data.range(3).flat_map(lambda x: x))


@pytest.mark.parametrize("calls", [(1,), (3,), ()])
def test_an_error_of_an_element_leaves_the_other_elements(calls):
    d = data.range(6).map(lambda x: tw.ops.gather_v2([9, 0, 1, 9, 2, 9], x, 0), *calls).map(lambda x: tw.ops.gather_v2([10, 11, 12], x, 0), *calls)
    i = d.iterator(prefetch=0)
    for expected in (None, 10, 11, None, 12, None):
        again = d.iterator(prefetch=0)
        again.restore(i.save())
        for it in (i, again):
            if expected is None:
                with pytest.raises(tw.InvalidArgumentError):
                    next(it)
            else:
                assert int(next(it)) == expected
    assert next(i, None) is None


def test_a_failure_of_the_input_keeps_the_elements_before_it():
    i = data.generator(lambda: iter([1, 2, "three"]), "int64", ()).map(lambda x: x + 1).iterator(prefetch=0)
    assert [int(next(i)), int(next(i))] == [2, 3]
    with pytest.raises(tw.InvalidArgumentError, match="the generator raised"):
        next(i)


def test_iterators_leave_no_threads_behind():
    before = threading.active_count()
    for _ in range(3):
        i = data.generator(lambda: iter(range(1000)), "int64", ()).map(lambda x: x + 1).prefetch(3).iterator()
        assert int(next(i)) == 1
        del i
    gc.collect()
    assert threading.active_count() == before


# ---- Files ----

def test_records_against_the_format(tmp_path):
    rng = np.random.default_rng(3)
    contents = [rng.bytes(int(n)) for n in [0, 1, 7, 8, 9, 100, 3071, 3072, 3073, 70_000, 300_000, 0, 5]]
    path = records.written(tmp_path / "a.tfrecord", contents)
    assert values(data.records(path)) == contents
    assert values(data.records([path, path]).skip(12).take(3)) == [contents[12], contents[0], contents[1]]


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_files_give_what_is_packed_in_them(tmp_path, compression):
    pack = {"gzip": gzip.compress, "zlib": zlib.compress}[compression]
    rng = np.random.default_rng(4)
    contents = [b"", rng.bytes(100), b"a" * 3_000_000, rng.bytes(700_000), b"end"]
    packed = pack(b"".join(map(records.of, contents)))
    (tmp_path / "a").write_bytes(packed)
    assert values(data.records(str(tmp_path / "a"), compression)) == contents
    if compression == "gzip":  # archives one behind the other
        (tmp_path / "b").write_bytes(packed + pack(records.of(b"more")))
        assert values(data.records([str(tmp_path / "b"), str(tmp_path / "a")], compression).skip(5).take(2)) == [b"more", b""]
    (tmp_path / "text").write_bytes(pack("one\r\ntwo\n\nlast größe".encode() * 3000))
    want = ("one\r\ntwo\n\nlast größe" * 3000).replace("\r", "").encode().split(b"\n")
    assert values(data.lines(str(tmp_path / "text"), compression)) == want
    given, again = (data.records(str(tmp_path / "a"), compression).iterator() for _ in range(2))
    assert [next(given).numpy().tolist() for _ in range(3)] == contents[:3]
    again.restore(given.save())
    assert values(again) == contents[3:]


def test_damaged_compressed_files_name_file_and_byte(tmp_path):
    path, whole = tmp_path / "a.gz", gzip.compress(records.of(np.random.default_rng(0).bytes(50_000)))
    spoilt = bytearray(whole)
    spoilt[30_000] ^= 255
    spoilt[30_001] ^= 255
    for content, compression, message in ((whole[:40_000], "gzip", "are cut off"), (b"", "gzip", "are cut off"),
                                          (b"no archive", "gzip", "are damaged: incorrect header check"),
                                          (bytes(spoilt), "gzip", "damaged|checksum of a record|cut off"),
                                          (zlib.compress(b"") + b"x", "zlib", "bytes behind the end"),
                                          (gzip.compress(records.of(b"abc")[:-3]), "gzip", "ends within a record")):
        path.write_bytes(content)
        with pytest.raises(tw.DataLossError, match=f"a.gz' at byte .*({message})"):
            values(data.records(str(path), compression))
    huge = struct.pack("<Q", 1 << 40)
    path.write_bytes(gzip.compress(huge + struct.pack("<I", records.masked(huge)) + bytes(1000)))
    with pytest.raises(tw.ResourceExhaustedError, match="at most 1 GiB is unpacked at once"):
        values(data.records(str(path), "gzip"))
    with pytest.raises(ValueError, match="compression is 'lzma'"):
        data.records(str(path), "lzma")


def test_damaged_records_name_file_and_byte(tmp_path):
    path = tmp_path / "a.tfrecord"
    whole = records.of(b"first") + records.of(b"the second record")
    at = len(records.of(b"first"))

    def fails(bytes_, message):
        path.write_bytes(bytes_)
        with pytest.raises(tw.DataLossError, match=message) as e:
            values(data.records(str(path)))
        assert f"'{path}' at byte {at}: " in str(e.value)

    for cut in range(at + 1, len(whole)):
        fails(whole[:cut], "ends within a record")
    for place in range(at, len(whole)):
        spoilt = bytearray(whole)
        spoilt[place] ^= 4
        fails(bytes(spoilt), "checksum of a record")
    huge = struct.pack("<Q", 1 << 62)
    fails(records.of(b"first") + huge + struct.pack("<I", records.masked(huge)) + b"x" * 20, "ends within a record")


def test_lines(tmp_path):
    path = tmp_path / "a.txt"
    for text in (b"", b"\n", b"a", b"a\n", b"a\r\nb\n\nc", b"\r\n\r", b"x" * 5000 + b"\n" + b"y" * 700_000 + b"\r\nz"):
        path.write_bytes(text)
        want = text.split(b"\n")
        want = want[:-1] if text.endswith(b"\n") or not text else want
        ended = text.count(b"\n")
        assert values(data.lines(str(path))) == [w[:-1] if k < ended and w.endswith(b"\r") else w for k, w in enumerate(want)]


# ---- Kills ----

@pytest.mark.parametrize("kills", [4 if "THALWEG_TEST_NIGHTLY" not in os.environ else 50])
def test_each_example_is_seen_exactly_once_over_kills(tmp_path, kills):
    names = [records.written(tmp_path / f"{k}.tfrecord", [b"%d" % (40 * k + j) for j in range(40)]) for k in range(5)]
    log, program = tmp_path / "seen", pathlib.Path(__file__).with_name("data_killed.py")
    rng, ended, starts = np.random.default_rng(11), False, 0
    while not ended:
        starts += 1
        p = subprocess.Popen([sys.executable, str(program), str(tmp_path), str(log), *names], stdout=subprocess.PIPE)
        steps = int(rng.integers(1, max(2, 2 * 100 // kills))) if starts <= kills else None
        for _ in iter(p.stdout.readline, b""):
            if steps is None:
                continue
            steps -= 1
            if steps <= 0:
                p.send_signal(signal.SIGKILL)
                break
        ended = p.wait() == 0
        p.stdout.close()
        assert starts < 4 * kills + 10
    # The log may hold a batch twice, if the kill came between writing it and the checkpoint: the number of the batch tells.
    seen = dict(line.split(b" ", 1) for line in log.read_bytes().splitlines())
    assert sorted(map(int, seen)) == list(range(len(seen)))
    assert sorted(int(x) for line in seen.values() for x in line.split()) == list(range(200))
    assert starts > min(kills, 3)


def test_a_record_file_appears_as_a_whole(tmp_path):
    path, contents = tmp_path / "a.tfrecord", [b"", b"x", bytes(range(256)) * 9000, b"end\0"]
    with data.RecordWriter(path) as w:
        for record in contents:
            w.write(record)
        assert not path.exists()
    assert path.read_bytes() == b"".join(map(records.of, contents)) and values(data.files(str(path))) == contents
    with pytest.raises(tw.FailedPreconditionError, match="is closed"):
        w.write(b"late")
    with pytest.raises(ZeroDivisionError), data.RecordWriter(path) as w:
        w.write(b"lost")
        1 / 0
    del w
    gc.collect()
    assert values(data.files(str(path))) == contents and [p.name for p in tmp_path.iterdir()] == ["a.tfrecord"]
    with pytest.raises(TypeError, match="a record is bytes, not str"):
        data.RecordWriter(tmp_path / "b").write("text")
    with pytest.raises(tw.NotFoundError, match="nowhere"):
        data.RecordWriter(tmp_path / "nowhere" / "b")
