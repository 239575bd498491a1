"""Random graphs of several ops, whose shapes are unknown, partly known or known. The inferred shape of every value, also with sizes that
the graph computes, is compatible with the real shape. A last op that may be invalid is rejected at every amount of knowledge, or at none.
`inference_test.py COUNT SEED`: COUNT graphs."""
import sys

import numpy as np

import cases
import tw
from attempts import alone, case, content, limit
from declare import declared, uses
from mutations import mutations

MOST = 600  # elements of a value; ops that make more are left out
STEPS, LAST = 6, 3  # steps of a graph, attempts at a last op
i32 = np.int32


class TooMuch(Exception):
    """A value has more elements than the test wants."""


UNSUITABLE = tw.Error, IndexError, TooMuch  # errors of a step that does not suit its value


class Program:
    """Ops over values, which have numbers as names; inputs of ops may also be arrays. steps: (op, inputs, attributes, outputs), or (None,
    array) for a feed. arrays: the values, computed by running each op alone."""

    def __init__(self, rng):
        self.rng, self.steps, self.arrays = rng, [], []

    def feed(self, array):
        self.steps.append((None, array))
        self.arrays.append(array)
        return len(self.arrays) - 1

    def op(self, op, *inputs, **attrs):
        """Adds an op and returns its output 0. Raises tw.Error if the op is rejected, and TooMuch if a value is too large."""
        try:
            got = tw.run(op, [self.array(x) for x in inputs], **attrs)
        except tw.Error as error:
            cases.holds(f"{op} {[self.array(x) for x in inputs]} {attrs}", error.code_name not in ("INTERNAL", "UNKNOWN"), error)
            raise
        if any(y.size > MOST or y.ndim > 8 for y in got):
            raise TooMuch(op)
        self.steps.append((op, inputs, attrs, len(got)))
        self.arrays += got
        return len(self.arrays) - len(got)

    def array(self, x):
        return self.arrays[x] if isinstance(x, int) else np.asarray(x)

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def value(self, takes=lambda array: True):
        """Returns a value that `takes` accepts, made from another value if necessary."""
        found = [k for k, array in enumerate(self.arrays) if takes(array)]
        return self.pick(*found) if found else None

    def build(self, tell):
        """Returns (a graph of the program, its feeds, all values). tell(rng, array): "constant", or the shape to declare."""
        graph, feeds, values = tw.Graph(), {}, []
        for op, *step in self.steps:
            if op is None:
                told = tell(self.rng, step[0])
                values.append(graph.constant(step[0]) if told == "constant" else graph.placeholder(step[0].dtype, told))
                if told != "constant":
                    feeds[values[-1]] = step[0]
                continue
            inputs, attrs, outputs = step
            arguments = [values[x] if isinstance(x, int) else graph.constant(x) for x in inputs]
            values += list(graph.add(op, *arguments, **attrs).outputs)[:outputs]
        return graph, feeds, values


# ---- Known parts of shapes ----


def nothing(rng, array):
    return None


def rank(rng, array):
    return (-1,) * array.ndim


def some(rng, array):
    if rng.integers(4) == 0:
        return "constant"
    return None if rng.integers(4) == 0 else tuple(-1 if rng.integers(2) else n for n in array.shape)


def shapes(rng, array):
    return array.shape


def everything(rng, array):
    return "constant"


KNOWN = (nothing, rank, some, some, shapes, everything)

# ---- Steps, most of which compute sizes from those of a value ----


def last_size(p, v):
    return p.op("StridedSlice", p.op("Shape", v), i32([-1]), i32([0]), i32([1]), shrink_axis_mask=1, end_mask=1)


def regrouped(p, v):
    return p.op("Reshape", v, p.op("ConcatV2", i32([-1]), p.op("Slice", p.op("Shape", v), i32([1]), i32([-1])), i32(0)))


def flattened(p, v):
    return p.op("Reshape", v, i32([-1]))


def reversed_axes(p, v):
    return p.op("Transpose", v, p.op("Sub", p.op("Sub", p.op("Rank", v), i32(1)), p.op("Range", i32(0), p.op("Rank", v), i32(1))))


def all_but_one(p, v):
    sizes = p.op("Maximum", p.op("Sub", p.op("Shape", v), i32(1)), i32(0))
    return p.op("Slice", v, p.op("ZerosLike", sizes), sizes)


def doubled(p, v):
    return p.op("Tile", v, p.op("AddV2", p.op("OnesLike", p.op("Shape", v)), i32(p.rng.integers(2))))


def stacked(p, v):
    return p.op("BroadcastTo", v, p.op("ConcatV2", i32([2]), p.op("Shape", v), i32(0)))


def padded(p, v):
    return p.op("Pad", v, p.op("Pack", p.op("ZerosLike", p.op("Shape", v)), p.op("OnesLike", p.op("Shape", v)), axis=1))


def joined(p, v):
    return p.op("ConcatV2", v, p.pick(v, all_but_one(p, v)), i32(p.rng.integers(-1, 1)))


