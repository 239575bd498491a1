"""Datasets: pipelines that read, shuffle, transform and batch examples.

    for images, labels in tw.data.files("train-*.tfrecord").shuffle(10_000, seed=1).map(parse).batch(64).prefetch():
        ...

A dataset is a description; nothing is read before a loop or a step takes elements. An element is one value, or a tuple or a dict of
values. Functions given to map, filter and similar methods are traced once: they get values of a graph and return such values, as in
tw.function. `for element in dataset` runs the pipeline outside of graphs and gives Values. dataset.iterator() gives the same with
positions that can be saved; dataset.steps() gives values for a graph of the program; dataset.distribute() gives the elements to the
trainers of a cluster, and the tasks of a job read them.

Elements and their order depend on the data, the parameters, the seeds and the epoch alone, and not on threads."""
import builtins as _builtins
import glob as _glob
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from .dtypes import as_dtype
from .dtypes import string as _string
from .elements import Spec, flat, joined, packed, spec_of, spec_text
from .flow import Traced
from .generated import generator_source, has_generators
from .graph import Graph
from .iterating import DatasetIterator, Steps
from .output import Output
from .record_files import RecordWriter
from .scopes import control_dependencies
from .service import DistributedDataset, DistributedIterator
from .splitting import split_files, split_rows, whole
from .stored_sources import Column, Columns, Kind, array_source, check_compression, csv_source, json_source, npz_source
from .tensor import Tensor

__all__ = ["AUTO", "Column", "Dataset", "DatasetIterator", "DistributedDataset", "DistributedIterator", "RecordWriter",
           "Steps", "arrays", "csv", "files", "generator", "idx", "json_lines", "lines", "npy", "npz", "range", "records", "zip"]

AUTO = -1  # as many as the session has threads

_Shape = Optional[tuple[Optional[int], ...]]

def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a type checker would conclude from it that every name exists
    def __getattr__(name):
        from .op_functions import unknown
        raise AttributeError(unknown("data", name, __all__))


