"""Tests of the errors of ops: each case fails with an error that names the op, the node and the value, while the graph is built and, with
fed inputs, while it runs. A session goes on after an error. The cases are written by hand, here and in the declarations; hostile_test.py
generates others."""
import sys

import numpy as np

import cases
import tw
from arrays import i32, i64, zeros
from attempts import HIGH, LOW, Attempt, accepts, alone, case, limit, shown
from declare import broadcast, declared, same, uses
from undeclared import UNDECLARED

covered = set()


def refuses(op, inputs, *parts, **attrs):
    covered.add(op)
    if not cases.takes(op):
        return
    for how in (*tw.WAYS, "late"):
        where = f"{op} {[shown(x) for x in inputs]} {attrs} {how}"
        case(where)
        attempt = Attempt(op, inputs, how, attrs)
        cases.refuses(where, attempt, f"{op} 'op'", *map(str, parts))
        try:
            cases.holds(f"after {where}", attempt.goes_on(), "the session answers something else")
        except tw.Error as error:
            cases.holds(f"after {where}", False, error)


def axes_and_shapes():
    m = zeros(2, 3)
    refuses("Reshape", [m, i32(4, -1)], "[4, -1]", "6")
    refuses("Reshape", [m, i32(7)], "[7]", "6")
    refuses("Reshape", [m, i32(-1, -1)], "[-1, -1]")
    refuses("Reshape", [m, i64(-2, 3)], "-2")
    refuses("Reshape", [m, i64(LOW, 1)], LOW)
    refuses("Reshape", [m, i32(0, -1)], "[0, -1]")
    refuses("Reshape", [m, i64(2**62, 4)], f"[{2**62}, 4]")
    refuses("Reshape", [m, i64(2**62, 4, -1)])
    refuses("Reshape", [m, i64(HIGH, 2)])
    refuses("Reshape", [m, np.zeros((1, 2), np.int32)], "shape", "[1, 2]")
    for axis in (3, -4, 2**31 - 1, -2**31):
        refuses("ExpandDims", [m, np.int32(axis)], "dim", axis)
    for axis in (LOW, HIGH):
        refuses("ExpandDims", [m, np.int64(axis)], "dim", axis)
        refuses("Squeeze", [m], axis, squeeze_dims=[axis])
        refuses("Pack", [m, m], axis, axis=axis, N=2)
        refuses("Unpack", [m], axis, axis=axis, num=2)
        refuses("ConcatV2", [m, m, np.int64(axis)], axis, N=2)
        refuses("Cumsum", [m, np.int64(axis)], axis)
        refuses("GatherV2", [m, i32(0), np.int64(axis)], axis)
        for op in ("ArgMax", "ArgMin", "Sum", "Mean", "Prod", "Max", "Min"):
            refuses(op, [m, np.int64(axis)], axis)
        for op in ("All", "Any"):
            refuses(op, [np.ones((2, 2), bool), np.int64(axis)], axis)
    refuses("ExpandDims", [m, i32(0, 1)], "[2]")
    refuses("Squeeze", [m], "[2, 3]", squeeze_dims=[0])
    refuses("Squeeze", [zeros(1, 1)], "2", squeeze_dims=[2])
    refuses("Transpose", [m, i32(0, 0)], "[0, 0]")
    refuses("Transpose", [m, i32(-10, 0)], "[-10, 0]")
    refuses("Transpose", [m, i32(-1, 1)], "[-1, 1]")
    refuses("Tile", [m, i64(2**62, 1)], f"[{2**62}, 1]")
    refuses("RandomUniformInt", [i32(3), np.int32(5), np.int32(3)], "'minval' is 5 and 'maxval' 3")
    refuses("Transpose", [m, i32(0, 2)], "[0, 2]")
    refuses("Transpose", [m, i32(0)], "perm", "[2, 3]")
    refuses("Transpose", [m, i64(LOW, 0)])
    refuses("Transpose", [m, i64(HIGH, 0)], HIGH)
    refuses("Transpose", [m, np.int32(0)], "perm")
    refuses("InvertPermutation", [i32(0, 0)], "0")
    refuses("InvertPermutation", [i32(1, 2)], "2")
    refuses("InvertPermutation", [i64(LOW, HIGH)], LOW)
    refuses("InvertPermutation", [np.zeros((1, 1), np.int32)], "x")
    refuses("ConcatV2", [m, m, np.int32(2)], "axis", "2", N=2)
    refuses("ConcatV2", [m, zeros(2), np.int32(0)], "[2, 3]", "[2]", N=2)
    refuses("ConcatV2", [m, zeros(2, 2), np.int32(0)], "[?, 3]", "[?, 2]", N=2)
    refuses("ConcatV2", [np.float32(1), np.float32(1), np.int32(0)], "rank 1", N=2)
    refuses("ConcatV2", [m, m, i32(0)], "axis", N=2)
    refuses("Split", [np.int32(2), m], "split_dim", "2", num_split=1)
    refuses("Split", [np.int32(-2**31), m], "split_dim", -2**31, num_split=1)
    refuses("Split", [np.int32(1), m], "[2, 3]", "2", num_split=2)
    refuses("Split", [np.int32(0), np.float32(1)], "value", num_split=1)
    refuses("Split", [i32(0), m], "split_dim", num_split=1)
    refuses("Split", [np.int32(0), m], "num_split", "0", num_split=0)
    refuses("Split", [np.int32(0), m], 2**40, num_split=2**40)
    refuses("Split", [np.int32(0), m], HIGH, num_split=HIGH)
    refuses("Pack", [m, zeros(3, 2)], "[2, 3]", "[3, 2]", N=2)
    refuses("Pack", [m, m], "axis", "3", axis=3, N=2)
    refuses("Unpack", [m], "num", "3", num=3)
    refuses("Unpack", [m], "axis", "-3", axis=-3, num=2)
    refuses("Unpack", [np.float32(1)], "value", num=1)
    refuses("Unpack", [m], "num", "-1", num=-1)
    refuses("Unpack", [m], 2**40, num=2**40)
    refuses("Unpack", [m], HIGH, num=HIGH)