def reduced(p, v):
    axes = p.pick(i32(0), i32([-1]), i32([]), p.op("Range", i32(0), p.op("Rank", v), i32(p.pick(1, 2))))
    return p.op(p.pick("Sum", "Max", "Mean"), v, axes, keep_dims=bool(p.rng.integers(2)))


def combined(p, v):
    other = p.pick(v, p.op("Max", v, i32(0), keep_dims=True), p.op("Sum", v, i32([-1]), keep_dims=True), p.op("Sum", v, i32(0)))
    return p.op(p.pick("AddV2", "Mul", "Maximum"), *p.pick((v, other), (other, v)))


def rows(p, v):
    return p.op("GatherV2", v, p.op("Range", i32(0), last_size(p, v), i32(p.pick(1, 2))), i32(-1))


def part(p, v):
    mask = dict(begin_mask=int(p.rng.integers(4)), end_mask=int(p.rng.integers(4)), shrink_axis_mask=p.pick(0, 1, 2),
                new_axis_mask=p.pick(0, 0, 1), ellipsis_mask=p.pick(0, 0, 2))
    begin, end, stride = (i32(p.rng.integers(low, high, p.pick(1, 2))) for low, high in ((-2, 2), (-2, 4), (1, 3)))
    n = min(len(begin), len(end), len(stride))
    return p.op("StridedSlice", v, begin[:n], end[:n], stride[:n], **mask)


def found(p, v):
    return p.op("Where", p.op("Greater", v, p.op("Mean", v, p.op("Range", i32(0), p.op("Rank", v), i32(1)))))


def grid(p, v):
    return p.op("Fill", p.op("Reshape", p.op(p.pick("Shape", "Size", "Rank"), v), i32([-1])), np.float32(1))


STRUCTURE = (regrouped, flattened, reversed_axes, all_but_one, doubled, stacked, padded, joined, reduced, combined, rows, part, found, grid,
             lambda p, v: p.op("ExpandDims", v, i32(p.rng.integers(-2, 2))), lambda p, v: p.op("Squeeze", v),
             lambda p, v: p.op("Split", i32(0), v, num_split=p.pick(1, 2)), lambda p, v: p.op("BatchMatMulV2", v, v, adj_y=True),
             lambda p, v: p.op("OneHot", p.op("ArgMax", v, i32(0)), last_size(p, v), np.float32(1), np.float32(0)),
             lambda p, v: p.op("Unique", flattened(p, v)), lambda p, v: p.op("Unpack", v, num=p.array(v).shape[0]),
             lambda p, v: p.op("Cast", p.op("Shape", v), SrcT=np.int32, DstT=np.float32))


def structured(p):
    p.pick(*STRUCTURE)(p, p.value(lambda array: array.dtype == np.float32))


# ---- Steps from declarations ----

PLAIN = [op for op, d in declared().ops.items() if not tw.ops()[op]["stateful"] and d.oracle and not tw.ops()[op]["touches"]]


def entered(p, x):
    """Returns the array as an argument: a value with as many numbers, a constant, or a feed."""
    v = p.value(lambda array: array.dtype == x.dtype == np.float32 and array.size >= x.size)
    if v is None or p.rng.integers(4) == 0:
        return x if p.rng.integers(2) else p.feed(x)
    if p.arrays[v].shape == x.shape:
        return v
    return p.op("Reshape", p.op("Slice", flattened(p, v), i32([0]), i32([x.size])), i32(x.shape))


def drawn(p):
    use = next(uses(declared().ops[p.pick(*PLAIN)], 1, int(p.rng.integers(10000))))
    if sum(x.size for x in use.flat) < MOST:
        p.op(use.op, *[entered(p, x) for x in use.flat], **use.attrs)


# ---- A last step that may be wrong ----


def computed(p, v, w):
    """Returns an op of two values, or of one value and the sizes of the other."""
    sizes, axis = p.op("Shape", w), i32(p.rng.integers(-1, 2))
    return p.pick(
        ("AddV2", [v, w], {}), ("ConcatV2", [v, w, axis], {}), ("Pack", [v, w], {}), ("MatMul", [v, w], {}), ("BatchMatMulV2", [v, w], {}),
        ("Reshape", [v, sizes], {}), ("BroadcastTo", [v, sizes], {}), ("Tile", [v, sizes], {}), ("GatherV2", [v, sizes, axis], {}),
        ("Slice", [v, p.op("ZerosLike", sizes), sizes], {}), ("Select", [p.op("IsFinite", v), v, w], {}),
        ("Transpose", [v, p.op("Range", i32(0), p.op("Rank", w), i32(1))], {}), ("Split", [axis, v], dict(num_split=2)),
        ("ReverseV2", [v, p.op("Reshape", p.op("Rank", w), i32([-1]))], {}), ("Unpack", [v], dict(num=2)),
        ("Squeeze", [v], dict(squeeze_dims=[0])), ("ScatterNd", [p.op("ExpandDims", sizes, i32(1)), w, p.op("Shape", v)], {}),
        ("EnsureShape", [v], dict(shape=(-1, 2))), ("ExpandDims", [v, p.op("Rank", w)], {}),
        ("Sum", [v, p.op("Sub", p.op("Rank", w), i32(1))], {}))