class Dataset:
    """A pipeline. Make one with a function of tw.data, and others from it with its methods. It does not change, and may be run any number
    of times, by several threads and in several graphs."""

    def __init__(self, build: Callable[[Graph], tuple[Output, Spec]]):
        self._build = build
        self._home: Optional[Graph] = None

    def _in(self, graph: Graph) -> tuple[Output, Spec]:
        """The dataset's value in a graph, and what its elements are."""
        built = graph.__dict__.setdefault("_datasets", {})  # the graph keeps its datasets, so no dataset keeps a graph of others alive
        if self not in built:
            built[self] = self._build(graph)
        found: tuple[Output, Spec] = built[self]
        return found

    def _own_graph(self) -> Graph:
        if self._home is None:
            self._home = Graph()
        return self._home

    @property
    def spec(self) -> Any:
        """What an element is: a pair of element type and shape, or a tuple or a dict of such pairs. None is an unknown size or rank."""
        return spec_of(self._in(self._own_graph())[1])

    def __repr__(self) -> str:
        return f"<Dataset of {spec_text(self._in(self._own_graph())[1])}>"

    # ---- Running ----

    def iterator(self, prefetch: Optional[int] = None, **options: Any) -> DatasetIterator:
        """An iterator with positions. prefetch: elements computed before they are taken; None: as a last prefetch() says, else none.
        options: of the session (tw.Session.options())."""
        graph = self._own_graph()
        value, spec = self._in(graph)
        if has_generators(graph):  # a generator serves one iterator of a graph
            graph = Graph()
            value, spec = self._in(graph)
        return DatasetIterator(graph, value, spec, AUTO if prefetch is None else prefetch, options)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterator())

    def steps(self, name: Optional[str] = None, graph: Optional[Graph] = None) -> Steps:
        """The elements in the steps of a graph, the current one by default: `steps.next` is the element of each step, `steps.start` the
        operation that begins at the first element. Savers save the position under `name`."""
        from .graph import current_graph
        graph = graph or current_graph()
        value, spec = self._in(graph)
        return Steps(graph, value, spec, name)

    def distribute(self, target: str, *, name: str, mode: str = "first_come", job: str = "reader", sharding: str = "dynamic",
                   splits: Optional[int] = None, seed: Optional[int] = None, trainer: int = 0, trainers: int = 1, cycle: int = 4,
                   prefetch: int = 2, prefetch_bytes: int = 256 << 20, wait: float = 60, on_loss: str = "raise",
                   **options: Any) -> DistributedDataset:
        """The elements for trainers of a cluster. The tasks of a job read them, and run the pipeline; each trainer takes its part.

        Each trainer makes the same pipeline and calls this with the same arguments, except `trainer`. The pipeline is read in splits,
        each of some files or some rows of its sources, so everything behind the sources (a shuffle, a batch) is within a split.

        target: the address of any task of the cluster.   name: of the service; trainers with one name share it.   job: of the readers.
        mode: "first_come": each element goes to the trainer that asks first; elements are lost with a reader or trainer that dies.
        "exactly_once": trainer t of `trainers` has a fixed share of the splits, with positions that can be saved: each element is given
        once over any number of deaths of readers and trainers.
        sharding: "dynamic": splits go to readers as these ask for more; "file": the same, and a split is a file; "off": each reader gives
        all elements (first_come only).   splits: how many; None: the number of files, or up to 64 of rows.   seed: each epoch has
        an order of splits of its own; None: by their numbers.   trainer, trainers: the number of this trainer, and how many there are.
        cycle: splits that a trainer reads in turns (exactly_once).   prefetch: elements taken ahead from each reader, or of each split in
        exactly_once.   prefetch_bytes: about the most that all of these may hold.   wait: seconds for which all readers, or
        the target at the start, may be away.
        on_loss: in first_come, whether the iterator raises once when a reader is lost, or goes on ("continue").
        options: of the sessions with the readers (tw.Session.options()).
        Raises ValueError for wrong arguments, and for pipelines that cannot be split."""
        return DistributedDataset(self, target, name=name, mode=mode, job=job, sharding=sharding, splits=splits, seed=seed, trainer=trainer,
                                  trainers=trainers, cycle=cycle, prefetch=prefetch, prefetch_bytes=prefetch_bytes, wait=wait,
                                  on_loss=on_loss, options=options)

    # ---- The same elements, fewer, or in another order ----

    def take(self, count: int) -> "Dataset":
        """The first `count` elements; -1: all."""
        return self._passed("TakeDataset", count=count)

    def skip(self, count: int) -> "Dataset":
        """The elements behind the first `count`."""
        return self._passed("SkipDataset", count=count)

    def shard(self, shards: int, index: int) -> "Dataset":
        """Every shards-th element, from number `index` on."""
        return self._passed("ShardDataset", num_shards=shards, index=index)

    def repeat(self, count: int = -1) -> "Dataset":
        """The elements `count` times; -1: without end."""
        return self._passed("RepeatDataset", count=count)

    def shuffle(self, buffer: int = -1, seed: int = 0, each_pass: bool = True) -> "Dataset":
        """The elements in a random order: each is drawn from the next `buffer` elements; -1: from all. each_pass: each pass and epoch has
        an order of its own. A saved position holds the buffer, so shuffle names or records rather than decoded images."""
        def build(graph: Graph) -> tuple[Output, Spec]:
            value, spec = self._in(graph)
            return graph.op("ShuffleDatasetV3", value, _long(graph, buffer), _long(graph, seed), _long(graph, 0), graph.op("DummySeedGenerator"),
                            reshuffle_each_iteration=each_pass, **_attrs(spec)), spec
        return Dataset(build)

    def cache(self) -> "Dataset":
        """The elements; the first pass that reaches the end keeps them in memory for later passes."""
        def build(graph: Graph) -> tuple[Output, Spec]:
            whole(graph, "cache()", "let the trainer keep elements")
            value, spec = self._in(graph)
            return graph.op("CacheDatasetV2", value, _text(graph, ""), graph.op("DummyMemoryCache"), **_attrs(spec)), spec
        return Dataset(build)

    def prefetch(self, count: int = AUTO) -> "Dataset":
        """The elements; an iterator over this dataset computes up to `count` of them before they are taken (AUTO: 2)."""
        return self._passed("PrefetchDataset", buffer_size=count)

    def concatenate(self, other: "Dataset") -> "Dataset":
        """The elements, then those of `other`."""
        def build(graph: Graph) -> tuple[Output, Spec]:
            (value, spec), (second, others) = self._in(graph), other._in(graph)
            met = joined(spec, others)
            return graph.op("ConcatenateDataset", value, second, **_attrs(met)), met
        return Dataset(build)

    # ---- Several elements become one, or one several ----

    def batch(self, size: int, drop_remainder: bool = False) -> "Dataset":
        """`size` elements along a new first axis; a last batch may be smaller, unless drop_remainder."""
        return self._batched(size, drop_remainder)

    def padded_batch(self, size: int, shapes: Any = None, padding: Any = None, drop_remainder: bool = False) -> "Dataset":
        """As batch, for components of different sizes. shapes: of an element, of its structure; None: the known sizes; None as a size: the
        largest of each batch. padding: a value for each component; None: 0 and ""."""
        return self._padded(size, shapes, padding, drop_remainder)

    def bucket_by_sequence_length(self, length: Callable[..., Any], boundaries: Sequence[int], batch_sizes: Sequence[int], shapes: Any = None,
                                  padding: Any = None, pad_to_boundary: bool = False, no_padding: bool = False,
                                  drop_remainder: bool = False) -> "Dataset":
        """Batches of elements of similar lengths, which need little padding. length(element) gives a whole number. boundaries: growing; an
        element with boundaries[k - 1] <= length < boundaries[k] is in bucket k.   batch_sizes: of each bucket, one more than boundaries.
        shapes, padding: as in padded_batch.   pad_to_boundary: unknown sizes become boundaries[k] - 1 instead of the largest of the batch;
        a length of boundaries[-1] or more is then an error.   no_padding: stacks elements as batch does.   drop_remainder: leaves out the
        batches that are not full at the end. A saved position holds the elements of the batches that are not full."""
        edges, sizes = [int(b) for b in boundaries], [int(n) for n in batch_sizes]
        if not edges or any(a >= b for a, b in _builtins.zip(edges, edges[1:])):
            raise ValueError(f"boundaries is {list(boundaries)}; it must have at least one number, and the numbers must grow")
        if len(sizes) != len(edges) + 1 or min(sizes) < 1:
            raise ValueError(f"batch_sizes is {list(batch_sizes)}; it must have {len(edges) + 1} numbers of at least 1, one more than boundaries")
        if no_padding and (pad_to_boundary or shapes is not None or padding is not None):
            raise ValueError("no_padding is True, and so no shapes, padding or pad_to_boundary have a meaning; leave them out")

        def bucket(*element: Any) -> Output:
            graph = _current()
            n = graph.op("Cast", length(*element), DstT="int64")
            if pad_to_boundary:
                said = _text(graph, f"bucket_by_sequence_length: with pad_to_boundary a length must be below {edges[-1]}, the last boundary; it is")
                with control_dependencies([graph.op("Assert", graph.op("Less", n, _long(graph, edges[-1])), [said, n])]):
                    n = graph.op("Identity", n)
            below = graph.op("LessEqual", graph.constant(edges, "int64"), n)
            found: Output = graph.op("Sum", graph.op("Cast", below, DstT="int64"), graph.constant([0], "int32"))
            return found

        def chosen(numbers: Sequence[int], key: Output) -> Output:
            one: Output = key.graph.op("GatherV2", key.graph.constant(numbers, "int64"), key, key.graph.constant(0, "int32"))
            return one

        def batched(key: Output, window: "Dataset") -> "Dataset":
            size = chosen(sizes, key)
            if no_padding:
                return window._batched(size, drop_remainder)
            filler = chosen([b - 1 for b in edges] + [0], key) if pad_to_boundary else None
            return window._padded(size, shapes, padding, drop_remainder, filler)
        return self.group_by_window(bucket, batched, lambda key: chosen(sizes, key))

    def group_by_window(self, key: Callable[..., Any], reduce: Callable[[Output, "Dataset"], "Dataset"],
                        size: Union[int, Callable[[Output], Any]]) -> "Dataset":
        """The elements of the datasets reduce(key, window). A window has the next elements for which key(element), an int64, is the same.
        size: of a window, or a function of the key. At the end of the elements the windows that are not full follow, in the order of
        their keys."""
        def build(graph: Graph) -> tuple[Output, Spec]:
            value, spec = self._in(graph)
            number = Spec([(as_dtype("int64"), ())], None)
            window = Spec([*number.parts, (as_dtype("variant"), ())], (None, None), [None, spec])
            of_key = _Function(graph, key, spec, "group_key")
            given: Any = size
            of_size = _Function(graph, given if callable(given) else lambda _: np.int64(given), number, "group_size")
            for f, what in ((of_key, "key"), (of_size, "size")):
                if f.spec.structure is not None or f.spec.types[0].name != "int64":
                    raise TypeError(f"group_by_window: the {what} is {spec_text(f.spec)}; it must be one number of type int64")
            f = _Function(graph, reduce, window, "group_by_window", dataset=True)
            return graph.op("GroupByWindowDataset", value, of_key.captured, f.captured, of_size.captured, key_func=of_key.name,
                            reduce_func=f.name, window_size_func=of_size.name, Tkey_func_other_arguments=of_key.captured_types,
                            Treduce_func_other_arguments=f.captured_types, Twindow_size_func_other_arguments=of_size.captured_types,
                            **_attrs(f.spec)), f.spec
        return Dataset(build)

    def ignore_errors(self, log: bool = True) -> "Dataset":
        """The elements without those that fail, such as a damaged record, an image that cannot be decoded or a field that is no number. Put it
        right behind what may fail: `records(names).ignore_errors()`, `.map(decode).ignore_errors()`.   log: the log says how many
        elements were skipped, and why the last one failed; the trace of a step has the counter "elements skipped". Errors that are not those of an
        element still end the loop: cancellation, a deadline, memory that is out, and what cannot be reached."""
        def build(graph: Graph) -> tuple[Output, Spec]:
            value, spec = self._in(graph)
            return graph.op("IgnoreErrorsDataset", value, log_warning=log, **_attrs(spec)), spec
        return Dataset(build)

    def unbatch(self) -> "Dataset":
        """An element for each row of an element."""
        def build(graph: Graph) -> tuple[Output, Spec]:
            value, spec = self._in(graph)
            new = spec.rows()
            return graph.op("UnbatchDataset", value, **_attrs(new)), new
        return Dataset(build)

    def window(self, size: int, shift: Optional[int] = None, stride: int = 1, drop_remainder: bool = False) -> "Dataset":
        """Datasets of `size` elements, for flat_map: one for each component. shift: between the starts of windows; None: size."""
        def build(graph: Graph) -> tuple[Output, Spec]:
            value, spec = self._in(graph)
            new = spec.datasets()
            return graph.op("WindowDataset", value, _long(graph, size), _long(graph, size if shift is None else shift), _long(graph, stride),
                            graph.constant(drop_remainder, "bool"), **_attrs(new)), new
        return Dataset(build)

    # ---- Functions ----

    def map(self, function: Callable[..., Any], parallel: int = AUTO) -> "Dataset":
        """function(element) for each element; a tuple is given as several arguments. parallel: elements that are computed at once."""
        def build(graph: Graph) -> tuple[Output, Spec]:
            value, spec = self._in(graph)
            f = _Function(graph, function, spec, "map")
            one = parallel == 1
            more = [] if one else [_long(graph, parallel)]
            return graph.op("MapDataset" if one else "ParallelMapDatasetV2", value, f.captured, *more, f=f.name, Targuments=f.captured_types,
                            **_attrs(f.spec)), f.spec
        return Dataset(build)

    def filter(self, predicate: Callable[..., Any]) -> "Dataset":
        """The elements for which predicate(element) is true."""
        return self._chosen("FilterDataset", predicate)

    def take_while(self, predicate: Callable[..., Any]) -> "Dataset":
        """The elements before the first for which predicate(element) is false."""
        return self._chosen("TakeWhileDataset", predicate)

    def flat_map(self, function: Callable[..., "Dataset"]) -> "Dataset":
        """The elements of the dataset function(element), for each element."""
        return self._interleaved("FlatMapDataset", function)

    def interleave(self, function: Callable[..., "Dataset"], cycle: int = 16, block_length: int = 1) -> "Dataset":
        """As flat_map, with up to block_length elements of each of `cycle` datasets in turn."""
        return self._interleaved("InterleaveDataset", function, cycle, block_length)

    def scan(self, initial: Any, function: Callable[..., Any]) -> "Dataset":
        """function(state, element) gives the next state and what stands for the element."""
        def build(graph: Graph) -> tuple[Output, Spec]:
            whole(graph, "scan()", "compute with single elements")
            value, spec = self._in(graph)
            begin = Spec.of_values([graph.constant(x) for x in flat(initial)], initial)
            values = [graph.constant(x) for x in flat(initial)]
            f = _Function(graph, function, spec, "scan", state=begin)
            return graph.op("ScanDataset", value, values, f.captured, f=f.name, Tstate=begin.types, Targuments=f.captured_types,
                            **_attrs(f.spec)), f.spec
        return Dataset(build)

    # ---- Parts ----

    def _passed(self, op: str, **numbers: int) -> "Dataset":
        def build(graph: Graph) -> tuple[Output, Spec]:
            if op in _COUNTING:
                whole(graph, _COUNTING[op], "leave it out and choose files or rows at the source")
            elif op == "RepeatDataset" and numbers["count"] < 0:
                whole(graph, "repeat() without end", "give the number of passes, or reset the iterator to further epochs")
            value, spec = self._in(graph)
            return graph.op(op, value, *(_long(graph, n) for n in numbers.values()), **_attrs(spec)), spec
        return Dataset(build)

    def _batched(self, size: Union[int, Output], drop_remainder: bool) -> "Dataset":
        def build(graph: Graph) -> tuple[Output, Spec]:
            value, spec = self._in(graph)
            new = spec.stacked(size if drop_remainder and not isinstance(size, Output) else None)
            return graph.op("BatchDatasetV2", value, _long(graph, size), graph.constant(drop_remainder, "bool"), **_attrs(new)), new
        return Dataset(build)

    def _padded(self, size: Union[int, Output], shapes: Any, padding: Any, drop_remainder: bool, filler: Optional[Output] = None) -> "Dataset":
        """filler: what unknown sizes become; None: the largest of the batch."""
        def build(graph: Graph) -> tuple[Output, Spec]:
            value, spec = self._in(graph)
            if shapes is not None:
                spec = spec.with_shapes(shapes)
            new = spec.stacked(size if drop_remainder and not isinstance(size, Output) else None)
            fills = [b"" if t == _string else 0 for t, _ in spec.parts] if padding is None else flat(padding, spec, "padding")
            dims = []
            for s in spec.ranked("padded_batch"):
                known = graph.constant([-1 if d is None else d for d in s], "int64")
                if filler is not None and None in s:
                    known = graph.op("SelectV2", graph.constant([d is None for d in s], "bool"), filler, known)
                dims.append(known)
            return graph.op("PaddedBatchDatasetV2", value, _long(graph, size), dims, [graph.constant(x, t) for x, (t, _) in _builtins.zip(fills, spec.parts)],
                            graph.constant(drop_remainder, "bool"), Toutput_types=new.types, output_shapes=new.shapes), new
        return Dataset(build)

    def _chosen(self, op: str, predicate: Callable[..., Any]) -> "Dataset":
        def build(graph: Graph) -> tuple[Output, Spec]:
            if op == "TakeWhileDataset":
                whole(graph, "take_while()", "use filter()")
            value, spec = self._in(graph)
            f = _Function(graph, predicate, spec, "filter")
            if [t.name for t in f.spec.types] != ["bool"]:
                raise TypeError(f"the predicate gives {spec_text(f.spec)}; it must give one truth value")
            return graph.op(op, value, f.captured, predicate=f.name, Targuments=f.captured_types, **_attrs(spec)), spec
        return Dataset(build)

    def _interleaved(self, op: str, function: Callable[..., "Dataset"], *numbers: int) -> "Dataset":
        def build(graph: Graph) -> tuple[Output, Spec]:
            value, spec = self._in(graph)
            f = _Function(graph, function, spec, "flat_map", dataset=True)
            return graph.op(op, value, f.captured, *(_long(graph, n) for n in numbers), f=f.name, Targuments=f.captured_types,
                            **_attrs(f.spec)), f.spec
        return Dataset(build)