def slices():
    m = zeros(2, 3)
    refuses("Slice", [m, i32(-1, 0), i32(1, 1)], "begin", "-1")
    refuses("Slice", [m, i32(0, 0), i32(1, -2)], "size", "-2")
    refuses("Slice", [m, i32(1, 0), i32(2, 1)], "1", "2")
    refuses("Slice", [m, i32(0), i32(1)], "[2, 3]")
    refuses("Slice", [m, i32(0, 0), i32(1)], "begin")
    refuses("Slice", [m, np.int32(0), np.int32(1)], "begin")
    for begin, size in ((HIGH, 1), (0, HIGH), (HIGH, HIGH), (LOW, 1), (0, LOW), (1, HIGH), (HIGH, -1), (3, -1)):
        refuses("Slice", [m, i64(begin, 0), i64(size, 1)], size if size not in (1, -1) and begin in (0, 1) else begin)
    refuses("StridedSlice", [m, i32(0), i32(1), i32(0)], "0")
    refuses("StridedSlice", [m, i32(2), i32(3), i32(1)], "2", shrink_axis_mask=1)
    refuses("StridedSlice", [m, i64(LOW), i64(3), i64(1)], LOW, shrink_axis_mask=1)
    refuses("StridedSlice", [m, i64(HIGH), i64(3), i64(1)], HIGH, shrink_axis_mask=1)
    refuses("StridedSlice", [m, i32(0), i32(1), i32(-1)], "-1", shrink_axis_mask=1)
    refuses("StridedSlice", [m, i32(0, 0, 0), i32(1, 1, 1), i32(1, 1, 1)], "3", "[2, 3]")
    refuses("StridedSlice", [m, i32(0, 0), i32(1), i32(1)], "begin")
    refuses("StridedSlice", [m, i32(0, 0), i32(1, 1), i32(1, 1)], "3", ellipsis_mask=3)
    refuses("StridedSlice", [m, np.zeros(33, np.int32), np.zeros(33, np.int32), np.ones(33, np.int32)], "33")
    refuses("StridedSlice", [m, np.int32(0), np.int32(1), np.int32(1)], "begin")
    refuses("StridedSliceGrad", [i32(2, 3), i32(0), i32(1), i32(1), zeros(2, 3)], "dy", "[2, 3]", "[1, 3]")
    refuses("StridedSliceGrad", [i32(2, -3), i32(0), i32(1), i32(1), m], "shape", "-3")
    refuses("StridedSliceGrad", [i64(2**62, 4), i64(0), i64(1), i64(1), m])
    refuses("StridedSliceGrad", [i64(2**33), i64(0), i64(1), i64(1), zeros(1)])
    refuses("StridedSliceGrad", [i64(3), i64(0), i64(1), i64(0), zeros(1)], "0")
    every = np.arange(5, dtype=np.float32)
    for begin, end, stride in ((LOW, HIGH, 1), (HIGH, LOW, -1), (0, HIGH, HIGH), (HIGH, LOW, LOW), (-1, LOW, LOW), (LOW, LOW, 1),
                               (2, HIGH, 2**62)):
        accepts("StridedSlice", [every, i64(begin), i64(end), i64(stride)], every[begin:end:stride])