def mutated(p):
    use = next(uses(declared().ops[p.pick(*PLAIN)], 1, int(p.rng.integers(10000))))
    found = [*mutations(use, tw.ops()[use.op], p.rng)]
    if not found:
        return None
    wrong = p.pick(*found)
    inputs = [x for group in wrong.inputs for x in (group if isinstance(group, list) else [group])]
    small = sum(x.size for x in inputs) < MOST
    return (use.op, [p.feed(np.asarray(x)) for x in inputs], wrong.attrs) if small else None


def last(p):
    """Returns (op, inputs, attributes), or None if the program has no suitable values."""
    takes = lambda array: array.dtype == np.float32  # noqa: E731
    return mutated(p) if p.rng.integers(3) == 0 else computed(p, p.value(takes), p.value(takes))


def verdict(p, step, tell):
    """Returns the result of the last op, or the error."""
    op, inputs, attrs = step
    try:
        graph, feeds, values = p.build(tell)
        outputs = graph.add(op, *[values[x] if isinstance(x, int) else graph.constant(x) for x in inputs], name="op", **attrs).outputs
        return graph.session().step(outputs, feeds, read=content)(feeds.values())
    except tw.Error as error:
        return error


# ---- All of it ----


def argument(x):
    return f"%{x}" if isinstance(x, int) else str(np.asarray(x).tolist())[:60]


def text(p):
    def one(op, *step):
        if op is None:
            return f"fed {step[0].dtype}{list(step[0].shape)}"
        return f"{op}({', '.join(map(argument, step[0]))}) {step[1] or ''}"

    return " ; ".join(one(*step) for step in p.steps)


def grown(rng):
    p = Program(rng)
    for _ in range(2):
        p.feed(rng.normal(size=rng.choice([0, 1, 2, 2, 3, 4], rng.integers(0, 4))).astype(np.float32))
    for _ in range(STEPS):
        kept = len(p.steps), len(p.arrays)
        try:
            structured(p) if rng.integers(3) else drawn(p)
        except UNSUITABLE:
            p.steps, p.arrays = p.steps[:kept[0]], p.arrays[:kept[1]]
    return p


def admits(told, array):
    return told is None or len(told) == array.ndim and all(n in (None, -1, m) for n, m in zip(told, array.shape))


def equal(a, b):
    return a.tobytes() == b.tobytes() if b.dtype.kind == "V" else np.array_equal(a, b, equal_nan=b.dtype.kind in "fc")


def check_told(p, tell):
    graph, feeds, values = p.build(tell)
    for k, (y, array) in enumerate(zip(values, p.arrays)):
        cases.holds(f"%{k} of {text(p)}, {tell.__name__} known", admits(y.shape, array), f"the rules say {y.shape}, it is {array.shape}")
    got = graph.session().step(values, feeds)(feeds.values())
    same = all(map(equal, got, p.arrays))
    cases.holds(f"{text(p)}, {tell.__name__} known", same, "other values than the ops make one by one")


def check_last(p):
    """Checks the last op. Returns whether it was rejected."""
    try:
        step = last(p)
    except UNSUITABLE:
        return False
    if not step:
        return False
    case(f"{step} behind {text(p)}")
    verdicts = {f"{k} {tell.__name__}": verdict(p, step, tell) for k, tell in enumerate(KNOWN)}
    verdicts = {how: v for how, v in verdicts.items() if not isinstance(v, tw.Error) or v.code_name != "RESOURCE_EXHAUSTED"}
    errors = {how: v for how, v in verdicts.items() if isinstance(v, tw.Error)}
    others = {how: v for how, v in verdicts.items() if how not in errors}
    problem = None
    if errors and others:
        problem = f"refused with {[*errors]} known: {[*errors.values()][0]}; with {[*others]} it is {[*others.values()][0]}"
    if not errors and len({str(v) for v in others.values()}) > 1:
        problem = f"different results: {others}"
    cases.holds(f"{step} behind {text(p)}", not problem, problem)
    return bool(errors)


def worker(count, seed):
    limit()
    refused = steps = 0
    for k in range(count):
        p = grown(np.random.default_rng([seed, k]))
        case(text(p))
        for tell in KNOWN:
            check_told(p, tell)
        steps += len(p.steps)
        for _ in range(LAST):
            kept = p.steps[:], p.arrays[:]
            refused += check_last(p)
            p.steps, p.arrays = kept
    cases.holds("graphs have several ops", steps > 4 * count, steps)
    cases.holds("some last ops are refused, and not all", count * LAST / 8 < refused < count * LAST * 7 / 8, refused)
    print(f"{count} graphs of {steps} steps, {refused} of {LAST * count} last ops refused")
    cases.finish()


if __name__ == "__main__":
    arguments = sys.argv[1:] or ["100", "0"]
    worker(int(sys.argv[2]), int(sys.argv[3])) if arguments[0] == "worker" else alone(__file__, *(arguments + ["0"])[:2])
