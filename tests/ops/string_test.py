"""Tests of strings: every op that moves elements of any type; ops that strings do not support; numbers in a program whose locale has
decimal commas."""
import locale
import os
import shutil
import subprocess
import tempfile

import numpy as np

import cases
import tw
from arrays import i32
from cases import expect

rng = np.random.default_rng(19)


def strings(texts):
    return np.array(texts, object)


# Empty and long strings, with zero bytes, and not UTF-8: ops do not interpret the bytes.
x = strings([[b"", b"a", b"with \0 zero"], [b"\xff\xfe", b"long " * 1000, b"caf\xc3\xa9"]])
y = strings([[b"0", b"1", b"2"], [b"3", b"4", b"5"]])
one, none = strings(b"one"), np.zeros((0, 3), object)

# ---- Elements that are moved ----

for op in ("Identity", "StopGradient"):
    for value in (x, one, none):
        expect(op, [value], [value])
expect("IdentityN", [x, np.float32(2)], [x, np.float32(2)], T=[object, np.float32])
expect("PlaceholderWithDefault", [x], [x], shape=(2, 3))
expect("EnsureShape", [x], [x], shape=(2, -1))
expect("Shape", [x], [i32(2, 3)])
expect("ShapeN", [x, one], [i32(2, 3), np.zeros(0, np.int32)], N=2)
expect("Size", [none], [np.int32(0)])
expect("Rank", [x], [np.int32(2)])
expect("Reshape", [x, i32(3, -1)], [x.reshape(3, 2)])
expect("ExpandDims", [x, np.int32(1)], [x[:, None]])
expect("Squeeze", [x[:1]], [x[0]])
expect("Transpose", [x, i32(1, 0)], [x.T])
expect("ConcatV2", [x, y, none, np.int32(0)], [np.concatenate([x, y])], N=3)
expect("ConcatV2", [x, y, np.int32(-1)], [np.concatenate([x, y], 1)], N=2)
expect("Split", [np.int32(1), x], [x[:, :1], x[:, 1:2], x[:, 2:]], num_split=3)
expect("Pack", [x, y], [np.stack([x, y], 1)], axis=1, N=2)
expect("Unpack", [x], [x[0], x[1]], num=2)
expect("Slice", [x, i32(1, 0), i32(1, -1)], [x[1:]])
expect("StridedSlice", [x, i32(1, 2), i32(-9, -9), i32(-1, -2)], [x[::-1, ::-2]])
expect("StridedSlice", [x, i32(1, 1), i32(2, 2), i32(1, 1)], [x[1, 1]], shrink_axis_mask=3)
expect("StridedSliceGrad", [i32(2, 3), i32(0, 1), i32(2, 2), i32(1, 1), y[:, 1:2]], [[[b"", b"1", b""], [b"", b"4", b""]]])
expect("Tile", [x, i32(2, 1)], [np.tile(x, (2, 1))])
expect("Pad", [y, i32([1, 0], [0, 1])], [[[b""] * 4, [b"0", b"1", b"2", b""], [b"3", b"4", b"5", b""]]])
expect("BroadcastTo", [x[0], i32(2, 3)], [np.broadcast_to(x[0], (2, 3))])
expect("BroadcastTo", [one, i32(0, 2)], [np.zeros((0, 2), object)])
expect("Fill", [i32(2, 2), one], [np.full((2, 2), b"one", object)])
expect("ZerosLike", [x], [np.full((2, 3), b"", object)])
expect("OneHot", [i32(1, -1), np.int32(2), strings(b"on"), strings(b"off")], [[[b"off", b"on"], [b"off", b"off"]]])
expect("GatherV2", [x, i32(1, 0, 1), np.int32(0)], [x[[1, 0, 1]]])
expect("GatherV2", [x, i32(2, 0), np.int32(1)], [x[:, [2, 0]]])
expect("GatherNd", [x, i32([1, 2], [0, 0])], [x[[1, 0], [2, 0]]])
expect("ScatterNd", [i32([3], [1]), strings([b"three", b"one"]), i32(4)], [[b"", b"one", b"", b"three"]])
expect("Select", [np.array([True, False]), x, y], [np.stack([x[0], y[1]])])
expect("SelectV2", [np.array([True, False, True]), x, one], [np.where([True, False, True], x, b"one")])

# ---- Comparisons and sums ----

for a, b in ((x, x), (x, y), (y, strings(b"4")), (x[:, :1], x[:1]), (none, one)):
    expect("Equal", [a, b], [np.asarray(a == b, bool)])
    expect("NotEqual", [a, b], [np.asarray(a != b, bool)])
    expect("Add", [a, b], [a + b])
expect("Equal", [strings([b"a", b"b"]), strings([b"a", b"b", b"c"])], [np.bool_(False)], incompatible_shape_error=False)
expect("NotEqual", [strings([b"a", b"b"]), strings([b"a", b"b", b"c"])], [np.bool_(True)], incompatible_shape_error=False)

# ---- Ops that strings do not support ----

for op, inputs in (("Neg", [x]), ("Mul", [x, y]), ("Less", [x, y]), ("AddN", [x, y]), ("AddV2", [x, y]), ("Where", [x]), ("OnesLike", [x])):
    attrs = {"N": 2} if op == "AddN" else {}
    cases.refuses(f"{op} of strings", lambda: tw.run(op, inputs, **attrs), f"{op} 'op'", "string")
cases.refuses("Cast of strings", lambda: tw.run("Cast", [x], DstT=np.float32), "Cast 'op'", "string")

# ---- Truth from bytes has one form ----

truth = tw.run("DecodeRaw", [strings(b"\0\1\2\xff")], out_type=np.bool_)[0].tobytes()
cases.holds("DecodeRaw of bool", truth == b"\0\1\1\1", truth)

# ---- A program whose locale has decimal commas ----

with tempfile.TemporaryDirectory() as folder:
    if shutil.which("localedef"):
        subprocess.run(["localedef", "--no-archive", "-i", "de_DE", "-f", "UTF-8", folder + "/comma.UTF-8"], capture_output=True)
    os.environ["LOCPATH"] = folder
    try:
        locale.setlocale(locale.LC_NUMERIC, "comma.UTF-8")
        cases.holds("the locale has commas", locale.localeconv()["decimal_point"] == ",")
        expect("AsString", [np.array([1234.5, 1j])], [[b"(1234.50,0.00)", b"(0.00,1.00)"]], precision=2)
        expect("StringToNumber", [strings([b"1.5"])], [np.float64([1.5])], out_type=np.float64)
    except locale.Error:
        print("without localedef and the sources of locales there is no locale with commas to try")
    locale.setlocale(locale.LC_NUMERIC, "C")

cases.finish()