def values_that_grow():
    m = zeros(2, 3)
    refuses("Pad", [m, i32([1, 1])], "paddings", "[2, 3]")
    refuses("Pad", [m, i32([1, -1], [0, 0])], "-1")
    refuses("Pad", [m, i32([1], [0])], "paddings", "[2, 1]")
    refuses("Pad", [m, i32(1, 1)], "paddings")
    refuses("Pad", [m, i64([LOW, 0], [0, 0])], LOW)
    refuses("Pad", [m, i64([HIGH, HIGH], [0, 0])])
    refuses("Pad", [m, i64([0, HIGH], [0, 0])])
    refuses("Pad", [m, i64([2**62, 0], [2**62, 0])])
    refuses("Pad", [m, i64([2**40, 0], [0, 0])])
    refuses("Tile", [m, i32(1)], "multiples", "[2, 3]")
    refuses("Tile", [m, i32(1, -1)], "-1")
    refuses("Tile", [m, i64(LOW, 1)], LOW)
    refuses("Tile", [m, i64(HIGH, 1)])
    refuses("Tile", [m, i64(2**33, 2**33)])
    refuses("Tile", [m, i64(2**40, 1)])
    refuses("Tile", [m, np.int32(1)], "multiples")
    refuses("BroadcastTo", [m, i32(3, 3)], "[2, 3]", "[3, 3]")
    refuses("BroadcastTo", [m, i32(3)], "[2, 3]")
    refuses("BroadcastTo", [m, i32(2, -1)], "-1")
    refuses("BroadcastTo", [zeros(1), i64(2**62, 4)])
    refuses("BroadcastTo", [zeros(1), i64(2**40)])
    refuses("BroadcastTo", [m, np.int32(3)], "shape")
    refuses("BroadcastGradientArgs", [i32(2, 3), i32(3, 3)], "[2, 3]", "[3, 3]")
    refuses("BroadcastGradientArgs", [np.int32(2), i32(3)], "s0")
    refuses("Fill", [i32(2, -1), np.float32(1)], "[2, -1]")
    refuses("Fill", [i64(LOW), np.float32(1)], LOW)
    refuses("Fill", [i64(HIGH), np.float32(1)])
    refuses("Fill", [i64(2**32, 2**32), np.float32(1)])
    refuses("Fill", [i64(2**40), np.float32(1)])
    refuses("Fill", [i64(2**61, 2), np.uint8(1)])
    refuses("Fill", [i32(2), zeros(1)], "value", "[1]")
    refuses("Fill", [np.int32(2), np.float32(1)], "dims")


def ranges_and_one_hots():
    for start, limit, delta in ((0, 1, 0), (0, 5, -1), (5, 0, 1)):
        refuses("Range", [np.int32(start), np.int32(limit), np.int32(delta)], start, limit, delta)
    refuses("Range", [np.int64(LOW), np.int64(HIGH), np.int64(1)])
    refuses("Range", [np.int64(0), np.int64(HIGH), np.int64(1)])
    refuses("Range", [np.uint64(0), np.uint64(2**64 - 1), np.uint64(1)])
    for start, limit, delta in ((0, np.inf, 1), (np.nan, 1, 1), (0, 1, np.nan), (0, 1, 1e-300), (-1e308, 1e308, 1e-3), (0, 1e19, 1)):
        refuses("Range", [np.float64(start), np.float64(limit), np.float64(delta)])
    refuses("Range", [np.float32(0.1), np.float32(-2), np.float32(1e-30)], "from 0.1 to -2 in steps of 1e-30")
    refuses("Range", [np.float64(0), np.float64(1), np.float64(2.0**-100)], "1.2676506e+30 elements")
    refuses("Range", [i32(0), np.int32(1), np.int32(1)], "start", "[1]")
    accepts("Range", [np.int64(LOW), np.int64(HIGH), np.int64(2**62)], [LOW, -2**62, 0, 2**62])
    accepts("Range", [np.int8(-128), np.int8(127), np.int8(100)], [-128, -28, 72])
    refuses("OneHot", [i32(0), np.int32(-1), np.float32(1), np.float32(0)], "depth", "-1")
    refuses("OneHot", [i32(0), np.int32(3), np.float32(1), np.float32(0)], "axis", "2", axis=2)
    refuses("OneHot", [i32(0), np.int32(3), np.float32(1), np.float32(0)], "axis", "-2", axis=-2)
    refuses("OneHot", [i32(0), np.int32(3), np.float32(1), np.float32(0)], "axis", HIGH, axis=HIGH)
    refuses("OneHot", [i32(0), i32(3), np.float32(1), np.float32(0)], "depth", "[1]")
    refuses("OneHot", [i32(0), np.int32(3), zeros(1), np.float32(0)], "on_value", "[1]")
    refuses("OneHot", [np.zeros((100, 100), np.int64), np.int32(2**31 - 1), np.float32(1), np.float32(0)])
    accepts("OneHot", [i64(LOW, HIGH, 1), np.int32(2), np.float32(1), np.float32(0)], [[0, 0], [0, 0], [0, 1]])