class _Function:
    """A traced function of elements: its name in the graph, the values that it captured, and what it gives."""

    def __init__(self, graph: Graph, function: Callable[..., Any], spec: Spec, what: str, state: Optional[Spec] = None, dataset: bool = False):
        if not callable(function):
            raise TypeError(f"{what}: {function!r} is no function")
        first = state.parts if state else []

        def traced(*args: Output) -> list[Output]:
            body = args[0].graph
            held = [packed(list(args[:len(first)]), state)] if state else []
            element = spec.element(list(args[len(first):]), body, _of_variant)
            result = function(*held, *element) if isinstance(element, tuple) else function(*held, element)
            if dataset:
                if not isinstance(result, Dataset):
                    raise TypeError(f"{what}: the function gives {result!r}; it must give a Dataset")
                value, self.spec = result._in(body)
                return [value]
            before: list[Any] = []
            if state:
                if not isinstance(result, tuple) or len(result) != 2:
                    raise TypeError(f"{what}: the function must give a pair, the next state and the element")
                before, result = flat(result[0], state, "the next state"), result[1]
            values = [body.constant(x) if not isinstance(x, Output) or x.graph.computes else x for x in flat(result)]
            self.spec = Spec.of_values(values, result)
            return [*(body.constant(x) if not isinstance(x, Output) else x for x in before), *values]

        self.spec: Spec
        made = Traced(graph, traced, [*first, *spec.parts], f"{what}: the function")
        self.captured = made.body.captured()
        self.captured_types = [v.dtype for v in self.captured]
        self.name = made.add(f"dataset_{what}", self.captured)


