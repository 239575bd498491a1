"""A session with a memory limit never holds much more memory, whatever a graph requests. Each vector runs in a process of its own, in a
control group limited to the limit plus 128 MiB. It ends with an error that names the op and the account, or within the limit.
    memory_limit_test.py [LIMIT in MiB]...   default: 64
If the test may not make a control group, the vectors also run, and are judged by the peak memory of their process."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

import cases
import tw
import thalweg

MIB = 1 << 20
ROOM = 128 * MIB  # memory for parts that the limit does not count: interpreter, libraries, code, plans
f32, i32, i64, text = np.float32, np.int32, np.int64, tw.string


class Vector(tw.Graph):
    """A graph with a session of that limit, and numbers that the planner does not know."""

    def __init__(self, limit, **options):
        super().__init__()
        self.limit, self.feeds, self.options = limit, {}, options
        self._session = None

    def fed(self, array):
        array = np.asarray(array)
        value = self.placeholder(array.dtype, array.shape)
        self.feeds[value] = array
        return value

    def run(self, fetches=(), targets=(), **feeds):
        self._session = self._session or self.session(memory_limit=self.limit, **self.options)
        return self._session.run(list(fetches), self.feeds, targets)

    def numbers(self, n, start=0, dtype=i64):
        """Returns the numbers [start, start + n), which the step computes."""
        return self.op("Range", self.fed(dtype(start)), self.fed(dtype(start + n)), self.constant(dtype(1)))

    def filled(self, n, value):
        return self.op("Fill", self.fed(i32([n])), self.constant(value))

    def joined(self, pieces, n):
        """Returns the n strings joined into one."""
        return self.op("StringJoin", *[self.op("StridedSlice", pieces, self.constant(i32([k])), self.constant(i32([k + 1])),
                                              self.constant(i32([1])), shrink_axis_mask=1) for k in range(n)])

    def repeat(self, step, most=100_000):
        """Runs steps until one fails. step(k) sets the feeds."""
        for k in range(most):
            step(k)


def growing(v, add, each, start):
    """Runs the operation repeatedly, each time with other numbers."""
    def step(k):
        for value in start:
            v.feeds[value] = np.asarray(k * each, v.feeds[value].dtype)
        v.run(targets=[add])
    v.repeat(step)


# ---- Memory that graphs hold ----

def strings(v):
    n = v.limit // 64
    v.run([v.op("AsString", v.numbers(n), width=100)])


def one_string(v):
    x = v.fed(np.array("x" * MIB, object))
    for _ in range(12):
        x = v.op("StringJoin", x, x)
    v.run([x])


def keyed(v, keys, values, key, value, insert_each):
    table = v.op("MutableHashTableV2", key_dtype=key, value_dtype=value, shared_name="table")
    start = v.fed(i64(0))
    numbers = v.op("AddV2", v.numbers(insert_each), start)
    add = v.add("LookupTableInsertV2", table, keys(numbers), values(numbers))
    growing(v, add, insert_each, [start])


def table_of_numbers(v):
    keyed(v, lambda n: n, lambda n: n, i64, i64, 50_000)


def table_of_strings(v):
    keyed(v, lambda n: v.op("AsString", n, width=40), lambda n: v.op("AsString", n), text, text, 20_000)


def static_table(v):
    n = v.limit // 64
    table = v.op("HashTableV2", key_dtype=text, value_dtype=i64, shared_name="static")
    v.run(targets=[v.add("InitializeTableV2", table, v.op("AsString", v.numbers(n)), v.numbers(n))])


def rows_of_a_queue(v):
    queue = v.op("FIFOQueueV2", component_types=[f32], shapes=[()], shared_name="queue")
    put = v.add("QueueEnqueueManyV2", queue, v.filled(50_000, f32(1)), Tcomponents=[f32])
    v.repeat(lambda k: v.run(targets=[put]))


def elements_of_a_queue(v):
    queue = v.op("FIFOQueueV2", component_types=[f32], shapes=[()], shared_name="queue")
    one = v.op("AddV2", v.fed(f32(1)), v.constant(f32(1)))
    puts = [v.add("QueueEnqueueV2", queue, one, Tcomponents=[f32]) for _ in range(500)]
    v.repeat(lambda k: v.run(targets=puts))


def elements_of_a_list(v):
    n = v.limit // 100
    v.run([v.op("TensorListLength", v.op("TensorListFromTensor", v.numbers(n), v.constant(np.zeros(0, i32)), element_dtype=i64,
                                         shape_type=i32))])


def places_of_a_list(v):
    v.run([v.op("TensorListLength", v.op("TensorListReserve", v.constant(np.zeros(0, i32)), v.fed(i32(v.limit // 8)), element_dtype=i64,
                                         shape_type=i32))])


def tensor_array(v):
    n = v.limit // 100
    array = v.add("TensorArrayV3", v.fed(i32(n)), dtype=i64)
    handle, flow = array.outputs
    v.run([v.op("TensorArrayScatterV3", handle, v.numbers(n, dtype=i32), v.numbers(n), flow)])


def stack(v):
    handle = v.op("StackV2", v.constant(i32(-1)), elem_type=f32)
    x, last = v.fed(f32(1)), []
    big = v.op("Fill", v.fed(i32([v.limit // 64])), x)
    for k in range(40):
        last = [v.add("StackPushV2", handle, v.op("AddV2", big, v.constant(f32(k))), after=last)]
    v.run(targets=last)


def accumulator(v):
    handle = v.op("ResourceConditionalAccumulator", dtype=f32, shape=None, shared_name="sum")
    v.run(targets=[v.add("ResourceAccumulatorApplyGradient", handle, v.constant(i64(0)), v.filled(v.limit // 7, f32(1)))])


def sparse_accumulator(v):
    handle = v.op("ResourceSparseConditionalAccumulator", dtype=f32, shape=None, shared_name="rows")
    each, start = 10_000, v.fed(i64(0))
    add = v.add("ResourceSparseAccumulatorApplyGradient", handle, v.constant(i64(0)), v.op("AddV2", v.numbers(each), start),
                v.op("Reshape", v.filled(each, f32(1)), v.constant(i32([-1, 1]))), v.constant(np.zeros(0, i64)), has_known_shape=False)
    growing(v, add, each, [start])


def barrier(v):
    handle = v.op("ResourceBarrier", component_types=[f32, f32], shapes=[(), ()], shared_name="barrier")
    each, start = 10_000, v.fed(i64(0))
    keys = v.op("AsString", v.op("AddV2", v.numbers(each), start))
    growing(v, v.add("ResourceBarrierInsertMany", handle, keys, v.filled(each, f32(1)), component_index=0), each, [start])


def staged(v):
    x = v.op("AddV2", v.fed(f32(1)), v.constant(f32(1)))
    puts = [v.add("Stage", *[x] * 20, dtypes=[f32] * 20, shared_name="area") for _ in range(500)]
    v.repeat(lambda k: v.run(targets=puts))


def staged_by_key(v):
    start = v.fed(i64(0))
    x = v.op("AddV2", v.fed(f32(1)), v.constant(f32(1)))
    puts = [v.add("MapStage", v.op("AddV2", start, v.constant(i64(k))), v.constant(np.arange(20, dtype=i32)), *[x] * 20, dtypes=[f32] * 20,
                  shared_name="map") for k in range(500)]

    def step(k):
        v.feeds[start] = i64(500 * k)
        v.run(targets=puts)
    v.repeat(step)


def variables(v):
    for k in range(40):
        handle = v.op("VarHandleOp", dtype=f32, shape=None, shared_name=f"v{k}")
        v.run(targets=[v.add("AssignVariableOp", handle, v.filled(v.limit // 64, f32(k)), dtype=f32)])


def plans(v):
    x = v.fed(np.ones(3, f32))
    ends = [x]
    for _ in range(2000):
        ends.append(v.op("AddV2", ends[-1], x))
    for k in range(100 * v.limit // (64 * MIB)):
        v.run([ends[-1 - k]])


def constants(v):
    x = v.op("Fill", v.constant(i32([v.limit // 16])), v.constant(f32(1)))
    v.run([v.op("AddN", *[v.op("Sub", x, v.constant(f32(k))) for k in range(40)])])


# ---- Temporary memory of kernels: the inputs need a part of the limit, and the kernel needs more ----

def regex_all(v):
    v.run([v.op("RegexReplace", v.joined(v.filled(64, np.array("a" * (v.limit // 1024), object)), 64), v.constant(np.array("a", object)),
                v.constant(np.array(r"\0" * 200, object)))])


def regex_static(v):
    v.run([v.op("StaticRegexReplace", v.fed(np.array("a" * MIB, object)), pattern=".*", rewrite=r"\0" * 4000)])


def joined_texts(v):
    x = v.fed(np.array("x" * MIB, object))
    v.run([v.op("StringJoin", *[x] * 4000)])


def added_texts(v):
    x = v.fed(np.array("x" * MIB, object))
    for _ in range(14):
        x = v.op("Add", x, x)
    v.run([x])


def split_texts(v):
    v.run([v.op("StringSplitV2", v.fed(np.array(["a " * (v.limit // 24)], object)), v.constant(np.array("", object)))])


def lowered_text(v):
    v.run([v.op("StringLower", v.fed(np.array(["Ä" * (v.limit // 16)], object)), encoding="utf-8")])


def encoded_text(v):
    x = v.fed(np.array("x" * (v.limit * 2 // 7 // 32), object))
    for _ in range(5):
        x = v.op("StringJoin", x, x)
    v.run([v.op("EncodeBase64", x)])


def unique(v):
    v.run([v.add("Unique", v.numbers(v.limit // 32), out_idx=i32).outputs[1]])


def shuffled(v):
    v.run([v.op("RandomShuffle", v.filled(v.limit // 9, np.int8(1)))])


def segments(v):
    n = v.limit // 12
    v.run([v.op("UnsortedSegmentSum", v.filled(n, np.float16(1)), v.numbers(n, dtype=i32), v.fed(i32(n)))])


def partitioned(v):
    n = v.limit // 12
    v.run([v.op("DynamicPartition", v.filled(n, np.int8(1)), v.op("Cast", v.filled(n, np.int8(0)), DstT=i32), num_partitions=1)])


def sparse_order(v):
    n = v.limit // 40
    places = v.op("Reshape", v.op("Neg", v.op("Sub", v.numbers(n), v.fed(i64(n)))), v.constant(i32([-1, 1])))
    v.run([v.op("SparseReorder", places, v.filled(n, np.int8(1)), v.fed(i64([v.limit])))])


def joined_sparse(v):
    n = v.limit // 60
    places = v.op("Reshape", v.op("Neg", v.op("Sub", v.numbers(n), v.fed(i64(n)))), v.constant(i32([-1, 1])))
    values, sizes = v.filled(n, np.int8(1)), v.fed(i64([v.limit]))
    v.run([v.op("SparseConcat", places, places, values, values, sizes, sizes, concat_dim=0)])


def read_tensor(v):
    """A few bytes stand for a tensor of int8 with twice as many elements as the limit has bytes."""
    size = bytes((v.limit * 2 >> 7 * k & 127) | (128 if k < 5 else 0) for k in range(6))
    v.run([v.op("ParseTensor", v.fed(np.array(b"\x08\x06\x12\x09\x12\x07\x08" + size, object)), out_type=np.int8)])


def widened(v):
    n = v.limit // 5
    v.run([v.op("TensorScatterAdd", v.filled(n, np.float16(1)), v.constant(i32([[0]])), v.constant(np.float16([1])))])


def states_of_labels(v):
    steps = v.limit // 8000  # of 2001 states, in double
    x = v.op("Reshape", v.filled(2 * steps, np.float64(0)), v.constant(i32([-1, 1, 2])))
    places = v.op("Pack", v.op("ZerosLike", v.numbers(1000)), v.numbers(1000), axis=1)
    v.run([v.add("CTCLoss", x, places, v.filled(1000, i32(0)), v.fed(i32([steps])), ctc_merge_repeated=False).outputs[0]])


def wide_beam(v):
    x = v.fed(np.random.default_rng(1).normal(size=(12, 1, 9)).astype(f32))
    v.run([v.add("CTCBeamSearchDecoder", x, v.fed(i32([12])), beam_width=1 << 40, top_paths=1).outputs[-1]])


def contraction(v):
    n = v.limit // 64 * 6 // 10
    x = v.op("Reshape", v.filled(n * 16, f32(1)), v.constant(i32([n, 16])))
    v.run([v.op("Einsum", x, x, x, equation="ab,ab,ab->a")])


def regexes(v):
    x = v.fed(np.array("".join(np.random.default_rng(1).choice(["a", "b"], 20_000)), object))
    v.run([v.op("StaticRegexFullMatch", x, pattern="(a|b)*a(a|b){13}" + "c?" * k) for k in range(200 * v.limit // (64 * MIB))])


def learned_classes(v):
    classes = np.arange(0, v.limit, 1024, dtype=i64).reshape(-1, 1)
    v.run(v.add("LearnedUnigramCandidateSampler", v.fed(classes), num_true=1, num_sampled=1, unique=False, range_max=v.limit).outputs)


def classes_of_a_file(v):
    with tempfile.TemporaryDirectory() as folder:
        n, file = v.limit // 16, pathlib.Path(folder) / "vocabulary"
        file.write_bytes(b"1\n" * n)
        v.run(v.add("FixedUnigramCandidateSampler", v.fed(i64([[0]])), num_true=1, num_sampled=1, unique=False, range_max=n,
                    vocab_file=str(file)).outputs)


def names_of_files(v):
    with tempfile.TemporaryDirectory() as folder:
        for k in range(500):
            (pathlib.Path(folder) / f"{k:0200}").touch()
        v.run([v.op("Size", v.op("MatchingFiles", v.fed(np.array([folder + "/*"] * (v.limit // 50_000), object))))])


def repeated_labels(v):
    n = v.limit // 7
    x = v.op("Reshape", v.filled(n, f32(1)), v.constant(i32([1, -1])))
    v.run([v.add("SoftmaxCrossEntropyWithLogits", x, v.op("Fill", v.fed(i32([1, 1])), v.constant(f32(1)))).outputs[0]])


def channels(v):
    n = v.limit // 64
    x, scale = v.op("Reshape", v.filled(n, f32(1)), v.constant(i32([1, 1, 1, -1]))), v.filled(n, f32(1))
    v.run([v.add("FusedBatchNormV3", x, scale, scale, scale, scale, is_training=False).outputs[0]])


def gathered(v):
    array = v.add("TensorArrayV3", v.fed(i32(1)), dtype=f32, clear_after_read=False)
    handle, flow = array.outputs
    flow = v.op("TensorArrayWriteV3", handle, v.constant(i32(0)), v.constant(f32(1)), flow)
    v.run([v.op("TensorArrayGatherV3", handle, v.filled(v.limit // 10, i32(0)), flow, dtype=f32)])


def saved(v):
    with tempfile.TemporaryDirectory() as folder:
        name = np.array(folder + "/x", object)
        n = v.limit // 24
        words = v.op("AsString", v.numbers(n), width=20)
        v.run(targets=[v.add("SaveV2", v.constant(name), v.constant(np.array(["x"], object)), v.constant(np.array([""], object)), words)])


def saved_table(v):
    table = v.op("MutableHashTableV2", key_dtype=i64, value_dtype=i64, shared_name="table")
    start, each = v.fed(i64(0)), v.limit // 80
    numbers = v.op("AddV2", v.numbers(each), start)
    v.run(targets=[v.add("LookupTableInsertV2", table, numbers, numbers)])
    kept = v.run([v.op("SaveResource", table)])
    more = [v.op("MutableHashTableV2", key_dtype=i64, value_dtype=i64, shared_name=f"table {k}") for k in range(20)]
    for other in more:
        v.run(targets=[v.add("RestoreResources", other, v.fed(kept[0]))])


# ---- Valid steps that fit ----

def varying_batches(v):
    """Runs steps of changing sizes, each of which needs at most a third of the limit."""
    x = v.placeholder(f32, (-1, 64))
    y = x
    for _ in range(3):
        y = v.op("Relu", v.op("MatMul", y, v.op("Fill", v.constant(i32([64, 64])), v.constant(f32(1)))))
    y = v.op("Sum", y, v.constant(i32([0, 1])))
    most = v.limit // 256 // 16
    for k in range(60):
        v.feeds[x] = np.ones((most * (k * 37 % 60 + 1) // 60, 64), f32)
        v.run([y])


def strings_that_come_and_go(v):
    n = v.limit // 1024
    for k in range(12):
        v.run([v.op("Size", v.op("AsString", v.numbers(n + k * 100), width=64))])


def folded_joins(v):
    x = v.constant(np.array("x" * 16, object))
    for _ in range(100):
        x = v.op("StringJoin", x, x, x, x)


def folded_regexes(v):
    x = v.constant(np.array("a" * 1000, object))
    for _ in range(1000):
        x = v.op("RegexReplace", x, v.constant(np.array("a", object)), v.constant(np.array(r"\0\0\0\0\0\0\0\0", object)))
        v.op("RegexReplace", v.constant(np.array("a" * 60_000, object)), v.constant(np.array("(a*)*b", object)),
             v.constant(np.array(r"\1", object)))


# {vector: text that the error has, such as the op's name; "" allows any error of the limit, None allows no error}
VECTORS = {
    strings: "AsString", one_string: "StringJoin", table_of_numbers: "LookupTableInsertV2", table_of_strings: "LookupTableInsertV2",
    static_table: "InitializeTableV2", rows_of_a_queue: "QueueEnqueueManyV2", elements_of_a_queue: "QueueEnqueueV2",
    elements_of_a_list: "TensorListFromTensor", places_of_a_list: "TensorListReserve", tensor_array: "TensorArrayScatterV3",
    stack: "", accumulator: "ResourceAccumulatorApplyGradient", sparse_accumulator: "ResourceSparseAccumulatorApplyGradient",
    barrier: "ResourceBarrierInsertMany", staged: "Stage", staged_by_key: "MapStage", variables: "", constants: "",
    regex_all: "RegexReplace", regex_static: "StaticRegexReplace", joined_texts: "StringJoin", added_texts: "Add",
    split_texts: "StringSplitV2", lowered_text: "StringLower", encoded_text: "EncodeBase64", unique: "Unique", shuffled: "RandomShuffle",
    segments: "UnsortedSegmentSum", partitioned: "DynamicPartition", sparse_order: "SparseReorder", joined_sparse: "SparseConcat", read_tensor: "ParseTensor", widened: "TensorScatterAdd",
    contraction: "Einsum", states_of_labels: "CTCLoss", wide_beam: "CTCBeamSearchDecoder", regexes: "StaticRegexFullMatch",
    learned_classes: "LearnedUnigramCandidateSampler",
    classes_of_a_file: "FixedUnigramCandidateSampler", names_of_files: "MatchingFiles", repeated_labels: "SoftmaxCrossEntropyWithLogits",
    channels: "FusedBatchNormV3", gathered: "TensorArrayGatherV3", saved: "", saved_table: "",
    plans: "a plan of", varying_batches: None, strings_that_come_and_go: None, folded_joins: None, folded_regexes: None,
}


# ---- One vector, in a process of its own ----

def most_held():
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))) * 1024


def child(name, limit):
    vector = next(f for f in VECTORS if f.__name__ == name)
    begin, error = time.monotonic(), None
    try:
        vector(Vector(limit))
    except thalweg.Error as e:
        error = f"{type(e).__name__}: {e}"
    print(json.dumps(dict(error=error, most=most_held(), seconds=time.monotonic() - begin)))


class Group:
    """A control group of version 1 or 2 with a limit; has no effect if this process may not make one."""

    def __init__(self, limit):
        self.folder, self.why = None, "no control group of memory is mounted"
        for root, file in ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"):
            if not os.path.exists(root + "/cgroup.procs"):
                continue
            folder = pathlib.Path(f"{root}/thalweg_{os.getpid()}_{limit}")
            try:
                folder.mkdir(exist_ok=True)
                (folder / file).write_text(str(limit))
                self.folder = folder
                return
            except OSError as e:
                self.why = f"no control group may be made: {e}"
                if folder.is_dir():
                    folder.rmdir()

    def enter(self):
        if self.folder:
            (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        for _ in range(200 if self.folder else 0):
            try:
                return self.folder.rmdir()
            except OSError:  # the last process is still exiting
                time.sleep(0.01)


def judge(vector, op, limit, group):
    where = f"{vector.__name__} at {limit // MIB} MiB"
    done = subprocess.run([sys.executable, __file__, "--child", vector.__name__, str(limit)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, preexec_fn=group.enter, timeout=600)
    if done.returncode:
        how = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit status {done.returncode}"
        return cases.holds(where, False, f"{how}: {done.stderr[-800:]}")
    said = json.loads(done.stdout)
    print(f"{where}: peak {said['most'] / MIB:.0f} MiB, {said['seconds']:.1f} s: {(said['error'] or 'fits')[:150]}")
    cases.holds(where, said["most"] <= limit + ROOM, f"held {said['most'] / MIB:.0f} MiB")
    if op is None:
        return cases.holds(where, said["error"] is None, said["error"])
    error = said["error"] or "no error"
    cases.holds(where, "ResourceExhausted" in error and op in error and "the session holds" in error and "memory_limit" in error, error)


def main():
    only = os.environ.get("VECTORS", "").split()
    for limit in [int(a) * MIB for a in sys.argv[1:]] or [64 * MIB]:
        group = Group(limit + ROOM)
        if not group.folder:
            print(f"skipped: {group.why}; judged by the most memory held alone")
        try:
            for vector, op in VECTORS.items():
                if not only or vector.__name__ in only:
                    judge(vector, op, limit, group)
        finally:
            group.close()
    cases.finish()


if __name__ == "__main__":
    child(sys.argv[2], int(sys.argv[3])) if sys.argv[1:2] == ["--child"] else main()
