import numpy as np

from declare import accepts, op, refuses


def length(diagonal, rows, cols):
    return min(rows + min(diagonal, 0), cols - max(diagonal, 0))


def longest(low, high, rows, cols):
    return min(rows + min(high, 0), cols - max(low, 0))


def places(align, low, high, rows, cols):
    """Yields the position of each element of the band in the matrix and among the diagonals."""
    above, below = align.split("_")
    for d in range(low, high + 1):
        n = length(d, rows, cols)
        right = "RIGHT" in ((above,) if d > 0 else (below,) if d < 0 else ()) or d == 0 and (above, below) == ("RIGHT", "RIGHT")
        begin = longest(low, high, rows, cols) - n if right else 0
        for j in range(n):
            yield (j + max(-d, 0), j + max(d, 0)), (high - d, begin + j)


def matrix(d):
    """Draws batch axes and the sizes of the matrices."""
    batch = (3,) if d.large else tuple(int(s) for s in d.rng.integers(0 if not d.smooth else 1, 3, d.integer(0, 2)))
    low = 1 if d.smooth else 0
    return batch, *((151, 203) if d.large else (d.integer(low, 5), d.integer(low, 5)))


def band(d, rows, cols):
    """Draws the lowest and the highest diagonal, and the value of k for them."""
    inside = [k for k in range(-rows + 1, cols)] if rows and cols else [0]
    low, high = sorted([d.pick(*inside), d.pick(*inside)]) if d.integer(0, 1) else [d.pick(*inside)] * 2
    return low, high, np.array(d.pick(low, [low], [low, low]) if low == high else [low, high])


def band_shape(low, high, rows, cols):
    n = longest(low, high, rows, cols)
    return (high - low + 1, n) if low < high else (n,)


def stacked(x, low, high):
    """Returns the diagonals, always along an axis of their own."""
    return x if low < high else x[..., None, :]


def part(d):
    batch, rows, cols = matrix(d)
    return [d("input", (*batch, rows, cols)), d("k", of=band(d, rows, cols)[2]), d("padding_value", ())]


def taken(x, k, padding, *, align):
    low, high = k.flat[0], k.flat[-1]
    y = np.empty((*x.shape[:-2], high - low + 1, longest(low, high, *x.shape[-2:])), x.dtype)
    y[...] = padding
    for (r, c), (i, j) in places(align, low, high, *x.shape[-2:]):
        y[..., i, j] = x[..., r, c]
    return y if low < high else y[..., 0, :]


def replaced(d):
    batch, rows, cols = matrix(d)
    low, high, k = band(d, rows, cols)
    return [d("input", (*batch, rows, cols)), d("diagonal", (*batch, *band_shape(low, high, rows, cols))), d("k", of=k)]


def put(x, diagonal, k, *, align):
    low, high = k.flat[0], k.flat[-1]
    y = x.copy()
    for (r, c), (i, j) in places(align, low, high, *x.shape[-2:]):
        y[..., r, c] = stacked(diagonal, low, high)[..., i, j]
    return y


def least(low, high, n):
    """Returns the rows and columns that diagonals of n elements need."""
    return n + max(-high, 0), n + max(low, 0)


def made(d):
    batch, rows, cols = matrix(d)
    low, high, k = band(d, rows, cols)
    shape = band_shape(low, high, rows, cols)
    fewest = least(low, high, shape[-1])
    sizes = [-1 if d.integer(0, 1) and have == few else have for have, few in zip((rows, cols), fewest)]
    return [d("diagonal", (*batch, *shape)), d("k", of=k), d("num_rows", of=sizes[0]), d("num_cols", of=sizes[1]), d("padding_value", ())]


def diag(diagonal, k, rows, cols, padding, *, align):
    low, high = k.flat[0], k.flat[-1]
    fewest = least(low, high, diagonal.shape[-1])
    if rows == -1 and cols == -1:
        fewest = [max(fewest)] * 2
    rows, cols = (few if n == -1 else n for n, few in zip((rows, cols), fewest))
    band = stacked(diagonal, low, high)
    y = np.empty((*band.shape[:-2], rows, cols), band.dtype)
    y[...] = padding
    for (r, c), (i, j) in places(align, low, high, rows, cols):
        y[..., r, c] = band[..., i, j]
    return y