def _of_variant(value: Output, inner: Spec) -> Dataset:
    """The dataset that an argument of a function is."""
    return Dataset(lambda graph: (value if graph is value.graph else graph._own(value), inner))


_COUNTING = {"TakeDataset": "take()", "SkipDataset": "skip()", "ShardDataset": "shard()"}


def _long(graph: Graph, n: Union[int, Output]) -> Output:
    return n if isinstance(n, Output) else graph.constant(n, "int64")


def _current() -> Graph:
    from .graph import current_graph
    return current_graph()


def _text(graph: Graph, text: str) -> Output:
    return graph.constant(text.encode(), _string)


def _attrs(spec: Spec) -> dict[str, Any]:
    return dict(output_types=spec.types, output_shapes=spec.shapes)


# ---- Sources ----

def arrays(*values: Any) -> Dataset:
    """An element for each row of arrays of equally many rows; a dict of arrays gives dicts. Arrays are copied when the pipeline is built."""
    structure = values[0] if len(values) == 1 else values
    tensors = [x if isinstance(x, Tensor) else Tensor(x) for x in flat(structure)]

    def build(graph: Graph) -> tuple[Output, Spec]:
        held = [graph.constant(t) for t in tensors]
        spec = Spec.of_values(held, structure).rows()
        value = graph.op("TensorSliceDataset", held, Toutput_types=spec.types, output_shapes=spec.shapes)
        return split_rows(graph, value, spec, tensors[0].shape[0]), spec
    return Dataset(build)