def rows_and_elements():
    m = zeros(2, 3)
    for at in (2, -1, 2**31 - 1, -2**31):
        refuses("GatherV2", [m, i32(0, at), np.int32(0)], at, "2")
        refuses("GatherNd", [m, i32([0, 0], [at, 0])], at, "2")
        refuses("ScatterNd", [i32([0], [at]), zeros(2, 3), i32(2, 3)], at, "2")
    for at in (LOW, HIGH, 2**32, -2**32):  # the last two are 0 in 32 bits
        refuses("GatherV2", [m, i64(at), np.int32(1)], at, "3")
        refuses("GatherNd", [m, i64([at])], at)
        refuses("ScatterNd", [i64([at]), zeros(1), i64(4)], at)
    refuses("GatherV2", [m, i32(0), np.int32(2)], "axis", "2")
    refuses("GatherV2", [np.float32(1), i32(0), np.int32(0)], "params")
    refuses("GatherV2", [m, i32(0), i32(0)], "axis", "[1]")
    refuses("GatherV2", [m, i32(0), np.int32(0)], "batch_dims", "2", batch_dims=2)
    refuses("GatherV2", [m, i32(0), np.int32(0)], "batch_dims", HIGH, batch_dims=HIGH)
    refuses("GatherV2", [m, i32(0), np.int32(0)], "batch_dims", LOW, batch_dims=LOW)
    refuses("GatherV2", [m, i32(0), np.int32(1)], "[2]", "[1]", batch_dims=1)
    refuses("GatherV2", [m, i32(0, 0), np.int32(0)], "axis", "batch_dims", batch_dims=1)
    refuses("GatherV2", [zeros(0, 3), i32(0), np.int32(0)], "0")
    refuses("GatherNd", [m, i32([0, 0, 0])], "[1, 3]", "[2, 3]")
    refuses("GatherNd", [m, np.int32(0)], "indices")
    refuses("GatherNd", [m, i32([0])], "bad_indices_policy", "SHRUG", bad_indices_policy="SHRUG")
    refuses("ScatterNd", [i32([0]), zeros(1), i32(-1)], "shape", "-1")
    refuses("ScatterNd", [i32([0, 0]), zeros(1), i32(2)], "[1, 2]", "shape")
    refuses("ScatterNd", [i32([0]), zeros(2), i32(2)], "updates", "[2]")
    refuses("ScatterNd", [i32([0]), zeros(1), i32([2])], "shape")
    refuses("ScatterNd", [i64([0]), zeros(1), i64(HIGH)])
    refuses("ScatterNd", [i64([0, 0]), zeros(1), i64(2**40, 2**40)])
    refuses("UnsortedSegmentSum", [m, i32(0, 3), np.int32(3)], "segment_ids", "3")
    refuses("UnsortedSegmentSum", [m, i64(0, HIGH), np.int32(3)], HIGH)
    refuses("UnsortedSegmentSum", [m, i32(0, 0), np.int32(-1)], "num_segments", "-1")
    refuses("UnsortedSegmentSum", [m, i32(0, 0), np.int64(2**62)])
    refuses("UnsortedSegmentSum", [m, i32(0, 0), np.int64(HIGH)])
    refuses("UnsortedSegmentSum", [m, i32(0, 0, 0), np.int32(1)], "[2]", "[3]")
    refuses("UnsortedSegmentSum", [zeros(2), np.zeros((2, 1), np.int32), np.int32(1)], "[2, 1]", "[2]")
    refuses("UnsortedSegmentSum", [m, i32(0, 0), i32(1)], "num_segments")
    accepts("UnsortedSegmentSum", [np.ones((2, 1), np.float32), i64(LOW, 0), np.int32(1)], [[1]])
    accepts("UnsortedSegmentSum", [np.ones((2, 2), np.float32), i64(LOW, 0), np.int32(1)], [[1, 1]])  # twice LOW is 0 in 64 bits


def reductions():
    m = zeros(2, 3)
    for op in ("Sum", "Mean", "Prod", "Max", "Min"):
        refuses(op, [m, i32(2)], "2")
        refuses(op, [m, i32(0, -2)], "[0, -2]")
        refuses(op, [m, i32([0])], "reduction_indices", "[1, 1]")
    for op in ("All", "Any"):
        refuses(op, [np.ones((2, 3), bool), i32(-3)], "-3")
        refuses(op, [np.ones((2, 3), bool), i32(1, 1)], "[1, 1]")
    for op in ("ArgMax", "ArgMin"):
        refuses(op, [m, np.int32(2)], "dimension", "2")
        refuses(op, [m, i32(0)], "dimension")
        refuses(op, [np.float32(1), np.int32(0)], "input")
        refuses(op, [zeros(0, 3), np.int32(0)], "[0, 3]")
    refuses("Cumsum", [m, np.int32(-3)], "axis", "-3")
    refuses("Cumsum", [np.float32(1), np.int32(0)], "x")
    refuses("Cumsum", [m, i32(0)], "axis")


