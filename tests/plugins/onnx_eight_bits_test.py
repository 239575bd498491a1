"""Products and convolutions of 8-bit numbers in ONNX files, against sums in 64 bits: one zero point for all numbers, for which there are
kernels of 8 bits, and others."""
import itertools

import numpy as np
import pytest
import thalweg as tw

import onnx_writer as w

RNG = np.random.default_rng(5)
TYPES = [*itertools.product(["int8", "uint8"], repeat=2)]


def drawn(dtype, *shape):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def run(tmp_path, op, inputs, output, **attributes):
    """Runs a file of one node. inputs: pairs of name and array; those whose names begin with a capital are constants of the file."""
    nodes = [w.node(op, [name for name, _ in inputs], ["y"], **attributes)]
    fed = [(name, array) for name, array in inputs if name.islower()]
    file = tmp_path / "model.onnx"
    file.write_bytes(w.model(nodes, [w.value(name, array.dtype.name, array.shape) for name, array in fed], [w.value("y", *output)],
                             [(name, array) for name, array in inputs if not name.islower()]))
    model = tw.load(file)
    return np.asarray(model(**dict(fed))["y"])


def wide(array, zero, axis=None):
    """Returns the numbers minus their zero point, or minus those along an axis."""
    zero = np.int64(zero)
    return np.asarray(array, np.int64) - (zero if axis is None else zero.reshape([-1 if k == axis % array.ndim else 1 for k in range(array.ndim)]))


def steps(real, scale, zero):
    """Returns numbers of the zero point's type that stand for real ones."""
    info = np.iinfo(zero.dtype)
    return np.clip(np.rint(real / scale) + zero, info.min, info.max).astype(zero.dtype)


