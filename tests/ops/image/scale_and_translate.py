import numpy as np

from arrays import f32, i32, zeros
from declare import op, refuses
from domains import normal
from resampling import backward, forward, resampled, resampled_back

F = np.float32


def lanczos(x, radius):
    x = np.abs(x)
    with np.errstate(all="ignore"):
        value = radius * np.sin(np.pi * x) * np.sin(np.pi * x / radius) / (np.pi**2 * x**2)
    return np.where(x > radius, 0, np.where(x <= 1e-3, 1, value))


def gaussian(x, radius):
    return np.where(np.abs(x) >= radius, 0, np.exp(-x**2 / (2 * (radius / 3) ** 2)))


def cubic(x, near_zero, beyond):
    x = np.abs(x)
    return np.where(x >= 2, 0, np.where(x >= 1, np.polyval(beyond, x), np.polyval(near_zero, x)))


KERNELS = {"lanczos1": (1, lanczos), "lanczos3": (3, lanczos), "lanczos5": (5, lanczos), "gaussian": (1.5, gaussian),
           "box": (1, lambda x, _: np.where(np.abs(x) == 0.5, 0.5, np.abs(x) < 0.5)), "triangle": (1, lambda x, _: np.maximum(0, 1 - np.abs(x))),
           "keyscubic": (2, lambda x, _: cubic(x, [1.5, -2.5, 0, 1], [-0.5, 2.5, -4, 2])),
           "mitchellcubic": (2, lambda x, _: cubic(x, [7 / 6, -2, 0, 8 / 9], [-7 / 18, 2, -10 / 3, 16 / 9]))}


def matrix(n, size, scale, translate, kernel, antialias):
    """Returns the weights of n pixels for `size` pixels: those within the kernel's radius, with a sum of 1; and bounds of their errors."""
    radius, f = KERNELS[kernel]
    inverse = F(1 / np.float64(F(scale)))
    moved, widened = -inverse * F(translate), max(inverse, F(1)) if antialias else F(1)
    (weights, bounds), i = np.zeros((2, size, n), np.longdouble), np.arange(n)
    for o in range(size):
        at = (F(o) + F(0.5)) * inverse + moved
        if not 0 <= at <= n:
            continue
        begin, end = (int(np.clip(v, 0, n - 1)) for v in (np.ceil(at - F(radius) * widened - F(0.5)), np.floor(at + F(radius) * widened - F(0.5))))
        inside = (i >= begin) & (i <= end)
        distance = ((i.astype(F) + F(0.5) - at) * (F(1) / widened)).astype(np.longdouble)
        row = np.where(inside, f(distance, radius), 0)
        if abs(row.sum()) >= 1000 * np.finfo(F).tiny:
            weights[o], bounds[o] = row / row.sum(), inside * (abs(row) + 1) / abs(row.sum())
    return weights, bounds


def matrices(image, size, scale, translation, how):
    pairs = [matrix(n, int(m), s, t, *how) for n, m, s, t in zip(image, size, scale, translation)]
    return [weights for weights, _ in pairs] + [[bounds for _, bounds in pairs]]


def oracle(x, size, scale, translation, *, kernel_type, antialias):
    return resampled(x, *matrices(x.shape[1:3], size, scale, translation, (kernel_type, antialias)))


def grad_oracle(dy, x, scale, translation, *, kernel_type, antialias):
    return resampled_back(dy, *matrices(x.shape[1:3], dy.shape[1:3], scale, translation, (kernel_type, antialias)))


def kernel(d):
    d.set(kernel_type=d.pick(*KERNELS))


def moves(d, sizes):
    """Draws a scale, that of the sizes or another, and a translation, in eighths so that places are exact."""
    image, resized = sizes
    scale = [d.pick(m / n, 0.5, 1, 2, 1.5) for n, m in zip(image[1:3], resized[1:3])]
    return [d("scale", of=scale), d("translation", of=[d.pick(0, 0, 0.125, -0.625, 1.125) for _ in range(2)])]


IN_FLOAT = "it has no type but float; gradient_of_floats_test.py checks it"
plain = dict(domain=normal.plain, ulps=256, zero_signs=False, no_gradient=IN_FLOAT)
op("ScaleAndTranslate", oracle, forward(kernel, moves), **plain)
op("ScaleAndTranslateGrad", grad_oracle, backward(kernel, moves), **plain)

image, pair = zeros(1, 2, 3, 1), f32(1, 1)
for wrong in (i32(0, 2), i32(2, -1), i32(2), i32([2, 2])):
    refuses("ScaleAndTranslate", [image, wrong, pair, pair])
refuses("ScaleAndTranslate", [zeros(2, 3, 1), i32(2, 2), pair, pair], "[2, 3, 1]")
refuses("ScaleAndTranslate", [zeros(1, 2, 0, 1), i32(2, 2), pair, pair], "[1, 2, 0, 1]")
for name, inputs in (("ScaleAndTranslate", [image, i32(2, 2)]), ("ScaleAndTranslateGrad", [image, image])):
    refuses(name, [*inputs, f32(1), pair], "scale", "1")
    refuses(name, [*inputs, pair, f32([1, 1])], "translation")
    refuses(name, [*inputs, f32(1, 0), pair], "scale", "0")
    refuses(name, [*inputs, f32(-1, 1), pair], "scale", "-1")
    refuses(name, [*inputs, pair, pair], "kernel_type", "'round'", "lanczos3", kernel_type="round")
refuses("ScaleAndTranslateGrad", [image, zeros(2, 2, 3, 1), pair, pair], "1", "2")
refuses("ScaleAndTranslateGrad", [image, zeros(1, 2, 3, 2), pair, pair], "1", "2")
