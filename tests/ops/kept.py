"""Resources behind handles and names: queues, barriers, accumulators, mutexes, staging areas, tables, stacks, tensor arrays. Has one plain
use of each op on them, and the faults of a handle."""
import copy
import itertools
import re

import numpy as np

import tw
from draws import Use
from schema import ALL

numbers = itertools.count()  # make names unique


class Kept:
    """Stands for an input that is a handle or a reference: the resource that op `maker` makes from the inputs and attributes, after the ops
    of `before`, each (op, inputs after the handle, attributes), have run on it. through: the op whose result replaces the handle.
    state: "sound", "destroyed" when the op runs, or "not fed"."""
    dtype, shape, ndim, size = np.dtype(object), (), 0, 1

    def __init__(self, maker, *inputs, before=(), through=None, **attrs):
        self.maker, self.inputs, self.attrs, self.before, self.through, self.state = maker, inputs, attrs, tuple(before), through, "sound"

    def but(self, **changes):
        other = copy.copy(self)
        other.__dict__.update(changes)
        return other

    def __array__(self, dtype=None, copy=None):
        return np.array(f"{self.state} {self.maker}", object)

    def tolist(self):
        return f"{self.state} {self.maker}"

    def enter(self, graph, reference):
        """Returns (the value, the operations that run before its use, the operation that destroys it)."""
        attrs = named(self.maker, self.attrs)
        handle = graph.op(self.maker, *map(graph.constant, self.inputs), **attrs)
        end = graph.add("DestroyResourceOp", handle, ignore_lookup_error=True)
        steps = []
        for op, inputs, given in self.before:
            steps.append(graph.add(op, handle, *map(graph.constant, inputs), after=steps[-1:], **given))
        if self.state == "destroyed":
            steps.append(graph.add("DestroyResourceOp", handle, after=steps[-1:]))
        if self.state == "not fed":
            handle = graph.placeholder(tw.thalweg.as_dtype("variant" if self.through else "resource"))
        elif self.through:
            handle = graph.op(self.through, handle, after=steps[-1:])
        elif reference and by_reference(self.maker) in tw.ops():
            handle = graph.op(by_reference(self.maker), **attrs)
        return handle, steps, end


def by_reference(op):
    """Returns the form of the op on references, which older graphs use instead of handles."""
    return op.removesuffix("V2").removeprefix("Resource")


def named(op, attrs):
    """Returns the attributes with a unique name, if the op takes a name."""
    has = any(a["name"] == "shared_name" for a in tw.ops()[op]["attrs"])
    return attrs | {"shared_name": f"{attrs.get('shared_name', '')} kept {next(numbers)}"} if has else attrs


# ---- Resources ----

i32, i64 = lambda *v: np.array(v, np.int32), lambda *v: np.array(v, np.int64)
f, two, rows, flow = np.float32, np.ones(2, np.float32), np.ones((3, 2), np.float32), np.float32(0)
words = np.array([b"a", b"b"], object)
put, of_queue, shaped = dict(Tcomponents=[f]), dict(component_types=[f]), dict(component_types=[f], shapes=[(2,)])
typed, of_table, pairs = dict(dtype=f), dict(key_dtype=np.int64, value_dtype=f), dict(Tin=np.int64, Tout=f)
sparse = [np.int64(0), i64(0, 2), np.ones((2, 2), f), i64(3, 2)]

queue = Kept("FIFOQueueV2", before=[("QueueEnqueueV2", [two], put)] * 2, **shaped)
barrier = Kept("ResourceBarrier", before=[("ResourceBarrierInsertMany", [words, rows[:2]], dict(T=f, component_index=0))], **shaped)
accumulator = Kept("ResourceConditionalAccumulator", before=[("ResourceAccumulatorApplyGradient", [np.int64(0), two], typed)], shape=(2,),
                   **typed)
of_rows = Kept("ResourceSparseConditionalAccumulator", shape=(3, 2),
               before=[("ResourceSparseAccumulatorApplyGradient", sparse, typed | dict(has_known_shape=True))], **typed)