def range(*args: int) -> Dataset:
    """The int64 numbers of Python's range(stop), range(start, stop) or range(start, stop, step)."""
    numbers = _builtins.range(*args)

    def build(graph: Graph) -> tuple[Output, Spec]:
        spec = Spec([(as_dtype("int64"), ())], None)
        value = graph.op("RangeDataset", *(_long(graph, n) for n in (numbers.start, numbers.stop, numbers.step)), **_attrs(spec))
        return split_rows(graph, value, spec, len(numbers)), spec
    return Dataset(build)


def records(names: Any, compression: str = "") -> Dataset:
    """The records of TFRecord files, as strings of bytes. names: a path, several, or a string value of a graph.
    compression: of the files: "", "gzip" or "zlib"."""
    return _files("TFRecordDataset", names, compression)


def lines(names: Any, compression: str = "") -> Dataset:
    """The lines of text files, without their ends. names, compression: as in records."""
    return _files("TextLineDataset", names, compression)


def csv(names: Any, columns: Columns, *, header: bool = True, delimiter: str = ",", quotes: bool = True, missing: str = "",
        compression: str = "") -> Dataset:
    """The records of CSV files, with a type for each column.

        tw.data.csv("people.csv", {"name": "string", "age": "int32", "height": ("float32", 0.0)})

    columns: a dict of names and types, which gives dicts: with a header its names choose columns, whose order may differ between files;
    or a list of types, which gives tuples of all columns in order. A type is float32, float64, int32, int64 or string; a pair of a type and
    a default lets the value be missing, as tw.data.Column(type, default) does.   header: the first record of each file has the names.
    quotes: fields may be in quotes and then hold delimiters and ends of lines.   missing: a text that stands for a missing value, besides
    an empty field.   names, compression: as in records.
    When elements are taken, InvalidArgumentError names the file, the line, the column and the text of a field that does not fit."""
    return Dataset(csv_source(names, columns, header, delimiter, quotes, missing, compression))