def matrices_and_element_by_element():
    m = zeros(2, 3)
    refuses("MatMul", [m, m], "[2, 3]")
    refuses("MatMul", [m, zeros(3)], "b", "[3]")
    refuses("MatMul", [zeros(2, 2, 2), zeros(2, 2)], "a", "[2, 2, 2]")
    refuses("BatchMatMulV2", [zeros(2, 2, 3), zeros(2, 2, 3)], "[2, 2, 3]")
    refuses("BatchMatMulV2", [zeros(2, 2, 2), zeros(3, 2, 2)], "[2, 2, 2]", "[3, 2, 2]")
    refuses("BatchMatMulV2", [zeros(2), zeros(2, 2)], "x", "[2]")
    refuses("AddN", [m, m, zeros(3, 2)], "[2, 3]", "[3, 2]", N=3)
    for op in ("Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "DivNoNan", "FloorDiv", "FloorMod", "Pow", "Maximum", "Minimum",
               "SquaredDifference", "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"):
        refuses(op, [m, zeros(2, 2)], "[2, 3]", "[2, 2]")
    for op in ("LogicalAnd", "LogicalOr"):
        refuses(op, [np.ones(2, bool), np.ones(3, bool)], "[2]", "[3]")
    for op in ("SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "TanhGrad", "SigmoidGrad", "ReluGrad", "Relu6Grad"):
        refuses(op, [m, zeros(3, 2)], "[2, 3]", "[3, 2]")
    for dtype, low in ((np.int8, -128), (np.int32, -2**31), (np.int64, LOW)):
        for op in ("Div", "FloorDiv"):
            refuses(op, [np.array([1, low], dtype), np.array([1, -1], dtype)], low, "-1")
        for op in ("Div", "FloorDiv", "FloorMod"):
            refuses(op, [np.array([1, 7], dtype), np.array([1, 0], dtype)], "7", "zero")
        refuses("Pow", [np.array([2, 2], dtype), np.array([1, -3], dtype)], "-3")
        accepts("FloorMod", [np.array([low], dtype), np.array([-1], dtype)], [0])
        accepts("Abs", [np.array([low], dtype)], [low])
        accepts("Neg", [np.array([low], dtype)], [low])
    for dtype in (bool, np.int8, np.int64, np.float16, tw.bfloat16, np.float64, np.complex128):
        unlike = [np.zeros(2, dtype), np.zeros(3, dtype)]
        accepts("Equal", unlike, False, incompatible_shape_error=False)
        accepts("NotEqual", unlike, True, incompatible_shape_error=False)
    refuses("Select", [np.array([True]), m, m], "1", "2")
    refuses("Select", [np.ones((2, 2), bool), m, m], "[2, 2]", "[2, 3]")
    refuses("Select", [np.bool_(True), m, zeros(3)], "[2, 3]", "[3]")
    refuses("SelectV2", [np.ones(2, bool), m, m], "[2]", "[2, 3]")
    refuses("EnsureShape", [m], "[2, 3]", "[3, ?]", shape=(3, -1))
    refuses("PlaceholderWithDefault", [m], "[2, 3]", "[3]", shape=(3,))
    refuses("EluGrad", [zeros(2), zeros(3)], "input 'outputs' has shape [3] where input 'gradients' has [2]; they must be equal")


def networks():
    image, kernel = zeros(1, 4, 4, 2), zeros(2, 2, 2, 3)
    plain = dict(strides=[1, 1, 1, 1], padding="VALID")
    # (op, good inputs) of every op with windows
    conv = {"Conv2D": [image, kernel], "Conv2DBackpropInput": [i32(1, 4, 4, 2), kernel, zeros(1, 3, 3, 3)],
            "Conv2DBackpropFilter": [image, i32(2, 2, 2, 3), zeros(1, 3, 3, 3)]}
    pooled = zeros(1, 3, 3, 2)
    pool = {"MaxPool": [image], "MaxPoolGrad": [image, pooled, pooled], "MaxPoolGradGrad": [image, pooled, image], "AvgPool": [image],
            "AvgPoolGrad": [i32(1, 4, 4, 2), pooled]}
    for op, inputs in (conv | pool).items():
        extra = {"ksize": [1, 2, 2, 1]} if op in pool else {}
        for strides in ([1, 1, 1], [2, 1, 1, 1], [1, 1, 1, 2], [1, 0, 1, 1], [1, 1, -1, 1], [1, LOW, 1, 1]):
            refuses(op, inputs, "strides", padding="VALID", strides=strides, **extra)
        for huge in (HIGH, 2**62):  # one window, so its step is not used: rejected for its size or because the shapes disagree
            refuses(op, inputs, padding="VALID", strides=[1, huge, huge, 1], **extra)
            refuses(op, inputs, padding="SAME", strides=[1, huge, huge, 1], **extra)
        refuses(op, inputs, "padding", "WIDE", padding="WIDE", strides=[1, 1, 1, 1], **extra)
        refuses(op, inputs, "data_format", "HWNC", data_format="HWNC", **plain, **extra)
        if op in ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "MaxPool", "MaxPoolGrad"):
            explicit = dict(strides=[1, 1, 1, 1], padding="EXPLICIT")
            for paddings in ([1, 1], [1, 0, 0, 0, 0, 0, 0, 0], [0, 0, -1, 0, 0, 0, 0, 0], [0, 0, 0, LOW, 0, 0, 0, 0], []):
                refuses(op, inputs, "explicit_paddings", explicit_paddings=paddings, **explicit, **extra)
            for paddings in ([0, 0, HIGH, HIGH, 0, 0, 0, 0], [0, 0, 2**62, 2**62, 0, 0, 0, 0], [0, 0, 2**31, 0, 0, 0, 0, 0],
                             [0, 0, 2**30, 0, 0, 2**30, 0, 0]):
                refuses(op, inputs, explicit_paddings=paddings, **explicit, **extra)
            refuses(op, inputs, "explicit_paddings", explicit_paddings=[0] * 8, **plain, **extra)
    for op, inputs in conv.items():
        for dilations in ([1, 1], [2, 1, 1, 1], [1, 0, 1, 1], [1, -1, 1, 1]):
            refuses(op, inputs, "dilations", dilations=dilations, **plain)
        for huge in (2**31, 2**62, HIGH):
            refuses(op, inputs, dilations=[1, huge, 1, 1], **plain)
            refuses(op, inputs, dilations=[1, 1, huge, 1], padding="SAME", strides=[1, 1, 1, 1])
    refuses("Conv2D", [zeros(4, 4, 2), kernel], "input", "[4, 4, 2]", **plain)
    refuses("Conv2D", [image, zeros(2, 2, 2)], "filter", "[2, 2, 2]", **plain)
    refuses("Conv2D", [image, zeros(2, 2, 3, 3)], "2", "3", **plain)
    refuses("Conv2D", [zeros(1, 4, 4, 4), zeros(2, 2, 2, 3)], "3", "2", **plain)  # two groups, three output channels
    refuses("Conv2D", [image, zeros(6, 2, 2, 3)], "6", "4", **plain)
    refuses("Conv2D", [image, zeros(0, 2, 2, 3)], "0", **plain)
    refuses("Conv2D", [image, zeros(2, 2, 0, 3)], "[2, 2, 0, 3]", **plain)
    bare = zeros(1, 4, 4, 0)
    refuses("Conv2D", [bare, kernel], "[1, 4, 4, 0]", "0", **plain)
    refuses("Conv2DBackpropInput", [i32(*bare.shape), kernel, zeros(1, 3, 3, 3)], "[1, 4, 4, 0]", "0", **plain)
    refuses("Conv2DBackpropFilter", [bare, i32(*kernel.shape), zeros(1, 3, 3, 3)], "[1, 4, 4, 0]", "0", **plain)
    for sizes in (i32(1, 4, 4), i32(1, 4, -4, 2), i32(1, 5, 4, 2), i32(2, 4, 4, 2), i32(1, 2**31 - 1, 2**31 - 1, 2)):
        refuses("Conv2DBackpropInput", [sizes, kernel, zeros(1, 3, 3, 3)], **plain)
    for sizes in (i32(2, 2, 2), i32(2, -2, 2, 3), i32(3, 2, 2, 3), i32(2, 2, 2, 4), i32(2**31 - 1, 2**31 - 1, 2, 3)):
        refuses("Conv2DBackpropFilter", [image, sizes, zeros(1, 3, 3, 3)], **plain)
    for op, inputs in pool.items():
        for ksize in ([1, 1, 1], [2, 1, 1, 1], [1, 1, 1, 2], [1, 0, 1, 1], [1, -1, 1, 1], [1, LOW, 1, 1]):
            refuses(op, inputs, "ksize", ksize=ksize, **plain)
        for huge in (6, 2**31, 2**62, HIGH):
            refuses(op, inputs, ksize=[1, huge, 2, 1], **plain)
        for huge in (2**31, 2**62, HIGH):
            refuses(op, inputs, ksize=[1, huge, 2, 1], strides=[1, 1, 1, 1], padding="SAME")
    refuses("MaxPool", [zeros(4, 4)], "[4, 4]", ksize=[1, 2, 2, 1], **plain)
    refuses("AvgPool", [zeros(4, 4)], "[4, 4]", ksize=[1, 2, 2, 1], **plain)
    refuses("MaxPoolGrad", [image, pooled, zeros(1, 2, 3, 2)], "[1, 2, 3, 2]", "[1, 3, 3, 2]", ksize=[1, 2, 2, 1], **plain)
    refuses("MaxPoolGrad", [image, zeros(1, 2, 3, 2), pooled], "[1, 2, 3, 2]", "[1, 3, 3, 2]", ksize=[1, 2, 2, 1], **plain)
    refuses("MaxPoolGradGrad", [image, pooled, zeros(1, 4, 3, 2)], "[1, 4, 3, 2]", ksize=[1, 2, 2, 1], **plain)
    refuses("AvgPoolGrad", [i32(1, 4, 4), pooled], "orig_input_shape", "3", ksize=[1, 2, 2, 1], **plain)
    refuses("AvgPoolGrad", [i32(1, 4, -4, 2), pooled], "-4", ksize=[1, 2, 2, 1], **plain)
    refuses("AvgPoolGrad", [i32(1, 2**31 - 1, 2**31 - 1, 2), pooled], ksize=[1, 2, 2, 1], **plain)
    for op in ("Softmax", "LogSoftmax"):
        refuses(op, [np.float32(1)], "logits")
    refuses("SoftmaxCrossEntropyWithLogits", [zeros(2, 3), zeros(2, 4)], "[2, 3]", "[2, 4]")
    refuses("SoftmaxCrossEntropyWithLogits", [zeros(3), zeros(3)], "[3]")
    refuses("SoftmaxCrossEntropyWithLogits", [zeros(1, 2, 3), zeros(1, 2, 3)], "[1, 2, 3]")
    for label in (3, -1, 2**32, LOW, HIGH):
        refuses("SparseSoftmaxCrossEntropyWithLogits", [zeros(2, 3), i64(0, label)], label, "3")
    refuses("SparseSoftmaxCrossEntropyWithLogits", [zeros(2, 3), i32(0)], "2", "1")
    refuses("SparseSoftmaxCrossEntropyWithLogits", [zeros(3), i32(0)], "features", "[3]")
    refuses("SparseSoftmaxCrossEntropyWithLogits", [zeros(2, 3), i32([0], [0])], "labels")
    refuses("SparseSoftmaxCrossEntropyWithLogits", [zeros(2, 0), i32(0, 0)], "[2, 0]")
    refuses("BiasAdd", [zeros(2, 3), zeros(2)], "[2, 3]", "2")
    refuses("BiasAdd", [zeros(3), zeros(3)], "value", "[3]")
    refuses("BiasAdd", [zeros(2, 3), zeros(3, 1)], "bias", "[3, 1]")
    refuses("BiasAdd", [zeros(2, 3), zeros(3)], "[2, 3]", data_format="NCHW")
    refuses("BiasAddGrad", [zeros(3)], "out_backprop", "[3]")
    refuses("BiasAddGrad", [zeros(2, 3)], "out_backprop", "[2, 3]", data_format="NCHW")


