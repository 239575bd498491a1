"""The dataset ops themselves: those that tw.data does not reach, and each op with what is wrong."""
import numpy as np
import pytest
import records

import thalweg as tw

ONE = dict(output_types=["int64"], output_shapes=[[]])
LONG = dict(output_types=["int64"], output_shapes=[None])
TEXT = dict(output_types=["string"], output_shapes=[[]])

OPS = """TensorDataset TensorSliceDataset RangeDataset RandomDataset GeneratorDataset TFRecordDataset TextLineDataset
FixedLengthRecordDatasetV2 TakeDataset SkipDataset ShardDataset RepeatDataset ConcatenateDataset ZipDataset ShuffleDatasetV3 CacheDatasetV2
PrefetchDataset OptionsDataset BatchDatasetV2 ParallelBatchDataset PaddedBatchDatasetV2 UnbatchDataset WindowDataset MapDataset
ParallelMapDatasetV2 FilterDataset TakeWhileDataset FlatMapDataset InterleaveDataset ParallelInterleaveDatasetV4 ScanDataset IteratorV2
AnonymousIteratorV3 MakeIterator MakeEpochIterator IteratorGetNext IteratorGetNextSync DatasetCardinality DummyMemoryCache
DummySeedGenerator GroupByWindowDataset CSVDatasetV2 CsvColumnsDataset JsonLinesDataset ArrayFilesDataset
IgnoreErrorsDataset""".split()


def long(n):
    return np.int64(n)


def elements(graph, dataset, most=50, next_op="IteratorGetNext", as_tensors=False, **what):
    """Takes the elements of a dataset in steps of the graph."""
    what = what or ONE
    position = graph.op("IteratorV2", shared_name="", container="", **what)
    start, got = graph.op("MakeIterator", dataset, position), graph.op(next_op, position, **what)
    out = []
    with tw.Session(graph) as s:
        s.run(start)
        while len(out) < most:
            try:
                out.append(s.run(got, as_tensors=as_tensors)[0])
            except tw.OutOfRangeError as e:
                assert "End of sequence" in str(e)
                break
    return [x.tolist() if hasattr(x, "tolist") else x for x in out]


def numbers(graph, n=6):
    return graph.op("RangeDataset", long(0), long(n), long(1), **ONE)


def function(graph, f, results, args=(("int64", ()),), name="f"):
    from thalweg.dtypes import as_dtype
    from thalweg.flow import Traced
    return Traced(graph, f, [(as_dtype(t), s) for t, s in args], name).add(name, [])


def test_every_op_has_a_kernel():
    known = tw.Runtime.default().ops()
    for op in OPS:
        assert op in known and known[op]["kernels"], op


def test_sources(graph, tmp_path):
    assert elements(graph, graph.op("TensorDataset", [np.int64([1, 2])], output_shapes=[[2]]), **LONG) == [[1, 2]]
    a, b = (graph.op("RandomDataset", long(s), long(2), **ONE) for s in (1, 2))
    first = elements(graph, a, 20)
    assert first == elements(graph, a, 20) != elements(graph, b, 20)
    assert all(0 <= x < 2 ** 32 for x in first) and len(set(first)) == 20 and max(first) > 2 ** 31
    path = tmp_path / "a.bin"
    path.write_bytes(b"head" + b"abc" * 3 + b"x")
    pieces = ["FixedLengthRecordDatasetV2", [str(path)] * 2, long(4), long(3), long(1), long(0), ""]
    assert elements(graph, graph.op(*pieces), **TEXT) == [b"abc"] * 6
    pieces[3] = long(4)
    with pytest.raises(tw.DataLossError, match="whole records of 4"):
        elements(graph, graph.op(*pieces), **TEXT)


def test_ops_that_share_a_meaning(graph):
    d = numbers(graph)
    batch = graph.op("ParallelBatchDataset", d, long(4), long(2), False, **LONG)
    assert elements(graph, batch, next_op="IteratorGetNextSync", **LONG) == [[0, 1, 2, 3], [4, 5]]
    assert elements(graph, graph.op("OptionsDataset", d, serialized_options=b"\x08\x01", **ONE)) == list(range(6))
    twice = function(graph, lambda x: tw.current_graph().op("RangeDataset", x * 10, x * 10 + 2, long(1), **ONE), 1)
    with graph:
        p = graph.op("ParallelInterleaveDatasetV4", d, [], long(2), long(1), long(0), long(0), long(-1), f=twice, Targuments=[], **ONE)
    assert elements(graph, p) == [0, 10, 1, 11, 20, 30, 21, 31, 40, 50, 41, 51]