def json_lines(names: Any, columns: Mapping[str, Any], compression: str = "") -> Dataset:
    """Members of the JSON objects in the lines of files, as dicts; blank lines are left out.

        tw.data.json_lines("reviews.jsonl", {"text": "string", "stars": "int32", "tags": tw.data.Column("string", [], shape=[None])})

    columns: names of members, and a type, a pair of a type and a default, or a tw.data.Column with a shape for arrays. A type is one of csv or
    bool. A member that is missing or null without a default is an error; other members are left out.   names, compression: as in records.
    When elements are taken, InvalidArgumentError names the file, the line and the member that does not fit."""
    return Dataset(json_source(names, columns, compression))


def npy(names: Any, dtype: Any = None, shape: Optional[Sequence[Optional[int]]] = None, compression: str = "") -> Dataset:
    """The rows of the arrays in .npy files (numpy.save), read as they are taken. dtype, shape: of a row; None: those of the first file, which
    then is looked at now. names, compression: as in records."""
    return Dataset(array_source("npy", names, dtype, shape, compression))


def npz(names: Any, arrays: Union[None, Sequence[str], Mapping[str, Kind]] = None) -> Dataset:
    """The rows of arrays in .npz files (numpy.savez, numpy.savez_compressed) side by side, as dicts, read as they are taken. arrays: their
    names; None: all of the first file, which then is looked at now; a dict of names and pairs of type and shape of a row: no file is
    looked at."""
    return Dataset(npz_source(names, arrays))


