"""Images made of other images with weights for rows and columns, in plain NumPy, and draws of such uses."""
import numpy as np

from ulps import near


def scale_of(n, size, corners):
    """Returns how many of n pixels one of `size` pixels covers, in float as in the op."""
    return np.float32(n - 1) / np.float32(size - 1) if corners and size > 1 else np.float32(n) / np.float32(size)


def resampled(x, rows, columns, sizes=None):
    """Returns rows * x * columns' for each image, and the sizes of the summed terms. sizes: bounds of both matrices, if larger."""
    x = x.astype(np.longdouble)
    large = sizes or (abs(rows), abs(columns))
    return near(*(np.einsum("yi,xj,bijc->byxc", r, c, v) for r, c, v in ((rows, columns, x), (*large, abs(x)))))


def resampled_back(dy, rows, columns, sizes=None):
    return resampled(dy, rows.T, columns.T, sizes and [m.T for m in sizes])


def shapes(d, prepare):
    prepare(d)
    most = 3 if d.smooth else 40 if d.large else 7
    batch, channels = (2, 9) if d.large else (1, 2) if d.smooth else (d.integer(0, 3), d.integer(0, 4))
    sizes = [(d.integer(1, most), d.integer(1, most)) for _ in range(2)]
    return [(batch, *size, channels) for size in sizes]


def forward(prepare, more=lambda d, sizes: []):
    def draw(d):
        image, resized = shapes(d, prepare)
        return [d("images", image), d("size", of=resized[1:3]), *more(d, (image, resized))]
    return draw


def backward(prepare, more=lambda d, sizes: []):
    def draw(d):
        image, resized = shapes(d, prepare)
        return [d("grads", resized), d("original_image", image), *more(d, (image, resized))]
    return draw