def random_numbers():
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        for shape in (i32(-1), i64(HIGH), i64(2**40), i64(2**32, 2**32), i64(LOW), np.int32(2)):
            refuses(op, [shape], dtype=np.float32)
    for shape in (i32(-1), i64(HIGH), i64(2**40), np.int32(2)):
        refuses("RandomUniformInt", [shape, np.int32(0), np.int32(9)])
    refuses("RandomUniformInt", [i32(2), np.int64(HIGH), np.int64(LOW)], HIGH, LOW)
    refuses("RandomUniformInt", [i32(2), i32(0), np.int32(2)], "minval", "[1]")


def files_and_control():
    text = lambda *t: np.array(t, object)
    path = np.array(b"/nonexistent/error_test/model", object)
    refuses("SaveV2", [path, text(b"a", b"b"), text(b""), np.float32(1)], "tensor_names", "2", dtypes=[np.float32])
    refuses("SaveV2", [path, text(b"a"), text(b"", b""), np.float32(1)], "shape_and_slices", "2", dtypes=[np.float32])
    refuses("SaveV2", [text(b"x"), text(b"a"), text(b""), np.float32(1)], "prefix", "[1]", dtypes=[np.float32])
    refuses("SaveV2", [path, text(b"a"), text(b""), np.float32(1)], "/nonexistent/error_test", dtypes=[np.float32])
    refuses("RestoreV2", [path, text(b"a", b"b"), text(b"")], "tensor_names", "2", dtypes=[np.float32])
    refuses("RestoreV2", [path, text(b"a"), text(b"")], "/nonexistent/error_test", dtypes=[np.float32])
    refuses("MergeV2Checkpoints", [path, path], "checkpoint_prefixes", "[]")
    refuses("MergeV2Checkpoints", [text(b"a"), text(b"b")], "destination_prefix", "[1]")
    refuses("MergeV2Checkpoints", [text(path.item()), path], "one of the parts")
    refuses("MergeV2Checkpoints", [text(b"/nonexistent/a"), path], "/nonexistent/a")
    refuses("MergeV2Checkpoints", [text(b"/nonexistent/a"), path], "allow_missing_files", allow_missing_files=True)
    refuses("ShardedFilename", [text(b"a"), np.int32(0), np.int32(1)], "basename", "[1]")
    refuses("ShardedFilespec", [path, i32(1)], "num_shards", "[1]")
    refuses("Assert", [np.bool_(False), i32(17, 4), text(b"why")], "17", "why", T=[np.int32, object])
    for shown, summarize in (("[17 4...]", 2), ("[17 4 5]", 3), ("[17 4 5]", -1), ("[...]", 0)):
        refuses("Assert", [np.bool_(False), i32(17, 4, 5)], shown, T=[np.int32], summarize=summarize)
    refuses("Assert", [np.bool_(False), tw.Variable(zeros(2))], "[?]", T=[tw.thalweg.as_dtype("resource")])
    refuses("Assert", [np.array([True]), i32(1)], "condition", T=[np.int32])
    if not tw.SESSION.get("device"):  # on another device the framework runs them in host memory
        refuses("Switch", [i32(1), np.array([True])], "pred")
        refuses("LoopCond", [np.array([True])], "input")
    refuses("StringJoin", [text(b"a", b"b"), text(b"c")], "[2]", "[1]", N=2)
    refuses("AsString", [np.float32(1)], "fill", fill="long")
    refuses("IdentityN", [], "T", T=[])


