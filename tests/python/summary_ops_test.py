"""The summary ops of both generations, whose messages and files event_files.py reads."""
import event_files as ef
import numpy as np
import pytest

import thalweg as tw

RED = np.uint8([255, 0, 0, 255])


def messages(run, summary):
    return [(tag, contents) for tag, _, contents, _, _ in ef.summary(run(summary))]


def test_scalars(graph, run):
    for dtype in ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "int64", "uint32", "uint64"):
        values = graph.op("Cast", np.float32([[2, 3]]), DstT=dtype)
        assert messages(run, graph.op("ScalarSummary", [["a", "b"]], values)) == [("a", 2), ("b", 3)], dtype
    assert messages(run, graph.op("ScalarSummary", "x", np.float32(0.5))) == [("x", 0.5)]
    with pytest.raises(tw.InvalidArgumentError, match="tags are"):
        graph.op("ScalarSummary", ["a"], np.float32([1, 2]))
    x = tw.placeholder("float32", None)
    with pytest.raises(tw.InvalidArgumentError, match="tags are"):
        run(graph.op("ScalarSummary", ["a"], x), {x: [1, 2]})
    with pytest.raises(tw.InvalidArgumentError, match="empty"):
        run(graph.op("ScalarSummary", "", np.float32(1)))


def test_histograms(graph, run):
    (tag, h), = messages(run, graph.op("HistogramSummary", "h", np.float32([1, 1, -2])))
    assert (tag, h["min"], h["max"], h["num"], h["sum"], h["squares"]) == ("h", -2, 1, 3, 0, 6) and h["counts"].sum() == 3
    for wrong in (np.nan, np.inf):
        with pytest.raises(tw.InvalidArgumentError, match="HistogramSummary.*summary 'h': an element is (NaN|infinite)"):
            run(graph.op("HistogramSummary", "h", np.float32([1, wrong])))


def test_images(graph, run):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 3, 5, 3), np.uint8)
    got = dict(messages(run, graph.op("ImageSummary", "x", pixels, bad_color=RED)))
    assert list(got) == ["x/image/0", "x/image/1", "x/image/2"]
    np.testing.assert_array_equal(got["x/image/2"], pixels[2])
    got = messages(run, graph.op("ImageSummary", "x", np.float32([[[[0], [np.nan], [4]]]]), max_images=1, bad_color=np.uint8([7])))
    assert [(tag, p.ravel().tolist()) for tag, p in got] == [("x/image", [0, 7, 255])]
    for shape in ((2, 3, 5, 2), (3, 5, 3)):
        with pytest.raises(tw.InvalidArgumentError, match=r"images are \[n, height, width, channels\]"):
            graph.op("ImageSummary", "x", np.zeros(shape, np.uint8), bad_color=RED)
    with pytest.raises(tw.InvalidArgumentError, match="colour of bad pixels has 1 channels"):
        run(graph.op("ImageSummary", "x", pixels, bad_color=np.uint8([1])))


def test_sounds(graph, run):
    waves = np.float32([[0, 0.5, -1, 2], [0, 0, 0, 0]])
    (tag, (rate, samples)), (other, _) = messages(run, graph.op("AudioSummaryV2", "y", waves, np.float32(8000)))
    assert (tag, other, rate) == ("y/audio/0", "y/audio/1", 8000) and samples[:, 0].tolist() == [0, 16384, -32768, 32767]
    (tag, (rate, samples)), = messages(run, graph.op("AudioSummary", "y", waves[..., None], sample_rate=44100.0, max_outputs=1))
    assert (tag, rate, samples.shape) == ("y/audio", 44100, (4, 1))
    with pytest.raises(tw.InvalidArgumentError, match="sample rate is 0"):
        run(graph.op("AudioSummaryV2", "y", waves, np.float32(0)))


def test_tensors_and_merging(graph, run):
    about = b"\x0a\x06\x0a\x04mine"
    (tag, _, value, plugin, _), = ef.summary(run(graph.op("TensorSummaryV2", "t", np.int32([[1, 2]]), about)))
    assert (tag, value.tolist(), plugin) == ("t", [[1, 2]], "mine")
    assert messages(run, graph.op("TensorSummary", ["a", "b"], name="texts")) == [("texts", ([2], [b"a", b"b"]))]
    a, b = (graph.op("ScalarSummary", tag, np.float32(1)) for tag in "ab")
    assert messages(run, graph.op("MergeSummary", [a, b])) == [("a", 1), ("b", 1)]
    for inputs, why in (([a, a], "the tag 'a' is in more than one summary"), ([a, b"\xff"], "input 1 of 1 bytes is no message")):
        with pytest.raises(tw.InvalidArgumentError, match=why):
            run(graph.op("MergeSummary", inputs))