mutex = Kept("MutexV2")
table = Kept("MutableHashTableV2", before=[("LookupTableInsertV2", [i64(1, 2), two], pairs)], **of_table)
to_rows = Kept("MutableHashTableOfTensorsV2", before=[("LookupTableInsertV2", [i64(1, 2), rows[:2]], pairs)], value_shape=(2,), **of_table)
by_rows = Kept("MutableDenseHashTableV2", i64(0, 0), i64(9, 9), before=[("LookupTableInsertV2", [np.ones((1, 2), np.int64), two[:1]], pairs)],
               **of_table)
# A model of the pieces <unk> and a, a tokenizer of one word, and a vocabulary of words.
MODEL, WORD = b"\n\t\n\5<unk>\30\2\n\3\n\1a", '{"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"}}'
model, tokenizer = Kept("SentencepieceOp", model=MODEL), Kept("TextTokenizer", model=WORD)
vocabulary = Kept("MutableHashTableV2", before=[("LookupTableInsertV2", [words, i64(0, 1)], dict(Tin=tw.string, Tout=np.int64))],
                  key_dtype=tw.string, value_dtype=np.int64)
of_text, no, split = [words, np.int32(0), f(1)], [np.bool_(False)] * 3, dict(Tsplits=np.int64)
stack = Kept("StackV2", np.int32(3), before=[("StackPushV2", [two], dict(T=f))], elem_type=f)
array = Kept("TensorArrayV3", np.int32(3), before=[("TensorArrayScatterV3", [i32(0, 1), rows[:2], flow], dict(T=f))], **typed)
fresh = Kept("TensorArrayV3", np.int32(3), **typed)