def declared_errors():
    """Runs the cases in the declarations, and gives incompatible shapes to element-wise ops without a case."""
    book = declared()
    for op, inputs, parts, attrs in book.refused:
        refuses(op, inputs, *parts, **attrs)
    for declaration in book.ops.values():
        if declaration.draw in (same, broadcast):
            apart(declaration)


def apart(declaration):
    """Makes inputs with incompatible shapes, for an op that needs compatible ones."""
    use = next(uses(declaration, 1))
    defaults = {a["name"] for a in tw.ops()[use.op]["attrs"] if "default" in a and a["kind"] != "type"}
    attrs = {a: v for a, v in use.attrs.items() if a not in defaults}
    covered.add(use.op)
    if len(use.flat) > 1:
        refuses(use.op, [np.zeros((2, 3), x.dtype) for x in use.flat[:-1]] + [np.zeros(4, use.flat[-1].dtype)], "[2, 3]", "[4]", **attrs)


# Ops without a case in this file: they take any shapes, or the errors are tested elsewhere.
ELEMENTWISE = set("Abs Neg Sign Square Sqrt Rsqrt Reciprocal Exp Expm1 Log Log1p Sin Cos Tanh Sigmoid Erf Floor Ceil Round IsNan IsInf "
                  "IsFinite LogicalNot Conj Relu Relu6 L2Loss Cast Identity StopGradient OnesLike ZerosLike Shape ShapeN Size Rank Where "
                  "EncodeBase64 SerializeTensor StringStrip NoOp RandomShuffle StatelessRandomGetAlg".split())