@pytest.fixture
def writer(graph, run, tmp_path):
    handle = graph.op("SummaryWriter", shared_name="w")
    make = graph.op("CreateSummaryFileWriter", handle, str(tmp_path / "new/run"), np.int32(10), np.int32(100000), ".v2")
    run(make)
    run(make)  # it has a file
    return handle


def written(run, graph, writer, tmp_path):
    run(graph.op("FlushSummaryWriter", writer))
    file, = (tmp_path / "new/run").iterdir()
    assert file.name.endswith(".v2")
    return ef.values(file), ef.events(file)


def test_writers_write_every_kind_of_summary(graph, run, writer, tmp_path):
    step, pixels = np.int64(5), np.zeros((2, 3, 2, 1), np.uint8)
    run(graph.op("WriteScalarSummary", writer, step, "loss", np.float64(0.5)))
    run(graph.op("WriteHistogramSummary", writer, step, "h", np.float32([1])))
    run(graph.op("WriteImageSummary", writer, step, "x", pixels, RED, max_images=1))
    run(graph.op("WriteAudioSummary", writer, step, "y", np.zeros((1, 4), np.float32), np.float32(8000), max_outputs=1))
    run(graph.op("WriteSummary", writer, step, np.float32([1, 2]), "t", b""))
    run(graph.op("WriteRawProtoSummary", writer, step, [graph.op("ScalarSummary", "raw", np.float32(2))]))
    run(graph.op("ImportEvent", writer, b"\x10\x09"))
    run(graph.op("WriteGraphSummary", writer, step, b"\x0a\x03\x0a\x01a"))
    values, events = written(run, graph, writer, tmp_path)
    assert [v[:2] for v in values] == [(5, "loss"), (5, "h"), (5, "x/image"), (5, "y/audio"), (5, "t"), (5, "raw")]
    assert values[0][3] == 0.5 and values[4][3].tolist() == [1, 2] and values[5][3] == 2
    assert events[-2][1] == 9 and ef.one(events[-1][2], 4) == b"\x0a\x03\x0a\x01a"
    run(graph.op("CloseSummaryWriter", writer))
    run(graph.op("CloseSummaryWriter", writer))


def test_what_a_loop_writes_is_in_order(graph, run, writer, tmp_path):
    step = tw.placeholder("int64", [])
    write = graph.op("WriteScalarSummary", writer, step, "loss", graph.op("Cast", step, DstT="float32"))
    for i in range(200):
        run(write, {step: i})
    assert [(v[0], v[3]) for v in written(run, graph, writer, tmp_path)[0]] == [(i, i) for i in range(200)]


def test_writers_refuse_what_is_wrong(graph, run, writer, tmp_path):
    other = graph.op("SummaryWriter", shared_name="other")
    with pytest.raises(tw.FailedPreconditionError, match="the summary writer has no file; run CreateSummaryFileWriter first"):
        run(graph.op("WriteScalarSummary", other, np.int64(1), "x", np.float32(1)))
    with pytest.raises(tw.InvalidArgumentError, match="'max_queue' is -1"):
        run(graph.op("CreateSummaryFileWriter", other, str(tmp_path), np.int32(-1), np.int32(0), ""))
    with pytest.raises(tw.InvalidArgumentError, match="has a '/'"):
        run(graph.op("CreateSummaryFileWriter", other, str(tmp_path), np.int32(1), np.int32(0), "a/b"))
    (tmp_path / "file").write_text("")
    with pytest.raises(tw.Error, match="CreateSummaryFileWriter.*file"):
        run(graph.op("CreateSummaryFileWriter", other, str(tmp_path / "file/x"), np.int32(1), np.int32(0), ""))
    for op, bad in (("ImportEvent", ()), ("WriteRawProtoSummary", (np.int64(1),))):
        with pytest.raises(tw.InvalidArgumentError, match="is no message"):
            run(graph.op(op, writer, *bad, b"\xff"))
    queue = graph.op("FIFOQueueV2", component_types=["float32"])
    with pytest.raises(tw.InvalidArgumentError, match="org.thalweg.summary_writer"):
        run(graph.op("FlushSummaryWriter", queue))
    run(graph.op("WriteScalarSummary", writer, np.int64(1), "x", np.float32(1)))
    assert len(written(run, graph, writer, tmp_path)[0]) == 1