def idx(names: Any, dtype: Any = None, shape: Optional[Sequence[Optional[int]]] = None, compression: str = "") -> Dataset:
    """The rows of the arrays in IDX files, the format of MNIST; compression="gzip" reads them as they are shared. dtype, shape: as in npy."""
    return Dataset(array_source("idx", names, dtype, shape, compression))


def files(pattern: Union[str, Sequence[str]]) -> Dataset:
    """The records of the TFRecord files that match a pattern or several, in the order of their sorted names. Raises FileNotFoundError if a
    pattern matches none."""
    found: list[str] = []
    for one in [pattern] if isinstance(pattern, str) else pattern:
        names = sorted(_glob.glob(one)) if "://" not in one else [one]
        if not names:
            raise FileNotFoundError(f"no file matches '{one}'")
        found += names
    return records(found)


def generator(function: Callable[[], Iterable[Any]], types: Any, shapes: Any = None) -> Dataset:
    """The elements of function(), an iterable, which is called again for each pass. types, shapes: of an element, of its structure;
    shapes: None: unknown. The function runs on a thread of its own. For exact positions it must give the same elements in each call: a
    restored iterator calls it and passes over those that were given."""
    return Dataset(generator_source(function, Spec.of_types(types, shapes)))


def zip(*datasets: Dataset) -> Dataset:
    """Tuples of an element of each dataset; ends with the shortest."""
    if not datasets:
        raise ValueError("zip needs at least one dataset")

    def build(graph: Graph) -> tuple[Output, Spec]:
        whole(graph, "zip()", "let one source give all components, such as arrays(a, b)")
        built = [d._in(graph) for d in datasets]
        spec = Spec.tuple_of([s for _, s in built])
        return graph.op("ZipDataset", [v for v, _ in built], **_attrs(spec)), spec
    return Dataset(build)


def _files(op: str, names: Any, compression: str = "") -> Dataset:
    check_compression(compression)

    def build(graph: Graph) -> tuple[Output, Spec]:
        value = graph._own(names) if isinstance(names, Output) and not names.graph.computes else graph.constant(names, _string)
        return graph.op(op, split_files(graph, value), _text(graph, compression.upper()), _long(graph, 0)), Spec([(_string, ())], None)
    return Dataset(build)