STATE = set("VarHandleOp VarIsInitializedOp ReadVariableOp AssignVariableOp AssignAddVariableOp AssignSubVariableOp DestroyResourceOp "
            "SaveResource RestoreResources "
            "ResourceGather ResourceScatterAdd ResourceScatterSub ResourceScatterUpdate "
            "ResourceGatherNd ResourceScatterNdUpdate ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdMax ResourceScatterNdMin "
            "VariableV2 Variable Assign AssignAdd AssignSub IsVariableInitialized ScatterAdd ScatterSub "
            "ScatterUpdate".split())  # state_test.py, reference_test.py
LISTS = {op for path, names in UNDECLARED.items() if path.startswith("ops/") for op in names.split()
         if path.removeprefix("ops/") in ("list_test.py", "optional_test.py", "tensor_array_test.py", "stack_test.py", "lookup_test.py")}
TRAINING = {op for op in tw.ops() if op.startswith(("Apply", "ResourceApply", "ResourceSparseApply"))}  # training_test.py, reference_test.py
QUEUES = {op for op in tw.ops() if "Queue" in op or "Accumulator" in op}  # queue_test.py, accumulator_test.py
QUEUES |= {op for path in ("barrier", "map_staging", "mutex", "snapshot", "staging") for op in UNDECLARED[f"ops/{path}_test.py"].split()}
FRAMEWORK = set("Const Placeholder _Send _Recv".split())
FLOW = {op for path, names in UNDECLARED.items() if path.endswith(("frame_run_test.cc", "control_flow_test.py")) for op in names.split()}
FUNCTIONS = set((UNDECLARED["python/flow_test.py"] + " " + UNDECLARED["python/host_functions_test.py"]).split())
COLLECTIVES = set(UNDECLARED["python/collectives_test.py"].split())
DATA = {op for path, names in UNDECLARED.items() if path.startswith(("python/data_", "python/summary_", "python/text_")) for op in names.split()}


def every_op_has_a_case():
    for op in tw.ops():
        cases.holds(f"errors of {op}", op in covered | ELEMENTWISE | STATE | LISTS | TRAINING | QUEUES | FRAMEWORK | FLOW | FUNCTIONS | COLLECTIVES | DATA, "no case")
    x = zeros(2)
    graph = tw.Graph()
    placeholder = graph.placeholder(np.float32, (2, -1))
    out = graph.op("Neg", placeholder)
    session = graph.session()
    for wrong in (zeros(3, 1), zeros(2), np.zeros((2, 1))):
        cases.refuses(f"feeding {wrong.dtype} {wrong.shape}", lambda: session.run([out], {placeholder: tw.to_tensor(wrong)}))
    cases.equal("after wrong feeds", session.run([out], {placeholder: zeros(2, 1)})[0], zeros(2, 1))
    cases.refuses("a Const of another type", lambda: graph.op("Const", value=x, dtype=np.int32), "Const", "float", "int32")
    cases.refuses("an unknown op", lambda: graph.op("MatMull", placeholder, placeholder), "MatMull")


def worker():
    limit()
    axes_and_shapes()
    slices()
    values_that_grow()
    ranges_and_one_hots()
    rows_and_elements()
    reductions()
    matrices_and_element_by_element()
    networks()
    random_numbers()
    files_and_control()
    declared_errors()
    every_op_has_a_case()
    cases.finish()


if __name__ == "__main__":
    worker() if sys.argv[1:2] == ["worker"] else alone(__file__)