HANDLES = [
    ("QueueEnqueueV2", [queue, [two]], put), ("QueueEnqueueManyV2", [queue, [rows]], put), ("QueueDequeueV2", [queue], of_queue),
    ("QueueDequeueManyV2", [queue, np.int32(1)], of_queue), ("QueueDequeueUpToV2", [queue, np.int32(1)], of_queue),
    ("QueueCloseV2", [queue], {}), ("QueueIsClosedV2", [queue], {}), ("QueueSizeV2", [queue], {}),
    ("FIFOQueueV2", [], shaped), ("RandomShuffleQueueV2", [], shaped), ("PaddingFIFOQueueV2", [], shaped), ("PriorityQueueV2", [], shaped),
    ("ResourceBarrierInsertMany", [barrier, np.array([b"c", b"d"], object), rows[:2]], dict(T=f, component_index=0)),
    ("ResourceBarrierTakeMany", [barrier, np.int32(2)], of_queue), ("ResourceBarrierClose", [barrier], {}),
    ("ResourceBarrierReadySize", [barrier], {}), ("ResourceBarrierIncompleteSize", [barrier], {}), ("ResourceBarrier", [], shaped),
    ("ResourceAccumulatorApplyGradient", [accumulator, np.int64(1), two], typed),
    ("ResourceAccumulatorNumAccumulated", [accumulator], {}), ("ResourceAccumulatorSetGlobalStep", [accumulator, np.int64(1)], {}),
    ("ResourceAccumulatorTakeGradient", [accumulator, np.int32(1)], typed), ("ResourceConditionalAccumulator", [], typed | dict(shape=(2,))),
    ("ResourceSparseAccumulatorApplyGradient", [of_rows, *sparse], typed | dict(has_known_shape=True)),
    ("ResourceSparseAccumulatorTakeGradient", [of_rows, np.int32(1)], typed),
    ("ResourceSparseConditionalAccumulator", [], typed | dict(shape=(3, 2))),
    ("MutexV2", [], {}), ("MutexLock", [mutex], {}), ("ConsumeMutexLock", [mutex.but(through="MutexLock")], {}),
    ("LookupTableFindV2", [table, i64(1, 5), f(0)], pairs), ("LookupTableFindV2", [to_rows, i64(1, 5), two], pairs),
    ("LookupTableFindV2", [by_rows, np.ones((2, 2), np.int64), f(0)], pairs), ("LookupTableInsertV2", [table, i64(1, 5), two], pairs),
    ("LookupTableInsertV2", [to_rows, i64(1, 5), rows[:2]], pairs), ("LookupTableInsertV2", [by_rows, np.ones((1, 2), np.int64), two[:1]], pairs),
    ("LookupTableRemoveV2", [table, i64(1, 5)], dict(Tin=np.int64)), ("LookupTableSizeV2", [table], {}),
    ("LookupTableRemoveV2", [by_rows, np.ones((1, 2), np.int64)], dict(Tin=np.int64)),
    ("LookupTableExportV2", [to_rows], dict(Tkeys=np.int64, Tvalues=f)), ("LookupTableImportV2", [table, i64(1, 5), two], pairs),
    ("InitializeTableV2", [Kept("HashTableV2", **of_table), i64(1, 5), two], dict(Tkey=np.int64, Tval=f)),
    ("HashTableV2", [], of_table), ("MutableHashTableV2", [], of_table), ("MutableHashTableOfTensorsV2", [], of_table | dict(value_shape=(2,))),
    ("MutableDenseHashTableV2", [i64(0, 0), i64(9, 9)], of_table),
    ("WordpieceTokenizeWithOffsets", [words, vocabulary],
     dict(suffix_indicator="##", max_bytes_per_word=9, use_unknown_token=True, unknown_token="?")),
    ("SentencepieceOp", [], dict(model=MODEL)), ("SentencepieceTokenizeOp", [model, *of_text, *no], split | dict(out_type=np.int32)),
    ("SentencepieceTokenizeWithOffsetsOp", [model, *of_text, *no], split | dict(out_type=np.int32)),
    ("SentencepieceDetokenizeOp", [model, i32(1, 0), i64(0, 2), *no], split | dict(T=np.int32)), ("SentencepieceVocabSizeOp", [model], {}),
    ("SentencepieceIdToStringOp", [model, i32(1, 0)], {}), ("SentencepieceStringToIdOp", [model, words], {}),
    ("TextTokenizer", [], dict(model=WORD)), ("TextTokenizerEncode", [tokenizer, words], dict(split)),
    ("TextTokenizerDecode", [tokenizer, i32(0, 0), i64(0, 2)], dict(split)), ("TextTokenizerVocabSize", [tokenizer], {}),
    ("TextTokenizerIdToString", [tokenizer, i32(0)], {}), ("TextTokenizerStringToId", [tokenizer, words], {}),
    ("StackPushV2", [stack, two], dict(T=f)), ("StackPopV2", [stack], dict(elem_type=f)), ("StackCloseV2", [stack], {}),
    ("TensorArrayGradV3", [array, flow], dict(source="g")), ("TensorArrayGradWithShape", [array, flow, i32(2)], dict(source="g")),
    ("TensorArrayWriteV3", [array, np.int32(2), two, flow], dict(T=f)), ("TensorArrayReadV3", [array, np.int32(1), flow], typed),
    ("TensorArrayWriteV3", [Kept("TensorArrayV3", np.int32(1), dynamic_size=True, **typed), np.int32(2), two, flow], dict(T=f)),
    ("TensorArrayGatherV3", [array, i32(1, 0), flow], typed), ("TensorArrayScatterV3", [array, i32(2), rows[:1], flow], dict(T=f)),
    ("TensorArrayConcatV3", [fresh.but(before=[("TensorArraySplitV3", [rows, i64(1, 0, 2), flow], dict(T=f))]), flow], typed),
    ("TensorArraySplitV3", [fresh, rows, i64(1, 0, 2), flow], dict(T=f)), ("TensorArraySizeV3", [array, flow], {}),
    ("TensorArrayCloseV3", [array], {}),
]

# Ops that find their resource by name, and the ops that run before them.
listed, laid = dict(dtypes=[f]), [("Stage", [two], dict(dtypes=[f]))] * 2
NAMED = [("Stage", [[two]], listed, []), ("Unstage", [], listed, laid), ("StagePeek", [np.int32(1)], listed, laid),
         ("StageSize", [], listed, laid), ("StageClear", [], listed, laid)]
