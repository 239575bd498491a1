"""The cases of `tools/bench ops`: about a million elements in one type for each op, images for convolutions and pools. Element-wise ops
and reductions take their cases from their declarations in tests/ops, with numbers of their domains; the others are in the table, a line
each. An op that has no case, and no reason in LEFT_OUT, is reported.
An input of a case is an array, a function that makes one with a random generator, a list of these for an input of variable length, or a
Variable for a resource."""
import dataclasses

import numpy as np

import declare
import tw
from schema import type_of

N = 1 << 20
TEXTS = 1 << 16


@dataclasses.dataclass
class Case:
    op: str
    inputs: list
    attrs: dict
    note: str = ""     # distinguishes this case from others of the op
    agree: int = 99     # how many of the first outputs must be the same on both sides
    steps: tuple = ()   # a chain of ops, the last of which gives the outputs, for values that cannot be fed or fetched

    @property
    def name(self):
        return f"{self.op} {self.note}".strip()

    def made(self):
        """Returns the inputs as arrays."""
        rng = np.random.default_rng(7)
        return [[drawn(x, rng) for x in x_] if isinstance(x_, list) else drawn(x_, rng) for x_ in self.inputs]


@dataclasses.dataclass
class Step:
    """One op of a chain. args: an index of the case's inputs, (step, output), or a list of these. once: the op runs only once, before
    anything is timed."""
    op: str
    args: list
    attrs: dict
    once: bool = False


@dataclasses.dataclass
class Variable:
    """A resource with this initial value."""
    value: object


def drawn(x, rng):
    return Variable(drawn(x.value, rng)) if isinstance(x, Variable) else x(rng) if callable(x) else np.asarray(x)


def f(*shape, low=-1, high=1):
    return lambda rng: rng.uniform(low, high, shape).astype(np.float32)


def up(*shape):
    """Makes positive numbers."""
    return f(*shape, low=0.1, high=2)


def whole(low, high, *shape, kind=np.int32):
    """Makes integers from low to high - 1."""
    return lambda rng: rng.integers(low, high, shape).astype(kind)


def ids(segments, *shape):
    """Makes sorted ids of `segments` segments."""
    return lambda rng: np.sort(rng.integers(0, segments, shape)).astype(np.int32)


def eight(kind, *shape):
    """Makes quantised numbers of 8 bits."""
    return lambda rng: rng.integers(0, 256, shape, np.uint8).view(tw.ABSENT[kind])


def places(rows, columns, n):
    """Makes n different positions in a matrix, in order."""
    return lambda rng: np.stack(np.unravel_index(np.sort(rng.choice(rows * columns, n, replace=False)), (rows, columns)), 1).astype(np.int64)


def some(count, of, kind=np.int32):
    """Makes `count` different row numbers below `of`."""
    return lambda rng: rng.permutation(of)[:count].astype(kind)


def i32(*values):
    return np.array(values, np.int32)


def scalar(value, kind=np.float32):
    return np.array(value, kind)


def texts(low=4, high=24, letters=b"abcdefghijklmnopqrstuvwxyz ABCDE"):
    def make(rng):
        lengths = rng.integers(low, high, TEXTS)
        return np.array([bytes(rng.choice(list(letters), n).astype(np.uint8)) for n in lengths])
    return make


def numbers(rng):
    return np.array([f"{x:.6g}".encode() for x in rng.normal(0, 100, TEXTS)])


def base64(rng):
    return np.array([b"QUJD" * n for n in rng.integers(1, 6, TEXTS)])


# ---- The table ----

table = []


def case(op, *inputs, note="", agree=99, **attrs):
    table.append(Case(op, list(inputs), attrs, note, agree))


SQUARE, ROWS, IMAGE, VOLUME = (1024, 1024), (16384, 64), (8, 64, 64, 32), (2, 16, 32, 32, 32)
HALVED = (8, 32, 32, 32)
ONES, TWOS = [1, 1, 1, 1], [1, 2, 2, 1]
POOL = dict(ksize=TWOS, strides=TWOS, padding="VALID")
SAME = dict(strides=ONES, padding="SAME")
SAME_3D = dict(strides=[1, 1, 1, 1, 1], padding="SAME")


def first_image(rng):
    return f(*IMAGE)(np.random.default_rng(1))


def first_pooled(rng):
    return first_image(rng).reshape(8, 32, 2, 32, 2, 32).max((2, 4))


case("MatMul", f(*SQUARE), f(*SQUARE))
case("BatchMatMul", f(64, 128, 128), f(64, 128, 128))
case("BatchMatMulV2", f(64, 128, 128), f(64, 128, 128))
case("BatchMatMulV3", f(64, 128, 128), f(64, 128, 128), Tout=np.float32)
case("Einsum", [f(64, 128, 128), f(64, 128, 128)], equation="bij,bjk->bik")
case("Einsum", [f(*SQUARE)], equation="ij->ji", note="transposing")
case("Einsum", [f(*SQUARE), f(1024)], equation="ij,j->i", note="of a vector")
case("Conv2D", f(*IMAGE), f(3, 3, 32, 32), **SAME)
case("Conv2D", f(*IMAGE), f(1, 1, 32, 64), **SAME, note="1x1")
case("Conv2DBackpropInput", i32(*IMAGE), f(3, 3, 32, 32), f(*IMAGE), **SAME)
case("Conv2DBackpropFilter", f(*IMAGE), i32(3, 3, 32, 32), f(*IMAGE), **SAME)
case("Conv3D", f(*VOLUME), f(3, 3, 3, 32, 16), **SAME_3D)
case("Conv3DBackpropInputV2", i32(*VOLUME), f(3, 3, 3, 32, 16), f(2, 16, 32, 32, 16), **SAME_3D)
case("Conv3DBackpropFilterV2", f(*VOLUME), i32(3, 3, 3, 32, 16), f(2, 16, 32, 32, 16), **SAME_3D)
case("DepthwiseConv2dNative", f(*IMAGE), f(3, 3, 32, 1), **SAME)
case("DepthwiseConv2dNative", f(16, 256, 256, 1), f(3, 3, 1, 1), **SAME, note="of one channel")
case("DepthwiseConv2dNative", f(4, 256, 256, 4), f(3, 3, 4, 2), **SAME, note="of four channels")
case("DepthwiseConv2dNativeBackpropInput", i32(*IMAGE), f(3, 3, 32, 1), f(*IMAGE), **SAME)
case("DepthwiseConv2dNativeBackpropInput", i32(16, 256, 256, 1), f(3, 3, 1, 1), f(16, 256, 256, 1), **SAME, note="of one channel")
case("DepthwiseConv2dNativeBackpropFilter", f(*IMAGE), i32(3, 3, 32, 1), f(*IMAGE), **SAME)
case("DepthwiseConv2dNativeBackpropFilter", f(16, 256, 256, 1), i32(3, 3, 1, 1), f(16, 256, 256, 1), **SAME, note="of one channel")
case("MaxPool", f(*IMAGE), **POOL)
case("MaxPool", f(*IMAGE), ksize=[1, 3, 3, 1], strides=ONES, padding="SAME", note="3x3")
case("MaxPoolV2", f(*IMAGE), i32(*TWOS), i32(*TWOS), padding="VALID")
case("MaxPoolGrad", first_image, first_pooled, f(*HALVED), **POOL)
case("MaxPoolGradV2", first_image, first_pooled, f(*HALVED), i32(*TWOS), i32(*TWOS), padding="VALID")
case("MaxPoolGradGrad", first_image, first_pooled, f(*IMAGE), **POOL)
case("MaxPoolGradGradV2", first_image, first_pooled, f(*IMAGE), i32(*TWOS), i32(*TWOS), padding="VALID")
case("AvgPool", f(*IMAGE), **POOL)
case("AvgPool", f(*IMAGE), ksize=[1, 3, 3, 1], strides=ONES, padding="SAME", note="3x3")
case("AvgPoolGrad", i32(*IMAGE), f(*HALVED), **POOL)
case("LRN", f(*IMAGE), depth_radius=5)
case("LRNGrad", f(*IMAGE), f(*IMAGE), up(*IMAGE), depth_radius=5)
for v, kinds in (("", {}), ("V2", dict(U=np.float32)), ("V3", dict(U=np.float32))):
    last = [f(32)] if v == "V3" else []
    case(f"FusedBatchNorm{v}", f(*IMAGE), f(32), f(32), f(0), f(0))
    case(f"FusedBatchNorm{v}", f(*IMAGE), f(32), f(32), f(32), up(32), is_training=False, note="inference")
    case(f"FusedBatchNormGrad{v}", f(*IMAGE), f(*IMAGE), f(32), f(32), up(32), *last, agree=3)