def test_an_anonymous_iterator_lives_in_its_step(graph):
    it = graph.op("AnonymousIteratorV3", **ONE)
    start = graph.op("MakeIterator", numbers(graph), it)
    with tw.control_dependencies([start]):
        got = graph.op("IteratorGetNext", it, **ONE)
    with tw.Session(graph) as s:
        assert [s.run(got)[0] for _ in range(2)] == [0, 0]


def test_cardinality(graph, tmp_path):
    d = numbers(graph, 10)
    path = records.written(tmp_path / "r", [b"1"])
    infinite, unknown = -1, -2
    for n, dataset in [
        (10, d), (4, graph.op("TakeDataset", d, long(4), **ONE)), (10, graph.op("TakeDataset", d, long(-1), **ONE)),
        (6, graph.op("SkipDataset", d, long(4), **ONE)), (0, graph.op("SkipDataset", d, long(-1), **ONE)),
        (3, graph.op("ShardDataset", d, long(4), long(1), **ONE)), (2, graph.op("ShardDataset", d, long(4), long(3), **ONE)),
        (1, graph.op("ShardDataset", d, long(2 ** 63 - 1), long(3), **ONE)),
        (30, graph.op("RepeatDataset", d, long(3), **ONE)), (infinite, graph.op("RepeatDataset", d, long(-1), **ONE)),
        (20, graph.op("ConcatenateDataset", d, d, **ONE)), (4, graph.op("BatchDatasetV2", d, long(3), False, **LONG)),
        (3, graph.op("BatchDatasetV2", d, long(3), True, **LONG)), (unknown, graph.op("TFRecordDataset", [path], "", long(0))),
        (7, graph.op("ZipDataset", [numbers(graph, 7), graph.op("RepeatDataset", d, long(-1), **ONE)], output_types=["int64"] * 2,
                     output_shapes=[[], []])),
    ]:
        with tw.Session(graph) as s:
            assert s.run(graph.op("DatasetCardinality", dataset)) == n, dataset.operation


WRONG = [-2 ** 63, -2, 0, 2 ** 62, 2 ** 63 - 1]


