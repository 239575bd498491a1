import numpy as np

from arrays import i32, zeros
from declare import op, refuses
from domains import normal, whole
from ulps import near

RESULT_IN_FLOAT = "its result is float whatever it is made of; gradient_of_floats_test.py checks it"


def alignment(d):
    how = d.pick((False, False), (True, False), (False, True))
    d.set(align_corners=how[0], half_pixel_centers=how[1])


def shapes(d):
    """Draws the shapes of an image and of its resized image."""
    alignment(d)
    most = 3 if d.smooth else 60 if d.large else 7
    batch, channels = (2, 9) if d.large else (d.integer(0, 3), d.integer(0, 4)) if not d.smooth else (1, 2)
    sizes = [(d.integer(1, most), d.integer(1, most)) for _ in range(2)]
    return [(batch, *size, channels) for size in sizes]


def forward(d):
    image, resized = shapes(d)
    return [d("images", image), d("size", of=resized[1:3])]


def places(n, size, align_corners, half_pixel_centers, centre):
    """Returns the position of each of `size` pixels among n, in float as in the op. centre: subtracted again if pixels are areas."""
    scale = np.float32(n - 1) / np.float32(size - 1) if align_corners and size > 1 else np.float32(n) / np.float32(size)
    at = np.arange(size, dtype=np.float32)
    return (at + np.float32(0.5)) * scale - np.float32(centre) if half_pixel_centers else at * scale


def bilinear_matrix(n, size, align_corners, half_pixel_centers):
    """Returns the weights of the source pixels for each pixel along one axis: [size, n]."""
    at = places(n, size, align_corners, half_pixel_centers, 0.5)
    low = np.floor(at)
    weight = (at - low).astype(np.longdouble)
    matrix, rows = np.zeros((size, n), np.longdouble), np.arange(size)
    np.add.at(matrix, (rows, np.clip(low, 0, n - 1).astype(int)), 1 - weight)
    np.add.at(matrix, (rows, np.clip(np.ceil(at), 0, n - 1).astype(int)), weight)
    return matrix


def nearest(n, size, align_corners, half_pixel_centers):
    """Returns the source pixel of each pixel."""
    at = places(n, size, align_corners, half_pixel_centers, 0)
    return np.clip(np.floor(at + np.float32(0.5)) if align_corners else np.floor(at), 0, n - 1).astype(int)


def matrices(image, size, how):
    return [bilinear_matrix(n, int(m), *how) for n, m in zip(image, size)]


def bilinear(x, size, *, align_corners, half_pixel_centers):
    rows, columns = matrices(x.shape[1:3], size, (align_corners, half_pixel_centers))
    x = x.astype(np.longdouble)
    size = np.einsum("yi,xj,bijc->byxc", rows != 0, columns != 0, abs(x))  # the error of a pixel remains at weight 0
    return near(np.einsum("yi,xj,bijc->byxc", rows, columns, x), size)


def bilinear_grad(dy, image, *, align_corners, half_pixel_centers):
    rows, columns = matrices(image.shape[1:3], dy.shape[1:3], (align_corners, half_pixel_centers))
    return near(*(np.einsum("yi,xj,byxc->bijc", rows, columns, v) for v in (dy, abs(dy))))


def nearest_neighbor(x, size, *, align_corners, half_pixel_centers):
    rows, columns = (nearest(n, int(m), align_corners, half_pixel_centers) for n, m in zip(x.shape[1:3], size))
    return x[:, rows][:, :, columns]


def nearest_neighbor_grad(dy, size, *, align_corners, half_pixel_centers):
    rows, columns = (nearest(int(n), m, align_corners, half_pixel_centers) for n, m in zip(size, dy.shape[1:3]))
    sums = np.zeros((2, dy.shape[0], *size, dy.shape[3]), dy.dtype)
    for y, i in enumerate(rows):
        for x, j in enumerate(columns):
            sums[0][:, i, j] += dy[:, y, x]
            sums[1][:, i, j] += abs(dy[:, y, x])
    return near(*sums) if dy.dtype.kind == "f" else sums[0]


def backward(d):
    image, resized = shapes(d)
    return [d("grads", resized), d("original_image", image) if "original_image" in d.inputs else d("size", of=image[1:3])]


# Plain numbers, because a pixel with weight 0 may count or not.
op("ResizeBilinear", bilinear, forward, domain=normal.plain, ulps=4, zero_signs=False, no_gradient=RESULT_IN_FLOAT)
op("ResizeBilinearGrad", bilinear_grad, backward, domain=normal.plain, ulps=16, half_ulps=2, zero_signs=False, no_gradient=RESULT_IN_FLOAT)
op("ResizeNearestNeighbor", nearest_neighbor, forward)
op("ResizeNearestNeighborGrad", nearest_neighbor_grad, backward, domain=dict(grads=whole(-9, 9)), ulps=4, zero_signs=False)


image, both = zeros(1, 2, 3, 1), dict(align_corners=True, half_pixel_centers=True)
for name in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeNearestNeighborGrad"):
    for wrong in (i32(0, 2), i32(2, -1), i32(2), i32(2, 2, 2), i32([2, 2])):
        refuses(name, [image, wrong])
    refuses(name, [zeros(2, 3, 1), i32(2, 2)], "[2, 3, 1]")
    refuses(name, [image, i32(2, 2)], "align_corners", "half_pixel_centers", **both)
for name in ("ResizeBilinear", "ResizeNearestNeighbor"):
    refuses(name, [zeros(1, 0, 3, 1), i32(2, 2)], "[1, 0, 3, 1]")
refuses("ResizeBilinearGrad", [image, zeros(1, 0, 3, 1)], "[1, 0, 3, 1]")
refuses("ResizeBilinearGrad", [image, zeros(2, 2, 3, 1)], "1", "2")
refuses("ResizeBilinearGrad", [image, zeros(1, 2, 3, 2)], "1", "2")
refuses("ResizeBilinearGrad", [zeros(2, 3), image], "grads", "[2, 3]")
refuses("ResizeBilinearGrad", [image, image], "align_corners", "half_pixel_centers", **both)