for form in ("Map", "OrderedMap"):
    under = [(f"{form}Stage", [np.int64(key), i32(0), two], listed | dict(fake_dtypes=[f])) for key in (1, 2)]
    NAMED += [(f"{form}Stage", [np.int64(3), i32(0), [two]], listed | dict(fake_dtypes=[f]), under),
              (f"{form}Unstage", [np.int64(1), i32(0)], listed, under), (f"{form}Peek", [np.int64(1), i32(0)], listed, under),
              (f"{form}UnstageNoKey", [i32(0)], listed, under)]
    NAMED += [(f"{form}{what}", [], listed, under) for what in ("Size", "IncompleteSize", "Clear")]
BEFORE = {op: before for op, _, _, before in NAMED}


def types_of(op, attrs):
    """Returns the names of the types of the schema's attributes that hold one type."""
    return {a["name"]: tw.number_name(np.dtype(attrs[a["name"]])) for a in tw.ops()[op]["attrs"] if a["kind"] == "type" and not a["list"]}


def plain_uses():
    """Yields one or several uses of each op, also of the ops on references."""
    for op, inputs, attrs in HANDLES + [use[:3] for use in NAMED]:
        for form in (op, by_reference(op)):
            if form == op or re.search(rf"runs_as {op}\b", tw.ops().get(form, {}).get("schema", "")):
                yield Use(form, list(inputs), dict(attrs), types_of(form, attrs))


OPS = {form: use for use in [*HANDLES, *NAMED] for form in (use[0], by_reference(use[0])) if form in tw.ops()}
# Ops that make a resource once; the resource stays.
MADE = {op for op in OPS if [y.get("type") for y in tw.ops()[op]["outputs"]] == ["resource"] and "once" in tw.ops()[op]["schema"]}

REFERENCES = {op for op in OPS if any(y.get("ref") for y in tw.ops()[op]["outputs"])}  # their outputs have no value to fetch


def laid_down(graph, op, attrs):
    """Returns the operations that must run before an op that finds its resource by name."""
    steps = []
    for before, inputs, given in BEFORE.get(op, []):
        steps.append(graph.add(before, *map(graph.constant, inputs), after=steps[-1:], **given, shared_name=attrs["shared_name"]))
    return steps


# ---- Faults of a handle ----

CLOSING = {"FIFOQueueV2": "QueueCloseV2", "ResourceBarrier": "ResourceBarrierClose", "StackV2": "StackCloseV2",
           "TensorArrayV3": "TensorArrayCloseV3"}


def retyped(x, dtype):
    """Returns the attributes with another type in place of float, or None if the op does not take that type."""
    allowed = {a["name"]: a.get("allowed", ALL) for a in tw.ops()[x.maker]["attrs"] if a["kind"] == "type"}
    changed = {a: [dtype] if v == [f] else dtype for a, v in x.attrs.items() if v == [f] or v is f}
    fits = all(tw.number_name(np.dtype(dtype)) in allowed[a] for a in changed)
    return x.attrs | changed if changed and fits else None


def spoilt(x):
    """Yields (the fault, the handle)."""
    yield "destroyed", x.but(state="destroyed")
    yield "not fed", x.but(state="not fed")
    yield "empty", x.but(before=())
    if x.through:
        return
    for dtype in (np.int32, np.float64, tw.string):
        if attrs := retyped(x, dtype):
            yield f"of {tw.number_name(np.dtype(dtype))}", x.but(attrs=attrs, before=())
    if x.maker in CLOSING:
        yield "closed", x.but(before=(*x.before, (CLOSING[x.maker], [], {})))
    if "shapes" in x.attrs:
        yield "of other shapes", x.but(attrs=x.attrs | dict(shapes=[(3,)]), before=())
        yield "of two components", x.but(attrs=x.attrs | dict(component_types=[f, f], shapes=[(2,), (2,)]), before=())
    other = mutex if x.maker != "MutexV2" else table
    yield f"a handle of {other.maker}", other
    yield "a handle of a variable", Kept("VarHandleOp", dtype=np.dtype(f), shape=(2,))