def reaching(d):
    batch, rows, cols = matrix(d)
    return [d("input", (*batch, rows, cols)), d("num_lower", of=d.integer(-1, rows)), d("num_upper", of=d.integer(-1, cols))]


def band_part(x, lower, upper):
    away = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    outside = ((away < -lower) & (lower >= 0)) | ((away > upper) & (upper >= 0))
    y = x.copy()
    y[..., outside] = b"" if x.dtype == object else np.zeros((), x.dtype)
    return y


op("MatrixDiagV3", diag, made)
op("MatrixDiagPartV3", taken, part)
op("MatrixSetDiagV3", put, replaced)
op("MatrixBandPart", band_part, reaching)

m = np.zeros((3, 4), np.float32)
zero, i32 = np.float32(0), lambda *values: np.array(values, np.int32)
for d in (4, -3, 2**31 - 1, -2**31):
    refuses("MatrixDiagPartV3", [m, np.int32(d), zero], "k", d, "[3, 4]")
    refuses("MatrixSetDiagV3", [m, np.zeros(1, np.float32), np.int32(d)], "k", d, "[3, 4]")
refuses("MatrixDiagPartV3", [m, i32(1, -1), zero], "[1, -1]")
refuses("MatrixDiagPartV3", [m, i32(-1, 0, 1), zero], "k", "3")
refuses("MatrixDiagPartV3", [m, i32([0]), zero], "k", "[1, 1]")
refuses("MatrixDiagPartV3", [m, np.zeros(0, np.int32), zero], "k")
refuses("MatrixDiagPartV3", [m[0], np.int32(0), zero], "input", "[4]")
refuses("MatrixDiagPartV3", [m, np.int32(0), np.zeros(1, np.float32)], "padding_value")
refuses("MatrixDiagPartV3", [m, np.int32(0), zero], "align", "LEFT", align="LEFT")
refuses("MatrixSetDiagV3", [m, np.zeros(4, np.float32), np.int32(0)], "[4]", "3")
refuses("MatrixSetDiagV3", [m, np.zeros((1, 3), np.float32), np.int32(0)], "[1, 3]", "3")
refuses("MatrixSetDiagV3", [m, np.zeros((3, 3), np.float32), i32(0, 1)], "[3, 3]", "2")
refuses("MatrixSetDiagV3", [m[0], np.zeros(3, np.float32), np.int32(0)], "input")
refuses("MatrixSetDiagV3", [m, np.float32(1), np.int32(0)], "diagonal")
v = np.zeros(2, np.float32)
none = np.int32(-1)
refuses("MatrixDiagV3", [v, i32(1, -1), none, none, zero], "[1, -1]")
refuses("MatrixDiagV3", [v, np.int32(0), np.int32(1), none, zero], "num_rows", "1", "2")
refuses("MatrixDiagV3", [v, np.int32(3), none, np.int32(4), zero], "num_cols", "4", "5")
refuses("MatrixDiagV3", [v, np.int32(0), np.int32(3), np.int32(5), zero], "[3, 5]", "2")
refuses("MatrixDiagV3", [v, np.int32(0), np.int32(-2), none, zero], "num_rows", "-2")
refuses("MatrixDiagV3", [v, np.int32(0), none, np.int32(-2**31), zero], "num_cols", -2**31)
refuses("MatrixDiagV3", [v, i32(0, 1), none, none, zero], "[2]", "2")
refuses("MatrixDiagV3", [m, i32(0, 1), none, none, zero], "[3, 4]", "2")
refuses("MatrixDiagV3", [v, np.int32(2**31 - 1), none, none, zero])
refuses("MatrixDiagV3", [v, np.int32(0), i32(1), none, zero], "num_rows", "[1]")
refuses("MatrixDiagV3", [v, np.int32(0), none, none, v], "padding_value")
refuses("MatrixDiagV3", [zero, np.int32(0), none, none, zero], "diagonal")
for n in (4, 2**62, 2**63 - 1):
    refuses("MatrixBandPart", [m, np.int64(n), np.int64(0)], "num_lower", n)
    refuses("MatrixBandPart", [m, np.int64(0), np.int64(n + 1 if n == 4 else n)], "num_upper")
refuses("MatrixBandPart", [m[0], np.int64(0), np.int64(0)], "input")
refuses("MatrixBandPart", [m, np.array([0]), np.int64(0)], "num_lower")
accepts("MatrixBandPart", [m + 1, np.int64(-2**63), np.int64(0)], np.tril(m + 1))
