"""What may be wrong with data: a table of cases and of the messages that a program gets. Each case spoils one file or function of a pipeline
behind a good element. The error must be of the stated class, name the file (or the op), and say what is wrong; the pipeline then goes
on, and the process keeps no file open."""
import gc
import gzip
import io
import os
import pathlib
import re
import struct
import wave

import example_bytes
import media
import numpy as np
import pytest
import records

import thalweg as tw
from thalweg import data

SIZE = 8
PICTURE = np.random.default_rng(4).integers(0, 255, (SIZE, SIZE, 3)).astype(np.uint8)


def encoded(op, *inputs, **attrs):
    return getattr(tw.ops, op)(*inputs, **attrs).numpy().item()


def wav():
    out = io.BytesIO()
    with wave.open(out, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(8000)
        f.writeframes(bytes(200))
    return out.getvalue()


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def spoilt(contents, place, byte=None):
    out = bytearray(contents)
    out[place] = out[place] ^ 0xff if byte is None else byte
    return bytes(out)


PNG, JPEG = encoded("encode_png", PICTURE), encoded("encode_jpeg", PICTURE)
RECORD, WAV = records.of(b"a record"), wav()
FLAC = media.flac(np.zeros((100, 1), np.int32), 8000, 16)
EXAMPLE = example_bytes.example({b"a": np.float32([1])})
HUGE_PNG = PNG[:16] + struct.pack(">II", 1 << 20, 1 << 20) + PNG[24:]


def of_files(op, **attrs):
    return lambda names: data.arrays(np.array(names, object)).map(lambda name: getattr(tw.ops, op)(tw.ops.read_file(name), **attrs), parallel=1)


def first(op, *inputs, **attrs):
    return lambda names: data.arrays(np.array(names, object)).map(lambda name: getattr(tw.ops, op)(tw.ops.read_file(name), *inputs, **attrs)[0], parallel=1)


def parsed(names):
    return data.arrays(np.array(names, object)).map(
        lambda name: tw.ops.parse_single_example(tw.ops.read_file(name), [np.float32([])], num_sparse=0, sparse_keys=[], dense_keys=["a"],
                                                 sparse_types=[], dense_shapes=[()])[3][0], parallel=1)


def csv(names):
    return data.csv(names, {"a": "int32"})


def json_lines(names):
    return data.json_lines(names, {"a": "int32"})


def arrays(names):
    return data.npy(names, "float32", [2])


# Name of the case: (pipeline of file names, a good file, a bad file, class of the error, what it says).
CASES = {
    "record cut off in its head": (data.records, RECORD, RECORD[:7], tw.DataLossError, "'{file}' at byte 0: the file ends within a record"),
    "record cut off in its bytes": (data.records, RECORD, RECORD[:-5], tw.DataLossError, "'{file}' at byte 0: the file ends within a record"),
    "record with a wrong checksum": (data.records, RECORD, spoilt(RECORD, 14), tw.DataLossError, "'{file}' at byte 0: the checksum of a record of 8 bytes is wrong"),
    "record whose length is damaged": (data.records, RECORD, spoilt(RECORD, 3), tw.DataLossError, "'{file}' at byte 0: the checksum of a record's length"),
    "record that claims 2^62 bytes": (data.records, RECORD, (h := struct.pack("<Q", 1 << 62)) + struct.pack("<I", records.masked(h)) + b"x", tw.DataLossError,
                                      "'{file}' at byte 0: the file ends within a record"),
    "second record damaged": (data.records, RECORD, RECORD + spoilt(RECORD, 13), tw.DataLossError, "'{file}' at byte 24: the checksum"),
    "text that is no record": (data.records, RECORD, b"just a line of text\n", tw.DataLossError, "'{file}' at byte 0: the checksum of a record's length"),
    "gzip cut off": (lambda n: data.records(n, "gzip"), gzip.compress(RECORD), gzip.compress(RECORD)[:-9], tw.DataLossError, "'{file}' at byte .*cut off"),
    "no gzip": (lambda n: data.lines(n, "gzip"), gzip.compress(b"a\n"), b"a line\n", tw.DataLossError, "'{file}' at byte .*the compressed data are damaged"),
    "field that is no number": (csv, b"a\n1\n", b"a\nx\n", tw.InvalidArgumentError, "'{file}' line 2: column 'a' is 'x', which is no int32"),
    "column that is not there": (csv, b"a\n1\n", b"b\n1\n", tw.InvalidArgumentError, "'{file}' line 1: the header has no column 'a'"),
    "quote that does not end": (csv, b"a\n1\n", b'a\n"1\n', tw.InvalidArgumentError, "'{file}' line 2: field 0 has a quote that does not end"),
    "line that is no JSON": (json_lines, b'{"a": 1}\n', b'{"a": }\n', tw.InvalidArgumentError, "'{file}' line 1: this is no JSON"),
    "member of another type": (json_lines, b'{"a": 1}\n', b'{"a": []}\n', tw.InvalidArgumentError, "'{file}' line 1: member 'a' is an array"),
    "array cut off": (arrays, npy(np.zeros((1, 2), np.float32)), npy(np.zeros((1, 2), np.float32))[:-1], tw.DataLossError, "'{file}': the array has 8 bytes"),
    "array of another type": (arrays, npy(np.zeros((1, 2), np.float32)), npy(np.zeros((1, 2))), tw.InvalidArgumentError, "'{file}': the array is double"),
    "no array": (arrays, npy(np.zeros((1, 2), np.float32)), PNG, tw.DataLossError, "'{file}': this is no .npy file"),
    "PNG cut off": (of_files("decode_png", channels=3), PNG, PNG[:-20], tw.InvalidArgumentError, "DecodePng"),
    "PNG with a damaged byte": (of_files("decode_png", channels=3), PNG, spoilt(PNG, 50), tw.InvalidArgumentError, "DecodePng"),
    "PNG that claims 2^40 pixels": (of_files("decode_png", channels=3), PNG, HUGE_PNG, tw.InvalidArgumentError, "DecodePng"),
    "JPEG cut off": (of_files("decode_jpeg", channels=3), JPEG, JPEG[:-12], tw.InvalidArgumentError, "DecodeJpeg.*end too early"),
    "no JPEG": (of_files("decode_jpeg", channels=3), JPEG, PNG, tw.InvalidArgumentError, "DecodeJpeg.*no JPEG"),
    "no picture": (of_files("decode_image", channels=3), JPEG, b"GIF98", tw.InvalidArgumentError, "DecodeImage"),
    "WAV cut off in its head": (first("decode_wav"), WAV, WAV[:30], tw.InvalidArgumentError, "DecodeWav"),
    "FLAC with a damaged frame": (first("decode_flac"), FLAC, spoilt(FLAC, 60), tw.InvalidArgumentError, "DecodeFlac"),
    "Example cut off": (parsed, EXAMPLE, EXAMPLE[:-1], tw.InvalidArgumentError, "ParseSingleExample"),
    "Example without a feature": (parsed, EXAMPLE, example_bytes.example({b"b": np.float32([1])}), tw.InvalidArgumentError, "ParseSingleExample.*'a'"),
    "file that is not there": (data.records, RECORD, None, tw.NotFoundError, "{file}"),
    "folder instead of a file": (data.lines, b"a\n", "folder", tw.Error, "{file}"),
}


def open_files():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("case", CASES)
def test_the_error_names_the_place_and_the_fault(tmp_path, case):
    make, good, bad, error, message = CASES[case]
    names = [str(tmp_path / name) for name in ("good", "bad", "good again")]
    for name, contents in zip(names, (good, bad, good)):
        if contents == "folder":
            os.mkdir(name)
        elif contents is not None:
            with open(name, "wb") as f:
                f.write(contents)
    before = open_files()
    i, got, wrong = make(names).iterator(), 0, []
    while len(wrong) < 5:
        try:
            next(i)
            got += 1
        except StopIteration:
            break
        except tw.Error as e:
            wrong.append(e)
    assert wrong and got >= 1, (got, wrong)
    assert isinstance(wrong[0], error) and re.search(message.format(file=re.escape(names[1])), str(wrong[0]), re.S), wrong[0]
    assert len(str(wrong[0])) < 2000
    del i
    wrong.clear()
    gc.collect()
    assert open_files() <= before


def test_elements_that_fail_are_skipped_and_counted(tmp_path):
    names = [str(tmp_path / f"{k}.tfrecord") for k in range(4)]
    good = [records.of(b"%d" % k) for k in range(6)]
    pathlib.Path(names[0]).write_bytes(good[0] + spoilt(good[1], 12) + good[2])   # one record is damaged
    pathlib.Path(names[2]).write_bytes(good[3] + spoilt(good[4], 2) + good[4])    # the file cannot be read on
    pathlib.Path(names[3]).write_bytes(good[5])                                   # the second file is not there
    said = []
    tw.log.set(lambda level, text: said.append(text), "warning")
    try:
        whole = [x.item() for x in data.records(names).ignore_errors()]
    finally:
        tw.log.set(None)
    assert whole == [b"0", b"2", b"3", b"5"]
    said = [text for text in said if "IgnoreErrors" in text]
    assert len(said) == 3 and "IgnoreErrors: 1 element was skipped" in said[0] and "IgnoreErrors: 3 elements were skipped" in said[2]
    assert all(name in text for name, text in zip(names, said))
    for at in range(5):  # a position has the elements that follow
        i = data.records(names).ignore_errors(log=False).iterator()
        for _ in range(at):
            next(i)
        again = data.records(names).ignore_errors(log=False).iterator()
        again.restore(i.save())
        assert [x.item() for x in again] == whole[at:]
    got = data.range(40).map(lambda x: tw.ops.check_numerics(1 / tw.ops.cast(x % 4, DstT="float64"), message="zero")).ignore_errors(log=False)
    assert [x.item() for x in got] == [1 / (k % 4) for k in range(40) if k % 4]
    with pytest.raises(tw.InvalidArgumentError, match="10000 elements in a row failed, the last with: .*zero"):
        list(data.range(1).repeat().map(lambda x: tw.ops.check_numerics(1 / tw.ops.cast(x, DstT="float64"), message="zero")).ignore_errors(log=False))


def failing(x, at):
    """x, but an error at the elements `at`."""
    bad = tw.ops.cast(tw.ops.any(tw.ops.equal(x, np.array(at, np.int64)), 0), DstT="float64")
    checked = tw.ops.check_numerics(1 / (1 - bad), message="bad")
    return x + tw.ops.cast(checked - 1, DstT="int64") * 0


@pytest.mark.parametrize("parallel", [1, 2])
def test_skipped_elements_leave_the_others_in_their_places(parallel):
    def numbers():
        return data.range(12).map(lambda x: failing(x, [1, 6]), parallel=parallel)
    pairs = [(int(a), int(b)) for a, b in data.zip(numbers(), data.range(12)).ignore_errors(log=False)]
    assert pairs == [(k, k) for k in range(12) if k not in (1, 6)]
    shards = [[int(x) for x in numbers().shard(2, i).ignore_errors(log=False)] for i in range(2)]
    assert sorted(sum(shards, [])) == [k for k in range(12) if k not in (1, 6)] and all(k % 2 == i for i in range(2) for k in shards[i])
    assert [int(x) for x in numbers().skip(3).ignore_errors(log=False)] == [3, 4, 5, 7, 8, 9, 10, 11]
    made = numbers().cache().ignore_errors(log=False)
    for at in range(10):
        i = made.iterator()
        for _ in range(at):
            next(i)
        again = made.iterator()
        again.restore(i.save())
        assert [int(x) for x in again] == [k for k in range(12) if k not in (1, 6)][at:]


def test_a_function_that_raises_names_itself():
    def broken(x):
        if x == 3:
            raise KeyError("no such word")
        return [x]
    i, got = data.range(6).map(lambda x: tw.py_function(broken, [x], ["int64"], [[]])[0], parallel=1).iterator(), []
    with pytest.raises(KeyError, match="no such word"):
        for x in i:
            got.append(int(x))
    assert got == [0, 1, 2] and [int(x) for x in i] == [4, 5]


def test_files_that_vanish_grow_and_shrink_while_they_are_read(tmp_path):
    names = [str(tmp_path / f"{k}.txt") for k in range(3)]
    for name in names:
        with open(name, "w") as f:
            f.writelines(f"{k:200}\n" for k in range(3000))  # more than a piece of a reader
    i = data.lines(names).iterator()
    assert next(i).numpy().item().strip() == b"0"
    os.unlink(names[1])
    with open(names[0], "a") as f:  # a reader gives what was there when it began
        f.write("late\n")
    got = []
    with pytest.raises(tw.NotFoundError, match="1.txt"):
        for x in i:
            got.append(int(x.numpy().item()))
    assert got == list(range(1, 3000))
    i = data.lines(names[2]).iterator()
    next(i)
    with open(names[2], "r+") as f:
        f.truncate(100)
    with pytest.raises(tw.Error, match="2.txt"):
        list(i)


def test_an_iterator_outlives_neither_its_session_nor_its_data(graph, tmp_path):
    steps = data.range(3).steps()
    s = tw.Session(graph)
    s.run(steps.start)
    assert s.run(steps.next) == 0
    s.close()
    with pytest.raises(tw.FailedPreconditionError, match="closed"):
        s.run(steps.next)
    with tw.Session(graph, container="another") as other, pytest.raises(tw.FailedPreconditionError, match="MakeIterator|start"):
        other.run(steps.next)