case("BiasAdd", f(*SQUARE), f(1024))
case("BiasAddGrad", f(*SQUARE))
case("ResizeBilinear", f(8, 32, 32, 32), i32(64, 64))
case("ResizeBilinearGrad", f(*IMAGE), f(8, 32, 32, 32))
case("ResizeNearestNeighbor", f(8, 32, 32, 32), i32(64, 64))
case("ResizeNearestNeighborGrad", f(*IMAGE), i32(32, 32))
case("Softmax", f(*SQUARE))
case("Softmax", f(N // 16, 16), note="of short rows")
case("LogSoftmax", f(*SQUARE))
case("SoftmaxCrossEntropyWithLogits", f(*SQUARE), lambda rng: rng.dirichlet(np.ones(1024), 1024).astype(np.float32))
case("SparseSoftmaxCrossEntropyWithLogits", f(*SQUARE), whole(0, 1024, 1024))
case("InTopKV2", f(*SQUARE), whole(0, 1024, 1024), scalar(10, np.int32))
case("TopKV2", f(*SQUARE), scalar(10, np.int32))
case("TopKV2", f(16, N // 16), scalar(1000, np.int32), note="a thousand")

for name in ("Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm", "All", "Any"):
    x = np.full(SQUARE, name == "All") if name in ("All", "Any") else f(*SQUARE, low=0.9, high=1.1)
    for axes in ((1,), (0,), (0, 1)):
        case(name, x, i32(*axes), note={(1,): "", (0,): "of columns", (0, 1): "of all"}[axes])
for name in ("ArgMax", "ArgMin"):
    case(name, f(*SQUARE), scalar(1, np.int32))
    case(name, f(*SQUARE), scalar(0, np.int32), note="of columns")
for name in ("Cumsum", "Cumprod"):
    case(name, f(*SQUARE, low=0.9, high=1.1), scalar(1, np.int32))
    case(name, f(*SQUARE, low=0.9, high=1.1), scalar(0, np.int32), note="of columns")
case("Sum", f(64, 16, 1024), i32(1), note="of the middle axis")
case("Sum", whole(0, 9, *SQUARE), i32(1), note="of int32")

for name in ("SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd"):
    case(name, f(*ROWS), ids(4096, 16384))
    case(name, f(N), ids(4096, N), note="of a vector")
    case(name, f(*ROWS), np.zeros(16384, np.int32), note="into one")
for name in ("UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd"):
    case(name, f(*ROWS), whole(0, 4096, 16384), scalar(4096, np.int32))
    case(name, f(N), whole(0, 4096, N), scalar(4096, np.int32), note="of a vector")
    case(name, f(*ROWS), np.zeros(16384, np.int32), scalar(1, np.int32), note="into one")
for name in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
    case(name, f(*ROWS), whole(0, 16384, 16384), ids(4096, 16384))
    case(f"{name}WithNumSegments", f(*ROWS), whole(0, 16384, 16384), ids(4096, 16384), scalar(4096, np.int32))
    case(f"{name}Grad", f(4096, 64), whole(0, 16384, 16384), ids(4096, 16384), scalar(16384, np.int32))
SPARSE = places(4096, 4096, 65536), f(65536), np.array([4096, 4096])
case("SparseTensorDenseMatMul", *SPARSE, f(4096, 64))
case("SparseTensorDenseMatMul", *SPARSE, f(4096, 64), adjoint_a=True, note="turned")
case("SparseTensorDenseMatMul", *SPARSE, f(64, 4096), adjoint_b=True, note="with a turned matrix")
case("SparseTensorDenseMatMul", *SPARSE, f(4096, 1), note="with a vector")
case("SparseToDense", places(*SQUARE, 65536), np.array(SQUARE), f(65536), scalar(0))
SPLITS = np.arange(0, N + 1, 16)
case("RaggedRange", np.zeros(65536, np.int32), scalar(16, np.int32), scalar(1, np.int32))
case("RaggedGather", [SPLITS], f(N), lambda rng: rng.integers(0, N // 16, 65536), OUTPUT_RAGGED_RANK=1)
case("RaggedTensorToSparse", [SPLITS], f(N))
case("RaggedTensorToTensor", np.array([-1, 24]), f(N), scalar(0), [SPLITS], row_partition_types=["ROW_SPLITS"])
case("SparseFillEmptyRows", lambda rng: np.sort(rng.integers(0, 65536, 65536))[:, None] * np.array([[1, 0]]), f(65536), np.array([65536, 4]), scalar(0))
case("SparseFillEmptyRowsGrad", lambda rng: rng.permutation(N)[:65536], f(N), agree=1)
case("SparseReshape", whole(0, 1024, 65536, 2, kind=np.int64), np.array([1024, 1024]), np.array([64, -1]))
case("SparseReorder", whole(0, 1024, 65536, 2, kind=np.int64), f(65536), np.array(SQUARE), agree=1)
SORTED, SIZES = places(*SQUARE, 65536), np.array(SQUARE)
case("SparseAdd", SORTED, f(65536), SIZES, places(*SQUARE, 65536), f(65536), SIZES, scalar(0))
case("SparseSparseMaximum", SORTED, f(65536), SIZES, places(*SQUARE, 65536), f(65536), SIZES)
case("SparseSparseMinimum", SORTED, f(65536), SIZES, places(*SQUARE, 65536), f(65536), SIZES)
case("SparseConcat", [SORTED, SORTED], [f(65536), f(65536)], [SIZES, SIZES], concat_dim=1)
case("SparseSplit", np.int64(1), SORTED, f(65536), SIZES, num_split=8)
case("SparseSlice", SORTED, f(65536), SIZES, np.array([0, 256]), np.array([1024, 512]))
case("SparseReduceSum", SORTED, f(65536), SIZES, np.array([0], np.int32), agree=1)
case("SparseReduceSumSparse", SORTED, f(65536), SIZES, np.array([0], np.int32), agree=1)
case("SparseReduceMax", SORTED, f(65536), SIZES, np.array([1], np.int32))
case("SparseReduceMaxSparse", SORTED, f(65536), SIZES, np.array([1], np.int32))
case("SparseSoftmax", SORTED, f(65536), SIZES)
EACH_16TH = np.stack(np.unravel_index(np.arange(65536) * 16, SQUARE), 1).astype(np.int64)
case("SparseAddGrad", f(65536), EACH_16TH, EACH_16TH, EACH_16TH)
case("SparseSliceGrad", f(65536), EACH_16TH, np.array([0, 0]), EACH_16TH)
case("SparseDenseCwiseAdd", SORTED, f(65536), SIZES, f(*SQUARE))
case("SparseDenseCwiseMul", SORTED, f(65536), SIZES, f(*SQUARE))
case("SparseDenseCwiseDiv", SORTED, f(65536), SIZES, f(*SQUARE))
case("SparseTensorDenseAdd", SORTED, f(65536), SIZES, f(*SQUARE))
case("Bincount", whole(0, 1000, N), scalar(1000, np.int32), f(0))
case("Bucketize", f(N), boundaries=[float(x) for x in np.linspace(-1, 1, 100).astype(np.float32)])
case("ClipByValue", f(N), scalar(-0.5), scalar(0.5))
case("Pow", up(N), f(N))
case("Div", f(N), up(N))
case("FloorDiv", f(N), up(N))
case("FloorMod", f(N), up(N))
case("TruncateDiv", whole(-1000, 1000, N), whole(1, 100, N))
case("Add", f(*SQUARE), f(1024), note="of a row")
case("Mul", f(*SQUARE), f(1024, 1), note="of a column")
case("Mul", f(N), scalar(3), note="of a number")
case("ApproximateEqual", f(N), f(N))
case("AccumulateNV2", [f(N)] * 4, shape=(N,))
case("Polygamma", lambda rng: rng.integers(1, 4, N).astype(np.float32), up(N))

case("Cast", f(N), DstT=np.int32, SrcT=np.float32)
case("Cast", f(N), DstT=np.float64, SrcT=np.float32, note="to double")
case("Cast", f(N), DstT=np.float16, SrcT=np.float32, note="to half")
case("Cast", whole(0, 9, N), DstT=np.float32, SrcT=np.int32, note="from int32")
case("CheckNumerics", f(N), message="")
case("Bitcast", f(N), type=np.int32)
case("Reshape", f(N), i32(*SQUARE))
case("Squeeze", f(1, N, 1))
case("ExpandDims", f(N), scalar(0, np.int32))
case("EnsureShape", f(N), shape=(N,))
case("IdentityN", [f(N), f(N)])
case("ShapeN", [f(N), f(N)])
case("BroadcastArgs", i32(1024, 1), i32(1, 1024))
case("BroadcastGradientArgs", i32(1024, 1), i32(1, 1024))
case("BroadcastTo", f(1024, 1), i32(*SQUARE))
case("BroadcastTo", f(1024), i32(*SQUARE), note="of a row")
case("Fill", i32(*SQUARE), scalar(1))
case("Range", scalar(0), scalar(N), scalar(1))
case("LinSpace", scalar(0), scalar(1), scalar(N, np.int32))
case("OneHot", whole(0, 128, 8192), scalar(128, np.int32), scalar(1), scalar(0))
case("Concat", scalar(1, np.int32), [f(1024, 512), f(1024, 512)])
case("ConcatV2", [f(1024, 512), f(1024, 512)], scalar(1, np.int32))
case("ConcatV2", [f(512, 1024), f(512, 1024)], scalar(0, np.int32), note="of rows")
case("ConcatOffset", scalar(1, np.int32), [i32(1024, 512), i32(1024, 512)])
case("Split", scalar(1, np.int32), f(*SQUARE), num_split=4)
case("SplitV", f(*SQUARE), i32(256, 512, 256), scalar(1, np.int32), num_split=3)
case("Pack", [f(N // 4)] * 4)
case("Pack", [f(N // 4)] * 4, axis=1, note="interleaved")
case("Unpack", f(4, N // 4), num=4)
case("Unpack", f(N // 4, 4), num=4, axis=1, note="interleaved")
case("Pad", f(*IMAGE), np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
case("PadV2", f(*IMAGE), np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32), scalar(1))
case("MirrorPad", f(*IMAGE), np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32), mode="REFLECT")
case("MirrorPadGrad", f(8, 66, 66, 32), np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32), mode="REFLECT")
case("Tile", f(256, 256), i32(4, 4))
case("Slice", f(2048, 2048), i32(512, 512), i32(*SQUARE))
case("StridedSlice", f(2048, 2048), i32(0, 0), i32(2048, 2048), i32(2, 2))
case("StridedSlice", f(2048, 1024), i32(512, 0), i32(1536, 1024), i32(1, 1), note="of rows")
case("StridedSliceGrad", i32(*SQUARE), i32(0, 0), i32(*SQUARE), i32(2, 2), f(512, 512))
case("ReverseV2", f(*SQUARE), i32(1))
case("ReverseSequence", f(*SQUARE), whole(1, 1024, 1024), seq_dim=1, batch_dim=0)
case("Roll", f(*SQUARE), i32(3, 5), i32(0, 1))
case("NthElement", f(*SQUARE), scalar(100, np.int32))
case("ReverseV2", f(*SQUARE), i32(0), note="of rows")
case("Transpose", f(*SQUARE), i32(1, 0))
case("Transpose", f(*IMAGE), i32(0, 3, 1, 2), note="to channels first")
case("Transpose", f(8, 32, 64, 64), i32(0, 2, 3, 1), note="to channels last")
case("SpaceToDepth", f(*IMAGE), block_size=2)
case("DepthToSpace", f(*IMAGE), block_size=2)
case("InvertPermutation", some(N, N))
case("Gather", f(65536, 64), whole(0, 65536, 16384))
case("GatherV2", f(65536, 64), whole(0, 65536, 16384), scalar(0, np.int32))
case("GatherV2", f(N), whole(0, N, N), scalar(0, np.int32), note="of numbers")
case("GatherV2", f(*SQUARE), whole(0, 1024, 1024), scalar(1, np.int32), note="of columns")
case("GatherNd", f(65536, 64), whole(0, 65536, 16384, 1))
case("GatherNd", f(*SQUARE), whole(0, 1024, N, 2), note="of numbers")
case("ScatterNd", some(N, N)(np.random.default_rng(0)).reshape(N, 1), f(N), i32(N), note="of numbers")
case("ScatterNd", lambda rng: rng.permutation(16384).astype(np.int32).reshape(-1, 1), f(*ROWS), i32(*ROWS))
for name in ("Update", "Add", "Sub", "Max", "Min"):
    case(f"TensorScatter{name}", f(*ROWS), lambda rng: rng.permutation(16384).astype(np.int32).reshape(-1, 1), f(*ROWS))
case("TensorScatterAdd", f(N), lambda rng: rng.permutation(N).astype(np.int32).reshape(-1, 1), f(N), note="of numbers")
case("DynamicPartition", f(*ROWS), whole(0, 4, 16384), num_partitions=4)
case("DynamicPartition", f(N), whole(0, 4, N), num_partitions=4, note="of numbers")
for name in ("DynamicStitch", "ParallelDynamicStitch"):
    case(name, [np.arange(0, 16384, 2, dtype=np.int32), np.arange(1, 16384, 2, dtype=np.int32)], [f(8192, 64), f(8192, 64)])
case("MatrixBandPart", f(*SQUARE), scalar(8, np.int32), scalar(8, np.int32))
case("MatrixDiagV3", f(1024), scalar(0, np.int32), scalar(-1, np.int32), scalar(-1, np.int32), scalar(0))
case("MatrixDiagPartV3", f(*SQUARE), i32(-8, 8), scalar(0))
case("MatrixSetDiagV3", f(*SQUARE), f(1024), scalar(0, np.int32))
case("Select", lambda rng: rng.integers(0, 2, N) > 0, f(N), f(N))
case("Unique", whole(0, 65536, N))
case("UniqueV2", whole(0, 65536, N), np.zeros(0, np.int64))
case("Where", lambda rng: rng.integers(0, 2, SQUARE) > 0)
case("RandomShuffle", f(*ROWS), seed=3, seed2=5, agree=0)

for name in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
    case(name, i32(N), dtype=np.float32, seed=3, seed2=5)
case("RandomUniformInt", i32(N), scalar(0, np.int32), scalar(1000, np.int32), seed=3, seed2=5)
case("Multinomial", f(1024, 64), scalar(16, np.int32), seed=3, seed2=5, agree=0)
for name in ("Uniform", "Normal"):
    case(f"StatelessRandom{name}V2", i32(N), np.array([7], np.uint64), np.array([1, 2], np.uint64), i32(1)[0])
KEY = np.array([7], np.uint64), np.array([1, 2], np.uint64), i32(1)[0]
case("StatelessRandomUniformIntV2", i32(N), *KEY, scalar(0, np.int32), scalar(1000, np.int32))
case("StatelessRandomUniformFullIntV2", i32(N), *KEY, dtype=np.uint32)
case("RandomGamma", i32(16384), np.float32([0.5, 1, 4, 40]), seed=3, seed2=5)
case("StatelessRandomGammaV2", i32(16384, 4), np.array([3, 5]), np.float32([0.5, 1, 4, 40]))
case("StatelessRandomGammaV3", i32(16384, 4), *KEY, np.float32([0.5, 1, 4, 40]))
case("RandomGammaGrad", lambda rng: rng.uniform(0.5, 40, 16384), lambda rng: rng.gamma(20, size=16384))
case("RandomPoissonV2", i32(16384), np.float32([0.5, 4, 20, 300]), seed=3, seed2=5, dtype=np.int64)
case("StatelessRandomPoisson", i32(16384, 4), np.array([3, 5]), np.float32([0.5, 4, 20, 300]), dtype=np.int64)
case("StatelessShuffle", f(*ROWS), *KEY)
case("StatelessMultinomial", f(1024, 64), scalar(16, np.int32), np.array([3, 5]), agree=0)
case("StatelessTruncatedNormalV2", i32(N), np.array([7], np.uint64), np.array([1, 2], np.uint64), i32(1)[0])

case("AsString", f(TEXTS))
case("AsString", whole(-1000, 1000, TEXTS), note="of int32")
case("StringToNumber", numbers)
case("StringToNumber", lambda rng: rng.integers(-9999, 9999, TEXTS).astype("S"), out_type=np.int32, note="to int32")
case("StringJoin", [texts(), texts(), texts()], separator="/")
case("StringLength", texts())
case("StringLower", texts())
case("StringUpper", texts())
case("StringStrip", texts())
case("StringSplitV2", texts(), np.array(b" "))
case("StringNGrams", texts(), np.arange(0, TEXTS + 1, 16), separator=" ", ngram_widths=[2], left_pad="", right_pad="", pad_width=0,
     preserve_short_sequences=False)
case("ReduceJoin", lambda rng: texts()(rng).reshape(-1, 16), i32(1))
case("UnsortedSegmentJoin", texts(), whole(0, 4096, TEXTS), scalar(4096, np.int32))
case("UnicodeDecode", texts(), input_encoding="UTF-8")
case("UnicodeDecodeWithOffsets", texts(), input_encoding="UTF-8")
case("UnicodeEncode", whole(32, 0x3000, TEXTS * 16), np.arange(0, TEXTS * 16 + 1, 16), output_encoding="UTF-8")
case("UnicodeTranscode", texts(), input_encoding="UTF-8", output_encoding="UTF-16-BE")
case("SparseCross", [], [], [], [whole(0, 1000, TEXTS, 2, kind=np.int64), whole(0, 1000, TEXTS, 2, kind=np.int64)], hashed_output=True, num_buckets=1000,
     hash_key=7, out_type=np.int64, internal_type=np.int64)
case("SparseCrossV2", [], [], [], [whole(0, 1000, TEXTS, 2, kind=np.int64), whole(0, 1000, TEXTS, 2, kind=np.int64)], np.array(b"_"))
case("StringToHashBucketFast", texts(), num_buckets=1000)
case("StringToHashBucketStrong", texts(), num_buckets=1000, key=[123, 456])
case("Substr", texts(8), scalar(1, np.int32), scalar(4, np.int32))
case("RegexFullMatch", texts(), np.array(rb"[a-z ]*[A-E].*"))
case("StaticRegexFullMatch", texts(), pattern="[a-z ]*[A-E].*")
case("RegexReplace", texts(), np.array(rb"[aeiou]+"), np.array(b"-"))
case("StaticRegexReplace", texts(), pattern="[aeiou]+", rewrite="-")
case("EncodeBase64", texts())
case("DecodeBase64", base64)
case("DecodeRaw", lambda rng: np.array([bytes(rng.integers(1, 255, 64, np.uint8)) for _ in range(TEXTS // 4)]), out_type=np.float32)

# The cells have 512 units, the batches 128 rows, the sequences 16 steps.
STATES = [f(128, 512)] * 2
LSTM = [*STATES, f(1024, 2048, low=-0.1, high=0.1), f(512), f(512), f(512), f(2048)]
case("LSTMBlockCell", f(128, 512), *LSTM, use_peephole=True)
case("LSTMBlockCellGrad", f(128, 512), *LSTM, *[f(128, 512)] * 8, use_peephole=True)
for name in ("", "V2"):
    case("BlockLSTM" + name, scalar(16, np.int64), f(16, 128, 512), *LSTM, use_peephole=True)
    case("BlockLSTMGrad" + name, scalar(16, np.int64), f(16, 128, 512), *LSTM, *[f(16, 128, 512)] * 9, use_peephole=True)
GRU = [*STATES, f(1024, 1024, low=-0.1, high=0.1), f(1024, 512, low=-0.1, high=0.1), f(1024), f(512)]
case("GRUBlockCell", *GRU)
case("GRUBlockCellGrad", *GRU, *[up(128, 512)] * 4)

STATE = Variable(f(N))
case("ReadVariableOp", STATE, dtype=np.float32)
case("VarIsInitializedOp", STATE)
case("AssignVariableOp", STATE, f(N))
case("AssignAddVariableOp", STATE, f(N, low=-1e-3, high=1e-3))
case("AssignSubVariableOp", STATE, f(N, low=-1e-3, high=1e-3))
TABLE = Variable(f(65536, 64))
case("ResourceGather", TABLE, whole(0, 65536, 16384), dtype=np.float32)
for name in ("Add", "Sub", "Update"):
    case(f"ResourceScatter{name}", TABLE, some(16384, 65536), f(16384, 64, low=-1e-3, high=1e-3), dtype=np.float32)
case("ResourceGatherNd", TABLE, whole(0, 65536, 16384, 1), dtype=np.float32)
for name in ("Add", "Sub", "Update", "Max", "Min"):
    case(f"ResourceScatterNd{name}", TABLE, lambda rng: rng.permutation(65536)[:16384].astype(np.int32).reshape(-1, 1),
         f(16384, 64, low=-1e-3, high=1e-3))

# The inputs of optimizers: slots of the variable's shape, then scalars by name, then the gradient.
RATES = dict(lr=0.001, alpha=0.001, rho=0.9, epsilon=1e-7, momentum=0.9, beta1=0.9, beta2=0.999, beta1_power=0.9, beta2_power=0.999,
             l1=0.01, l2=0.01, l2_shrinkage=0.01, lr_power=-0.5)
SLOTS = ("var", "accum", "accum_update", "linear", "m", "v", "vhat", "mg", "ms", "mom")


def optimizer(op, rows):
    """Returns the case of an optimizer. rows: this many of 65,536 rows are updated; 0: all of a variable of N elements."""
    def given(x):
        if x["name"] in SLOTS:
            spread = f(65536, 64) if rows else f(N)
            return Variable((up(65536, 64) if rows else up(N)) if x["name"] in ("accum", "v", "vhat", "ms") else spread)
        if x["name"] in RATES:
            return scalar(RATES[x["name"]])
        return some(rows, 65536) if x["name"] == "indices" else f(rows, 64) if rows else f(N)
    return Case(op, [given(x) for x in tw.ops()[op]["inputs"]], {})

# Pools of volumes, patches, blocks of space
HALVED_VOLUME, CUBE = (2, 8, 16, 16, 32), dict(ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID")


def first_volume(rng):
    return f(*VOLUME)(np.random.default_rng(1))


def first_pooled_volume(rng):
    return first_volume(rng).reshape(2, 8, 2, 16, 2, 16, 2, 32).max((2, 4, 6))


def places_of_largest(rng):
    """Returns where the largest numbers of first_image lie, as MaxPoolWithArgmax does."""
    windows = first_image(rng).reshape(8, 32, 2, 32, 2, 32).transpose(0, 1, 3, 5, 2, 4).reshape(8, 32, 32, 32, 4).argmax(-1)
    y, x, c = np.meshgrid(range(32), range(32), range(32), indexing="ij")
    return ((2 * y + windows // 2) * 64 + 2 * x + windows % 2) * 32 + c


case("MaxPool3D", f(*VOLUME), **CUBE)
case("MaxPool3DGrad", first_volume, first_pooled_volume, f(*HALVED_VOLUME), **CUBE)
case("MaxPool3DGradGrad", first_volume, first_pooled_volume, f(*VOLUME), **CUBE)
case("AvgPool3D", f(*VOLUME), **CUBE)
case("AvgPool3DGrad", i32(*VOLUME), f(*HALVED_VOLUME), **CUBE)
case("MaxPoolWithArgmax", f(*IMAGE), **POOL)
case("MaxPoolGradWithArgmax", first_image, f(*HALVED), places_of_largest, **POOL)
case("MaxPoolGradGradWithArgmax", first_image, f(*IMAGE), places_of_largest, **POOL)
case("ExtractImagePatches", f(*IMAGE), ksizes=[1, 3, 3, 1], strides=TWOS, rates=ONES, padding="VALID")
case("SpaceToBatchND", f(*IMAGE), i32(2, 2), np.zeros((2, 2), np.int32))
case("BatchToSpaceND", f(32, 32, 32, 32), i32(2, 2), np.zeros((2, 2), np.int32))
case("SpaceToBatch", f(*IMAGE), np.zeros((2, 2), np.int32), block_size=2)
case("BatchToSpace", f(32, 32, 32, 32), np.zeros((2, 2), np.int32), block_size=2)

# Images
PICTURES = (4, 256, 256, 3)
BOXES = np.tile(np.array([[0.1, 0.2, 0.7, 0.9]], np.float32), (16, 1))
WHICH = (np.arange(16) % 4).astype(np.int32)
case("ResizeArea", f(*PICTURES), i32(128, 128))
case("ResizeBicubic", f(4, 128, 128, 3), i32(256, 256))
case("ResizeBicubicGrad", f(*PICTURES), f(4, 128, 128, 3))
case("ScaleAndTranslate", f(4, 128, 128, 3), i32(256, 256), np.array([2, 2], np.float32), np.array([0, 0], np.float32))
case("ScaleAndTranslateGrad", f(*PICTURES), f(4, 128, 128, 3), np.array([2, 2], np.float32), np.array([0, 0], np.float32))
TURN = np.array([[0.9, 0.1, 2, -0.1, 0.9, 3, 0, 0]], np.float32)
case("ImageProjectiveTransformV2", f(*PICTURES), TURN, i32(128, 128), interpolation="BILINEAR")
case("ImageProjectiveTransformV3", f(*PICTURES), TURN, i32(128, 128), scalar(0), interpolation="BILINEAR", fill_mode="REFLECT")
case("CropAndResize", f(*PICTURES), BOXES, WHICH, i32(128, 128))
case("CropAndResizeGradImage", f(16, 128, 128, 3), BOXES, WHICH, i32(*PICTURES), T=np.float32)
case("CropAndResizeGradBoxes", f(16, 128, 128, 3), f(*PICTURES), BOXES, WHICH)
case("RGBToHSV", f(*PICTURES, low=0))
case("HSVToRGB", f(*PICTURES, low=0))
case("AdjustContrastv2", f(*PICTURES, low=0), scalar(1.5))
case("AdjustHue", f(*PICTURES, low=0), scalar(0.1))
case("AdjustSaturation", f(*PICTURES, low=0), scalar(1.5))


def boxes(n):
    def make(rng):
        corner = rng.uniform(0, 0.9, (n, 2))
        return np.concatenate([corner, corner + rng.uniform(0.01, 0.1, (n, 2))], 1).astype(np.float32)
    return make


case("NonMaxSuppression", boxes(4096), up(4096), scalar(256, np.int32), iou_threshold=0.5)
case("NonMaxSuppressionV2", boxes(4096), up(4096), scalar(256, np.int32), scalar(0.5))
case("NonMaxSuppressionV3", boxes(4096), up(4096), scalar(256, np.int32), scalar(0.5), scalar(0.1))
case("NonMaxSuppressionV4", boxes(4096), up(4096), scalar(256, np.int32), scalar(0.5), scalar(0.1))
case("NonMaxSuppressionV5", boxes(4096), up(4096), scalar(256, np.int32), scalar(0.5), scalar(0.1), scalar(0.0))
case("NonMaxSuppressionWithOverlaps", f(512, 512, low=0), up(512), scalar(128, np.int32), scalar(0.5), scalar(0.1))
case("CombinedNonMaxSuppression", lambda rng: boxes(1024)(rng).reshape(1, 1024, 1, 4), f(1, 1024, 8, low=0), scalar(64, np.int32),
     scalar(256, np.int32), scalar(0.5), scalar(0.1))

# Linear algebra and Fourier transforms


def definite(rng):
    x = rng.normal(size=(16, 128, 128))
    return (x @ x.transpose(0, 2, 1) / 128 + np.eye(128)).astype(np.float32)


def triangle(rng):
    return np.linalg.cholesky(definite(rng).astype(np.float64)).astype(np.float32)


def waves(*shape):
    return lambda rng: (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)


case("Cholesky", definite)
case("CholeskyGrad", triangle, f(16, 128, 128))
case("MatrixInverse", definite)
case("MatrixDeterminant", definite)
case("LogMatrixDeterminant", definite)
case("MatrixSolve", definite, f(16, 128, 16))
case("MatrixTriangularSolve", triangle, f(16, 128, 16))
case("Qr", f(16, 128, 64), agree=0)
case("Svd", f(4, 64, 64), agree=1)
case("SelfAdjointEigV2", lambda rng: definite(rng)[:4], agree=1)
for direction in ("FFT", "IFFT"):
    case(direction, waves(1024, 1024))
    case(f"{direction}2D", waves(4, 512, 512))
    case(f"{direction}3D", waves(4, 64, 64, 64))
case("RFFT", f(1024, 1024), i32(1024))
case("RFFT2D", f(4, 512, 512), i32(512, 512))
case("RFFT3D", f(4, 64, 64, 64), i32(64, 64, 64))
case("IRFFT", waves(1024, 513), i32(1024))
case("IRFFT2D", waves(4, 512, 257), i32(512, 512))
case("IRFFT3D", waves(4, 64, 64, 33), i32(64, 64, 64))

# Counts and quantised numbers
case("DenseBincount", whole(0, 1000, N), scalar(1000, np.int32), f(0))
case("RaggedBincount", np.arange(0, N + 1, 1024, dtype=np.int64), whole(0, 1000, N), scalar(1000, np.int32), f(0))
case("FakeQuantWithMinMaxArgs", f(N, low=-6, high=6))
case("FakeQuantWithMinMaxArgsGradient", f(N), f(N, low=-6, high=6))
case("FakeQuantWithMinMaxVars", f(N, low=-6, high=6), scalar(-6), scalar(6))
case("FakeQuantWithMinMaxVarsGradient", f(N), f(N, low=-6, high=6), scalar(-6), scalar(6))
case("FakeQuantWithMinMaxVarsPerChannel", f(*ROWS, low=-6, high=6), np.full(64, -6, np.float32), np.full(64, 6, np.float32))
case("FakeQuantWithMinMaxVarsPerChannelGradient", f(*ROWS), f(*ROWS, low=-6, high=6), np.full(64, -6, np.float32), np.full(64, 6, np.float32))
case("QuantizeV2", f(N), scalar(-1), scalar(1), T=type_of("qint8"), mode="SCALED")
case("QuantizeV2", f(*ROWS), np.full(64, -1, np.float32), np.full(64, 1, np.float32), T=type_of("quint8"), axis=1, note="along an axis")
QINT8, QINT32 = (lambda rng, n=n: rng.integers(0, 256, (N, n), np.uint8).view(tw.ABSENT[f"qint{8 * n}"])[:, 0] for n in (1, 4))
case("Dequantize", QINT8, scalar(-1), scalar(1))
case("Requantize", QINT32, scalar(-256), scalar(256), scalar(-64), scalar(64), out_type=type_of("quint8"))
case("RequantizationRange", QINT32, scalar(-256), scalar(256))
case("QuantizeDownAndShrinkRange", QINT32, scalar(-256), scalar(256), out_type=type_of("quint8"))
case("QuantizedMatMul", eight("quint8", 512, 512), eight("qint8", 512, 512), *map(scalar, (0, 6, -1, 1)))
FACTORS = eight("quint8", 512, 512), eight("qint8", 512, 512), f(512), *map(scalar, (0, 6, -1, 1, 0, 6))
case("QuantizedMatMulWithBias", *FACTORS[:-2])
case("QuantizedMatMulWithBiasAndRelu", *FACTORS[:-2])
case("QuantizedMatMulWithBiasAndRequantize", *FACTORS)
case("QuantizedMatMulWithBiasAndReluAndRequantize", *FACTORS)
case("QuantizedMatMulWithBiasAndDequantize", *FACTORS, Toutput=type_of("float"))
IMAGES = eight("quint8", 8, 28, 28, 128), eight("qint8", 3, 3, 128, 128)
WINDOWS = dict(strides=[1, 1, 1, 1], padding="SAME")
case("QuantizedConv2D", *IMAGES, *map(scalar, (0, 6, -1, 1)), **WINDOWS)
WITH_BIAS = *IMAGES, f(128), *map(scalar, (0, 6, -1, 1, 0, 6))
case("QuantizedConv2DWithBias", *WITH_BIAS[:-2], **WINDOWS)
case("QuantizedConv2DWithBiasAndRelu", *WITH_BIAS[:-2], **WINDOWS)
case("QuantizedConv2DWithBiasAndRequantize", *WITH_BIAS, **WINDOWS)
case("QuantizedConv2DWithBiasAndReluAndRequantize", *WITH_BIAS, **WINDOWS)
case("QuantizedConv2DWithBiasSumAndReluAndRequantize", *WITH_BIAS, eight("quint8", 8, 28, 28, 128), scalar(0), scalar(6), **WINDOWS)
for name, more in (("Relu", []), ("Relu6", []), ("ReluX", [scalar(3)])):
    case(f"Quantized{name}", eight("quint8", N), *more, scalar(-1), scalar(6))
for name in ("QuantizedMaxPool", "QuantizedAvgPool"):
    case(name, eight("quint8", 8, 56, 56, 64), scalar(0), scalar(6), ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")
case("QuantizeAndDequantize", f(N))
for name, more in (("V2", []), ("V3", [scalar(8, np.int32)]), ("V4", [])):
    case(f"QuantizeAndDequantize{name}", f(N), scalar(-1), scalar(1), *more, range_given=True)
case("QuantizeAndDequantizeV4Grad", f(N), f(N), scalar(-1), scalar(1))
case("Empty", i32(1024, 1024), dtype=np.float32, init=True)

# Speech
LABELS = np.argwhere(np.ones((32, 40), bool))
for name in ("CTCLoss", "CTCLossV2"):
    case(name, f(200, 32, 100, low=-4, high=4), LABELS, whole(1, 99, 32 * 40), np.full(32, 200, np.int32))
case("CTCGreedyDecoder", f(200, 32, 100, low=-4, high=4), np.full(32, 200, np.int32))
case("CTCBeamSearchDecoder", f(100, 8, 30, low=-4, high=4), np.full(8, 100, np.int32), beam_width=20, top_paths=1)
case("EditDistance", LABELS, whole(0, 9, 32 * 40), np.array([32, 40]), LABELS, whole(0, 9, 32 * 40), np.array([32, 40]))
case("AudioSpectrogram", f(160000, 1), window_size=400, stride=160)
case("Mfcc", up(1, 1000, 257), scalar(16000, np.int32))

# Incomplete functions
for name in ("Igamma", "Igammac"):
    case(name, f(1 << 16, low=0.5, high=40), f(1 << 16, low=0.5, high=40))
case("IgammaGradA", f(4096, low=0.5, high=40), f(4096, low=0.5, high=40))
case("Betainc", f(1 << 16, low=0.5, high=20), f(1 << 16, low=0.5, high=20), f(1 << 16, low=0.01, high=0.99))


LEFT_OUT = {
    "a dataset is a value that steps take from element by element": "AnonymousIteratorV3 BatchDatasetV2 CacheDatasetV2 ConcatenateDataset "
    "DatasetCardinality DummyMemoryCache DummySeedGenerator FilterDataset FixedLengthRecordDatasetV2 FlatMapDataset GeneratorDataset "
    "InterleaveDataset IteratorGetNext IteratorGetNextSync IteratorV2 MakeEpochIterator MakeIterator MapDataset OptionsDataset "
    "PaddedBatchDatasetV2 ParallelBatchDataset ParallelInterleaveDatasetV4 ParallelMapDatasetV2 PrefetchDataset RandomDataset RangeDataset "
    "RepeatDataset ScanDataset ShardDataset ShuffleDatasetV3 SkipDataset TFRecordDataset TakeDataset TakeWhileDataset TensorDataset "
    "TensorSliceDataset TextLineDataset UnbatchDataset WindowDataset ZipDataset GroupByWindowDataset CSVDatasetV2 CsvColumnsDataset "
    "JsonLinesDataset ArrayFilesDataset IgnoreErrorsDataset",
    "its time is that of a library of images or sound, or of reading a text": "CaseFoldUTF8 NormalizeUTF8 RegexSplitWithOffsets "
    "SentencepieceDetokenizeOp SentencepieceIdToStringOp SentencepieceOp SentencepieceStringToIdOp SentencepieceTokenizeOp "
    "SentencepieceTokenizeWithOffsetsOp SentencepieceVocabSizeOp TextTokenizer TextTokenizerDecode TextTokenizerEncode "
    "TextTokenizerIdToString TextTokenizerStringToId TextTokenizerVocabSize WordpieceTokenizeWithOffsets DecodeAndCropJpeg DecodeBmp DecodeCSV DecodeFlac DecodeGif "
    "DecodeImage DecodeJpeg DecodePng DecodeWav DecodeWebP EncodeJpeg EncodeJpegVariableQuality EncodePng EncodeWav ExtractJpegShape "
    "DeserializeManySparse DeserializeSparse ParseExample ParseExampleV2 ParseSequenceExample ParseSequenceExampleV2 ParseSingleExample "
    "ParseSingleSequenceExample ParseTensor SerializeManySparse SerializeSparse SerializeTensor",
    "passes a value on": "OptionalFromValue OptionalGetValue OptionalHasValue OptionalNone VariableShape",
    "run by the framework, and computes nothing": "Const NoOp Placeholder PlaceholderWithDefault VarHandleOp DestroyResourceOp _Recv _Send",
    "its time is that of making a message for people, or of files": "AudioSummary AudioSummaryV2 CloseSummaryWriter CreateSummaryFileWriter "
    "FlushSummaryWriter HistogramSummary ImageSummary ImportEvent MergeSummary ScalarSummary SummaryWriter TensorSummary TensorSummaryV2 "
    "WriteAudioSummary WriteGraphSummary WriteHistogramSummary WriteImageSummary WriteRawProtoSummary WriteScalarSummary WriteSummary",
    "its time is that of other processes": "CollectiveAllToAllV2 CollectiveBcastRecvV2 CollectiveBcastSendV2 CollectiveGatherV2 "
    "CollectivePermute CollectiveReduceScatterV2 CollectiveReduceV2",
    "its time is that of files": "MatchingFiles MergeV2Checkpoints ReadFile RestoreResources RestoreV2 SaveResource SaveV2 WriteFile",
    "the executor runs it itself, and computes nothing": "ControlTrigger Enter Exit LoopCond Merge NextIteration "
                                                              "RefEnter RefExit RefMerge RefNextIteration RefSelect RefSwitch Switch "
                                                              "_SelectHandle",
    "its time is that of what functions compute": "Case EagerPyFunc For If PartitionedCall PyFunc PyFuncStateless "
                                                  "StatefulPartitionedCall StatelessCase StatelessIf StatelessWhile While",
    "timed in a case of the op that takes from there": "EmptyTensorList FIFOQueueV2 MutableHashTableV2 QueueEnqueueManyV2 QueueEnqueueV2 Stage "
    "TensorListFromTensor TensorListGetItem TensorListLength TensorListReserve",
    "keeps tensors as the ops of lists and queues do": "AssignVariables ReadVariables Barrier BarrierInsertMany BarrierTakeMany "
    "ConditionalAccumulator HashTableV2 InitializeTableFromTextFileV2 InitializeTableV2 LookupTableImportV2 LookupTableRemoveV2 MapPeek MapStage "
    "MapUnstage MapUnstageNoKey MutableDenseHashTableV2 MutableHashTableOfTensorsV2 OrderedMapPeek OrderedMapStage OrderedMapUnstage "
    "OrderedMapUnstageNoKey PaddingFIFOQueueV2 PriorityQueueV2 QueueDequeueUpToV2 RandomShuffleQueueV2 ResourceAccumulatorApplyGradient "
    "ResourceAccumulatorTakeGradient ResourceBarrier ResourceBarrierInsertMany ResourceBarrierTakeMany ResourceConditionalAccumulator "
    "ResourceSparseAccumulatorApplyGradient ResourceSparseAccumulatorTakeGradient ResourceSparseConditionalAccumulator StackPopV2 "
    "StackPushV2 StackV2 StagePeek TensorListConcat TensorListConcatLists TensorListPopBack TensorListPushBackBatch TensorListResize TensorListScatter "
    "TensorListScatterIntoExistingList",
    "TensorFlow has none outside of graphs": "TensorArrayConcatV3 TensorArrayGatherV3 TensorArrayGradV3 TensorArrayGradWithShape "
    "TensorArrayReadV3 TensorArrayScatterV3 TensorArraySplitV3 TensorArrayV3 TensorArrayWriteV3",
    "TensorFlow has none": "ScaledDotProductAttention ScaledDotProductAttentionGrad",
    "looks at what is kept, or ends it": "BarrierClose BarrierIncompleteSize BarrierReadySize ConsumeMutexLock LookupTableSizeV2 MapClear "
    "MapIncompleteSize MapSize MutexLock MutexV2 OrderedMapClear OrderedMapIncompleteSize OrderedMapSize QueueCloseV2 QueueIsClosedV2 "
    "QueueSizeV2 ResourceAccumulatorNumAccumulated ResourceAccumulatorSetGlobalStep ResourceBarrierClose ResourceBarrierIncompleteSize "
    "ResourceBarrierReadySize StackCloseV2 StageClear StageSize TensorArrayCloseV3 TensorArraySizeV3 TensorListElementShape",
    "draws some thousand numbers at most": "AllCandidateSampler ComputeAccidentalHits FixedUnigramCandidateSampler "
    "LearnedUnigramCandidateSampler LogUniformCandidateSampler ThreadUnsafeUnigramCandidateSampler UniformCandidateSampler",
    "prints, or ends the step": "Abort Assert PrintV2",
    "makes one short text": "ShardedFilename ShardedFilespec",
    "makes three numbers": "StatelessRandomGetAlg StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg",
}


# ---- Lists, tables and queues, which keep values between ops ----


def step(op, *args, once=False, **attrs):
    return Step(op, list(args), attrs, once)


def chain(op, inputs, *steps, note="", agree=99):
    table.append(Case(op, inputs, {}, note, agree, steps))


FLOATS, WIDE = dict(element_dtype=np.float32), i32(64)
OF_ROWS = step("TensorListFromTensor", 0, 1)
chain("TensorListStack", [f(*ROWS), WIDE], OF_ROWS, step("TensorListStack", (0, 0), 1, **FLOATS))
chain("TensorListGather", [f(*ROWS), WIDE, some(16384, 16384)], OF_ROWS, step("TensorListGather", (0, 0), 2, 1, **FLOATS))
chain("TensorListScatterV2", [f(*ROWS), WIDE, some(16384, 16384), scalar(16384, np.int32)], step("TensorListScatterV2", 0, 2, 1, 3),
      step("TensorListStack", (0, 0), 1, **FLOATS))
chain("TensorListConcatV2", [f(512, 32, 64), i32(32, 64), i32(-1, 64), np.zeros(0, np.int64)], OF_ROWS,
      step("TensorListConcatV2", (0, 0), 2, 3, **FLOATS))
chain("TensorListSplit", [f(*ROWS), i32(-1, 64), np.full(512, 32, np.int64)], step("TensorListSplit", 0, 1, 2),
      step("TensorListLength", (0, 0)))
chain("TensorListPushBack", [f(N), i32(N), scalar(-1, np.int32), scalar(0, np.int32)], step("EmptyTensorList", 1, 2, **FLOATS),
      step("TensorListPushBack", (0, 0), 0), step("TensorListGetItem", (1, 0), 3, 1, **FLOATS))
chain("TensorListSetItem", [f(N), i32(N), scalar(1, np.int32), scalar(0, np.int32)], step("TensorListReserve", 1, 2, **FLOATS),
      step("TensorListSetItem", (0, 0), 3, 0), step("TensorListGetItem", (1, 0), 3, 1, **FLOATS))
KEYS = some(N, N, np.int64)


def hash_table(name):
    return step("MutableHashTableV2", key_dtype=np.int64, value_dtype=np.float32, shared_name=name, once=True)


chain("LookupTableFindV2", [KEYS, f(N), scalar(0)], hash_table("found"), step("LookupTableInsertV2", (0, 0), 0, 1, once=True),
      step("LookupTableFindV2", (0, 0), 0, 2))
chain("LookupTableInsertV2", [KEYS, f(N)], hash_table("inserted"), step("LookupTableInsertV2", (0, 0), 0, 1))
chain("LookupTableExportV2", [KEYS, f(N)], hash_table("exported"), step("LookupTableInsertV2", (0, 0), 0, 1, once=True),
      step("LookupTableExportV2", (0, 0), Tkeys=np.int64, Tvalues=np.float32), agree=0)
ELEMENTS = dict(component_types=[np.float32])


def queue(name, *shape):
    return step("FIFOQueueV2", shapes=[shape], shared_name=name, once=True, **ELEMENTS)


chain("QueueDequeueManyV2", [f(*ROWS), scalar(16384, np.int32)], queue("many", 64), step("QueueEnqueueManyV2", (0, 0), [0]),
      step("QueueDequeueManyV2", (0, 0), 1, **ELEMENTS))
chain("QueueDequeueV2", [f(N)], queue("one", N), step("QueueEnqueueV2", (0, 0), [0]), step("QueueDequeueV2", (0, 0), **ELEMENTS))
chain("Unstage", [f(N)], step("Stage", [0], shared_name="laid"), step("Unstage", dtypes=[np.float32], shared_name="laid"))


# ---- From declarations ----


def kind_for(types):
    """Returns the type for a case, one of the types that a kernel computes."""
    return next((t for t in ("float", "int32", "bool", "complex64", "string") if t in types), types[0])


def from_declaration(d, about):
    """Returns the case of an element-wise op on arrays of one shape."""
    kinds = {a["name"]: kind_for(declare.draws.allowed(d, a)) for a in about["attrs"] if a["kind"] == "type" and not a["list"]}

    def of(x):
        kind = tw.numpy_of(type_of(x.get("type") or kinds[x["type_attr"]]))
        draw = lambda rng: dataclasses.replace(d.domain_of(x["name"]), takes=None).array(rng, (N,), kind)  # noqa: E731
        return [draw] * 4 if "number_attr" in x else draw
    attrs = {name: type_of(t) for name, t in kinds.items() if any(a["name"] == name and a.get("default") is None for a in about["attrs"])}
    return Case(d.op, [of(x) for x in about["inputs"]], attrs)


def cases():
    """Returns {op: its cases}, and {op: the reason why it has none}."""
    found, reasons = {op: [] for op in tw.ops()}, {op: why for why, ops in LEFT_OUT.items() for op in ops.split()}
    for c in table:
        if c.op in found:
            found[c.op].append(c)
    declared = declare.declared().ops
    for op, about in tw.ops().items():
        if any(not c.note for c in found[op]) or op in reasons:
            continue
        if "runs_as " in about["schema"]:
            reasons[op] = f"by reference; runs as {about['schema'].split('runs_as ')[1].split(';')[0]}"
            continue
        if op.startswith(("ResourceApply", "ResourceSparseApply")):
            found[op].append(optimizer(op, 16384 if "Sparse" in op else 0))
        elif op in declared and declared[op].draw in (declare.same, declare.broadcast):
            found[op].insert(0, from_declaration(declared[op], about))
        elif not found[op]:
            reasons[op] = "nobody has written a case in tools/benchmarks/op_cases.py"
    return found, {op: why for op, why in reasons.items() if op in found}