def wrong_uses(graph):
    """Datasets with one number that is wrong or extreme, and with values that are none."""
    d, seeds = numbers(graph), graph.op("DummySeedGenerator")
    keep = function(graph, lambda x: tw.current_graph().op("Less", x, np.int64(3)), 1, name="keep")
    pairs = function(graph, lambda x: tw.current_graph().op("RangeDataset", x, x + 2, long(1), **ONE), 1, name="pairs")
    floats = function(graph, lambda x: tw.current_graph().op("Cast", x, DstT="float32"), 1, name="floats")
    scan = function(graph, lambda s, x: [x, s], 2, (("int64", ()), ("int64", ())), "scan")
    none = dict(Targuments=[])
    for n in [1, *WRONG]:
        n = long(n)
        yield "RangeDataset", [n, long(3), long(1)], ONE
        yield "RangeDataset", [long(0), n, long(1 << 60)], ONE
        yield "RangeDataset", [long(0), long(3), n], ONE
        yield "RandomDataset", [n, long(3)], ONE
        for op in ("TakeDataset", "SkipDataset", "RepeatDataset"):
            yield op, [d, n], ONE
        yield "PrefetchDataset", [d, n], ONE
        yield "ShardDataset", [d, n, long(0)], ONE
        yield "ShardDataset", [d, long(3), n], ONE
        yield "ShuffleDatasetV3", [d, n, long(1), long(2), seeds], ONE
        yield "ShuffleDatasetV3", [d, long(2), n, n, seeds], ONE
        yield "BatchDatasetV2", [d, n, False], LONG
        yield "ParallelBatchDataset", [d, n, n, True], LONG
        yield "PaddedBatchDatasetV2", [d, n, [np.int64([])], [long(0)], False], dict(Toutput_types=["int64"], output_shapes=[None])
        yield "PaddedBatchDatasetV2", [d, long(2), [np.int64([n])], [long(0)], False], dict(Toutput_types=["int64"], output_shapes=[None])
        for k in range(3):
            three = [long(2)] * 3
            three[k] = n
            yield "WindowDataset", [d, *three, False], dict(output_types=["variant"], output_shapes=[[]])
        yield "ParallelMapDatasetV2", [d, [], n], dict(f=floats, output_types=["float32"], output_shapes=[[]]) | none
        yield "InterleaveDataset", [d, [], n, long(1)], dict(f=pairs) | none | ONE
        yield "InterleaveDataset", [d, [], long(2), n], dict(f=pairs) | none | ONE
        yield "FixedLengthRecordDatasetV2", [["none"], n, n, n, n, ""], {}
        yield "TFRecordDataset", [["none"], "", n], {}
        yield "CSVDatasetV2", [["none"], "", n, True, ",", True, "", np.int64([n]), [np.int64([])], np.int64([])], ONE
        yield "CsvColumnsDataset", [["none"], "", n, ",", True, "", [np.int64([])]], dict(columns=["a"]) | ONE
        yield "JsonLinesDataset", [["none"], "", n, [np.int64(0)]], dict(keys=["a"]) | ONE
        yield "ArrayFilesDataset", [["none"], "", n], dict(format="npy") | ONE
    for op in ("MapDataset", "FlatMapDataset"):
        for f in (keep, pairs, floats, scan):
            yield op, [d, []], dict(f=f) | none | ONE
    for f in (keep, pairs, floats, scan):
        yield "GroupByWindowDataset", [d, [], [], []], dict(key_func=f, reduce_func=pairs, window_size_func=f, Tkey_func_other_arguments=[],
                                                            Treduce_func_other_arguments=[], Twindow_size_func_other_arguments=[]) | ONE
    for op in ("FilterDataset", "TakeWhileDataset"):
        for f in (keep, pairs, floats, scan):
            yield op, [d, []], dict(predicate=f) | none | ONE
    for f in (keep, pairs, floats, scan):
        yield "ScanDataset", [d, [long(1)], []], dict(f=f, Tstate=["int64"]) | none | ONE
        yield "GeneratorDataset", [[], [], []], dict(init_func=f, next_func=f, finalize_func=f, Tinit_func_args=[], Tnext_func_args=[],
                                                     Tfinalize_func_args=[]) | ONE
    yield "UnbatchDataset", [d], ONE
    yield "IgnoreErrorsDataset", [d], ONE
    yield "ConcatenateDataset", [d, graph.op("TensorDataset", [np.float32(1)], output_shapes=[[]])], ONE
    yield "CacheDatasetV2", [d, "file", graph.op("DummyMemoryCache")], ONE
    yield "CacheDatasetV2", [d, "", graph.op("DummyMemoryCache")], ONE
    yield "TextLineDataset", [["none"], "GZIP", long(0)], {}
    yield "TensorSliceDataset", [[np.float32([1]), np.float32([1, 2])]], dict(output_shapes=[[], []])
    for bad in (graph.op("EmptyTensorList", np.int32([]), np.int32(-1), element_dtype="float32"),
                graph.op("TensorListReserve", np.int32([]), np.int32(2), element_dtype="float32")):
        for op in ("TakeDataset", "RepeatDataset"):
            yield op, [bad, long(1)], ONE
        yield "ZipDataset", [[d, bad]], dict(output_types=["int64"] * 2, output_shapes=[[], []])


def test_wrong_uses_are_refused_and_nothing_breaks(graph):
    refused = right = 0
    for op, inputs, attrs in wrong_uses(graph):
        what = dict(output_types=attrs.get("output_types", attrs.get("Toutput_types", ["string"])), output_shapes=attrs.get("output_shapes", [None]))
        try:
            d = graph.op(op, *inputs, **attrs)
            elements(graph, d, 3, as_tensors=True, **what)
            right += 1
        except tw.Error as e:
            assert type(e) in (tw.InvalidArgumentError, tw.NotFoundError, tw.UnimplementedError), (op, inputs, e)
            assert op in str(e) or "IteratorGetNext" in str(e), e
            refused += 1
    assert refused > 80 and right > 40, (refused, right)


def test_iterators_of_other_types_are_refused(graph):
    it = graph.op("IteratorV2", shared_name="", container="", output_types=["float32"], output_shapes=[[]])
    start = graph.op("MakeIterator", numbers(graph), it)
    epoch = graph.op("MakeEpochIterator", numbers(graph), graph.op("IteratorV2", shared_name="", container="", **ONE), long(-1))
    queue = tw.FIFOQueue(1, ["int64"])
    with tw.Session(graph) as s:
        with pytest.raises(tw.InvalidArgumentError, match=r"types \[int64\], and the iterator's 'output_types' are \[float\]"):
            s.run(start)
        with pytest.raises(tw.InvalidArgumentError, match="'epoch' is -1"):
            s.run(epoch)
        with pytest.raises(tw.InvalidArgumentError, match="org.thalweg"):
            s.run(graph.op("IteratorGetNext", queue.handle, **ONE))
