import numpy as np

from arrays import i32, zeros
from declare import op, refuses
from domains import normal
from resampling import backward, forward, resampled, resampled_back, scale_of
from ulps import near

RESULT_IN_FLOAT = "its result is float whatever it is made of; gradient_of_floats_test.py checks it"
F = np.float32


def alignment(d):
    how = d.pick((False, False), (True, False), (False, True)) if "half_pixel_centers" in {a["name"] for a in d.about["attrs"]} else None
    if how:
        d.set(align_corners=how[0], half_pixel_centers=how[1])


def area_matrix(n, size, corners):
    """Returns the part of each pixel that each pixel of the result covers, relative to its area."""
    scale, matrix = scale_of(n, size, corners), np.zeros((size, n), np.longdouble)
    for o in range(size):
        begin, end = F(o) * scale, F(o + 1) * scale
        for i in range(int(np.floor(begin)), int(np.ceil(end))):
            matrix[o, min(i, n - 1)] += F(min(F(i + 1), end) - max(F(i), begin)) / scale
    return matrix


def cubic_matrix(n, size, corners, half_pixels):
    """Returns the weights of a cubic kernel, whose argument is rounded to a 1024th of a pixel."""
    scale, matrix = scale_of(n, size, corners), np.zeros((size, n), np.longdouble)
    a = -0.5 if half_pixels else -0.75
    for o in range(size):
        at = (F(o) + F(0.5)) * scale - F(0.5) if half_pixels else F(o) * scale
        low = int(np.floor(at))
        delta = np.rint((at - F(low)) * F(1024)) / 1024
        places, distances = np.arange(low - 1, low + 3), np.longdouble([1 + delta, delta, 1 - delta, 2 - delta])
        weights = np.where(distances <= 1, ((a + 2) * distances - (a + 3)) * distances**2 + 1,
                           ((a * distances - 5 * a) * distances + 8 * a) * distances - 4 * a)
        if half_pixels:
            weights = np.where((places >= 0) & (places < n), weights, 0)
            weights = weights / weights.sum()
        np.add.at(matrix[o], np.clip(places, 0, n - 1), weights)
    return matrix


def area(x, size, *, align_corners):
    return resampled(x, *(area_matrix(n, int(m), align_corners) for n, m in zip(x.shape[1:3], size)))


def cubic(x, size, *, align_corners, half_pixel_centers):
    return resampled(x, *(cubic_matrix(n, int(m), align_corners, half_pixel_centers) for n, m in zip(x.shape[1:3], size)))


def cubic_grad(dy, x, *, align_corners, half_pixel_centers, T):
    matrices = [cubic_matrix(n, m, align_corners, half_pixel_centers) for n, m in zip(x.shape[1:3], dy.shape[1:3])]
    dx = resampled_back(dy, *matrices)
    return near(dx.value, dx.size * 2.0**29) if T == np.float64 else dx  # the weights are float


plain = dict(domain=normal.plain, ulps=64, zero_signs=False)
op("ResizeArea", area, forward(alignment), **plain)
op("ResizeBicubic", cubic, forward(alignment), no_gradient=RESULT_IN_FLOAT, **plain)
op("ResizeBicubicGrad", cubic_grad, backward(alignment), no_gradient=RESULT_IN_FLOAT, **plain)

image = zeros(1, 2, 3, 1)
for name in ("ResizeBicubic", "ResizeArea"):
    for wrong in (i32(0, 2), i32(2, -1), i32(2), i32(2, 2, 2), i32([2, 2])):
        refuses(name, [image, wrong])
    refuses(name, [zeros(2, 3, 1), i32(2, 2)], "[2, 3, 1]")
    refuses(name, [zeros(1, 0, 3, 1), i32(2, 2)], "[1, 0, 3, 1]")
both = dict(align_corners=True, half_pixel_centers=True)
refuses("ResizeBicubic", [image, i32(2, 2)], "align_corners", "half_pixel_centers", **both)
refuses("ResizeBicubicGrad", [image, image], "align_corners", "half_pixel_centers", **both)
refuses("ResizeBicubicGrad", [image, zeros(1, 0, 3, 1)], "[1, 0, 3, 1]")
refuses("ResizeBicubicGrad", [image, zeros(2, 2, 3, 1)], "1", "2")
refuses("ResizeBicubicGrad", [image, zeros(1, 2, 3, 2)], "1", "2")
refuses("ResizeBicubicGrad", [zeros(2, 3), image], "grads", "[2, 3]")