def convolved(x, filters, pads, strides, dilations, groups=1):
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    rows, columns = ((size - (k - 1) * d - 1) // s + 1 for size, k, s, d in zip(x.shape[2:], filters.shape[2:], strides, dilations))
    parts = []
    for part, own in zip(np.split(x, groups, 1), np.split(filters, groups, 0)):
        made = 0
        for i, j in np.ndindex(*filters.shape[2:]):
            top, left = i * dilations[0], j * dilations[1]
            view = part[:, :, top:top + strides[0] * (rows - 1) + 1:strides[0], left:left + strides[1] * (columns - 1) + 1:strides[1]]
            made = made + np.einsum("nchw,oc->nohw", view, own[:, :, i, j])
        parts.append(made)
    return np.concatenate(parts, 1)


@pytest.mark.parametrize("left, right", TYPES)
@pytest.mark.parametrize("a, b", [((5, 70), (70, 33)), ((2, 3, 7), (7, 40)), ((9,), (9, 4)), ((4, 9), (9,)), ((2, 3, 5), (2, 5, 4))])
def test_products_are_exact(tmp_path, left, right, a, b):
    x, y, zero_x, zero_y = drawn(left, *a), drawn(right, *b), drawn(left), drawn(right)
    wanted = wide(x, zero_x) @ wide(y, zero_y)
    got = run(tmp_path, "MatMulInteger", [("x", x), ("Y", y), ("Zero_x", zero_x), ("Zero_y", zero_y)], ("int32", wanted.shape))
    np.testing.assert_array_equal(got, wanted)


def test_products_without_zero_points_and_with_one_for_each_row_and_column(tmp_path):
    x, y = drawn("uint8", 6, 20), drawn("uint8", 20, 5)
    got = run(tmp_path, "MatMulInteger", [("x", x), ("y", y)], ("int32", (6, 5)))
    np.testing.assert_array_equal(got, wide(x, 0) @ wide(y, 0))
    rows, columns = drawn("uint8", 6), drawn("uint8", 5)
    got = run(tmp_path, "MatMulInteger", [("x", x), ("y", y), ("Rows", rows), ("Columns", columns)], ("int32", (6, 5)))
    np.testing.assert_array_equal(got, wide(x, rows, 0) @ wide(y, columns, 1))


def test_sums_beyond_32_bits_wrap_around_and_ends_are_exact(tmp_path):
    for k in (4099, 70000):
        x, y = np.full((2, k), 255, np.uint8), np.full((k, 3), -128, np.int8)
        got = run(tmp_path, "MatMulInteger", [("x", x), ("y", y), ("zero_x", np.uint8(0)), ("Zero_y", np.int8([127] * 3))], ("int32", (2, 3)))
        np.testing.assert_array_equal(got, np.full((2, 3), -255 * 255 * k).astype(np.int32))


def test_zero_points_may_be_vectors_of_one_entry(tmp_path):
    x, y = drawn("int8", 3, 8), drawn("uint8", 8, 4)
    for zeros in ((np.int8([-7]), np.uint8([200])), (np.int8([-7] * 3), np.uint8([[200]]))):
        got = run(tmp_path, "MatMulInteger", [("x", x), ("y", y), ("Zero_x", zeros[0]), ("Zero_y", zeros[1])], ("int32", (3, 4)))
        np.testing.assert_array_equal(got, wide(x, -7) @ wide(y, 200))


def test_sizes_may_be_unknown_until_the_step(tmp_path):
    """A batch of unknown size, and products without elements."""
    filters, matrix = drawn("int8", 20, 3, 3, 3), drawn("int8", 7, 5)
    file = tmp_path / "model.onnx"
    file.write_bytes(w.model([w.node("ConvInteger", ["x", "W", "Zero"], ["y"], pads=[1, 1, 1, 1]),
                              w.node("MatMulInteger", ["v", "M"], ["z"])],
                             [w.value("x", "uint8", ["n", 3, 6, 5]), w.value("v", "uint8", ["a", "b", 7])],
                             [w.value("y", "int32", ["n", 20, 6, 5]), w.value("z", "int32", ["a", "b", 5])],
                             [("W", filters), ("Zero", np.uint8(9)), ("M", matrix)]))
    model = tw.load(file)
    for batch in (0, 1, 4):
        x, v = drawn("uint8", batch, 3, 6, 5), drawn("uint8", 2, batch, 7)
        got = model(x=x, v=v)
        np.testing.assert_array_equal(got["y"], convolved(wide(x, 9), wide(filters, 0), [1] * 4, [1, 1], [1, 1]))
        np.testing.assert_array_equal(got["z"], wide(v, 0) @ wide(matrix, 0))


def test_the_zero_point_may_be_computed(tmp_path):
    x, y, zero = drawn("uint8", 6, 20), drawn("int8", 20, 5), drawn("uint8")
    got = run(tmp_path, "MatMulInteger", [("x", x), ("y", y), ("zero", zero)], ("int32", (6, 5)))
    np.testing.assert_array_equal(got, wide(x, zero) @ wide(y, 0))


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_products_in_steps_of_a_scale(tmp_path, kind):
    # Scales are powers of 2, so that all results are exact.
    x, y, zero_x, zero_y, zero = drawn("uint8", 7, 31), drawn("int8", 31, 18), drawn("uint8"), drawn("int8"), drawn(kind)
    scales = [np.float32(2.0**k) for k in (-4, -5, 3)]
    inputs = [("x", x), ("Scale_x", scales[0]), ("Zero_x", zero_x), ("Y", y), ("Scale_y", scales[1]), ("Zero_y", zero_y),
              ("Scale", scales[2]), ("Zero", zero)]
    got = run(tmp_path, "QLinearMatMul", inputs, (kind, (7, 18)))
    np.testing.assert_array_equal(got, steps((wide(x, zero_x) @ wide(y, zero_y)) * 2.0**-9, 8, zero))


CONVOLUTIONS = [dict(kernel=(3, 3), pads=[1, 1, 1, 1]), dict(kernel=(1, 1)), dict(kernel=(2, 3), pads=[0, 2, 1, 0], strides=[2, 1]),
                dict(kernel=(3, 2), dilations=[2, 3]), dict(kernel=(3, 3), groups=2, results=34), dict(kernel=(3, 3), groups=4, results=4),
                dict(kernel=(3, 2), groups=4, results=8, pads=[1, 0, 0, 1], strides=[2, 1], dilations=[1, 2]),
                dict(kernel=(16, 17), groups=4, results=4, pads=[8] * 4)]


@pytest.mark.parametrize("left, right", TYPES)
@pytest.mark.parametrize("given", CONVOLUTIONS)
def test_convolutions_are_exact(tmp_path, left, right, given):
    groups = given.get("groups", 1)
    x, filters = drawn(left, 2, 4, 9, 11), drawn(right, given.get("results", 5), 4 // groups, *given["kernel"])
    zero_x, zero_w = drawn(left), drawn(right)
    attributes = dict(pads=given.get("pads", [0] * 4), strides=given.get("strides", [1, 1]), dilations=given.get("dilations", [1, 1]))
    wanted = convolved(wide(x, zero_x), wide(filters, zero_w), *attributes.values(), groups)
    got = run(tmp_path, "ConvInteger", [("x", x), ("W", filters), ("Zero_x", zero_x), ("Zero_w", zero_w)], ("int32", wanted.shape),
              group=groups, **attributes)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("zeros", ["equal", "different"])
def test_convolutions_with_a_scale_for_each_filter(tmp_path, zeros):
    x, filters, bias = drawn("uint8", 1, 3, 8, 8), drawn("int8", 6, 3, 3, 3), RNG.integers(-900, 900, 6).astype(np.int32)
    zero_x, zero = drawn("uint8"), drawn("uint8")
    zero_w = np.full(6, -3, np.int8) if zeros == "equal" else drawn("int8", 6)
    scales = np.float32(2.0**RNG.integers(-6, -3, 6))
    inputs = [("x", x), ("Scale_x", np.float32(0.25)), ("Zero_x", zero_x), ("W", filters), ("Scale_w", scales), ("Zero_w", zero_w),
              ("Scale", np.float32(8)), ("Zero", zero), ("Bias", bias)]
    got = run(tmp_path, "QLinearConv", inputs, ("uint8", (1, 6, 8, 8)), pads=[1, 1, 1, 1])
    sums = convolved(wide(x, zero_x), wide(filters, zero_w, 0), [1] * 4, [1, 1], [1, 1]) + bias.reshape(-1, 1, 1)
    np.testing.assert_array_equal(got, steps(sums * 0.25 * np.float64(scales).reshape(-1, 1, 1), 8, zero))


if __name__ == "__main__":
    raise SystemExit(pytest.main(["-q", "-p", "no:cacheprovider", __file__]))
