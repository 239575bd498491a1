import numpy as np

from arrays import i32, zeros
from declare import op, refuses
from domains import normal
from ulps import near

F = np.float32


def place(begin, end, n, size, o):
    """Returns the position of pixel o of a crop among n pixels, or None if it is outside. It is computed in float as in the op, unless the
    box is moved by less than float can tell, for a slope."""
    kind = F if F(begin) == begin and F(end) == end else np.longdouble
    begin, end, extent = kind(begin), kind(end), kind(n - 1)
    scale = (end - begin) * extent / kind(size - 1) if size > 1 else kind(0)
    at = begin * extent + kind(o) * scale if size > 1 else kind(0.5) * (begin + end) * extent
    return at if 0 <= at <= extent else None


def weights(begin, end, n, size, method):
    """Returns the weights of n pixels for each of `size` pixels, and whether the latter are inside."""
    matrix, inside = np.zeros((size, n), np.longdouble), np.zeros(size, bool)
    for o in range(size):
        at = place(begin, end, n, size, o)
        inside[o] = at is not None
        if at is None:
            continue
        if method == "nearest":
            matrix[o, int(np.floor(at + F(0.5)))] = 1
            continue
        low, high = int(np.floor(at)), int(np.ceil(at))
        matrix[o, low] += 1 - np.longdouble(at - low)
        matrix[o, high] += np.longdouble(at - low)
    return matrix, inside


def parts(boxes, image, size, method):
    for box in boxes:
        (rows, above), (columns, beside) = (weights(box[k], box[k + 2], image[k], int(size[k]), method) for k in (0, 1))
        yield rows, columns, np.outer(above, beside)


def crop(x, boxes, numbers, size, *, method, extrapolation_value):
    values, sizes = np.zeros((2, len(boxes), *map(int, size), x.shape[3]), np.longdouble)
    for i, (rows, columns, inside) in enumerate(parts(boxes, x.shape[1:3], size, method)):
        image = x[numbers[i]].astype(np.longdouble)
        values[i] = np.where(inside[..., None], np.einsum("yi,xj,ijc->yxc", rows, columns, image), extrapolation_value)
        sizes[i] = np.where(inside[..., None], np.einsum("yi,xj,ijc->yxc", rows != 0, columns != 0, abs(image)), abs(extrapolation_value))
    return near(values, sizes)


def image_grad(dy, boxes, numbers, size, *, method):
    sums = np.zeros((2, *map(int, size)), np.longdouble)
    for i, (rows, columns, _) in enumerate(parts(boxes, size[1:3], dy.shape[1:3], method)):
        for total, v in zip(sums, (dy[i], abs(dy[i]))):
            total[numbers[i]] += np.einsum("yi,xj,yxc->ijc", rows, columns, v)
    return near(*sums)


def boxes_grad(dy, x, boxes, numbers):
    """The slope of the crops between two pixels, along each axis."""
    sums, sizes = np.zeros((2, len(boxes), 4), np.longdouble)
    height, width = dy.shape[1:3]
    for i, box in enumerate(boxes):
        image = x[numbers[i]].astype(np.longdouble)
        for y in range(height):
            for z in range(width):
                at = [place(box[k], box[k + 2], image.shape[k], dy.shape[k + 1], o) for k, o in ((0, y), (1, z))]
                if None in at:
                    continue
                (t, b), (l, r) = ((int(np.floor(v)), int(np.ceil(v))) for v in at)
                wy, wx = (np.longdouble(v - np.floor(v)) for v in at)
                slopes = (1 - wx) * (image[b, l] - image[t, l]) + wx * (image[b, r] - image[t, r]), \
                    (1 - wy) * (image[t, r] - image[t, l]) + wy * (image[b, r] - image[b, l])
                total = abs(image[[t, t, b, b], [l, r, l, r]]).sum(0)
                for k, (slope, n, size, o) in enumerate(zip(slopes, image.shape, dy.shape[1:3], (y, z))):
                    share = o / (size - 1) if size > 1 else 0.5
                    for corner, part in ((k, 1 - share), (k + 2, share)):
                        sums[i, corner] += (dy[i, y, z] * slope).sum() * part * (n - 1)
                        sizes[i, corner] += (abs(dy[i, y, z]) * total).sum() * (n - 1)
    return near(sums, sizes)


def shapes(d):
    batch, channels = d.integer(1, 2), d.integer(1, 3)
    image = (batch, d.integer(1, 6), d.integer(1, 6), channels)
    n, size = 9 if d.large else d.integer(0, 3), (d.integer(1, 4), d.integer(1, 4))
    # Corners in sixteenths of an odd multiple, so that positions are exact and seldom on a pixel.
    boxes = d.rng.integers(-6, 22, (n, 4)) / 16 + 1 / 32
    return image, (n, *size, channels), boxes, d.rng.integers(0, batch, n)


def forward(d):
    image, crops, boxes, numbers = shapes(d)
    d.set(extrapolation_value=d.pick(0.0, 0.5))
    return [d("image", image), d("boxes", of=boxes), d("box_ind", of=numbers), d("crop_size", of=crops[1:3])]


def back_image(d):
    image, crops, boxes, numbers = shapes(d)
    return [d("grads", crops), d("boxes", of=boxes), d("box_ind", of=numbers), d("image_size", of=image)]


def back_boxes(d):
    image, crops, boxes, numbers = shapes(d)
    return [d("grads", crops), d("image", image), d("boxes", of=boxes), d("box_ind", of=numbers)]


IN_FLOAT = "its boxes are float; gradient_of_floats_test.py checks it"
plain = dict(domain=normal.plain, ulps=64, half_ulps=4, zero_signs=False)
op("CropAndResize", crop, forward, no_gradient=IN_FLOAT, **plain)
op("CropAndResizeGradImage", image_grad, back_image, no_gradient=IN_FLOAT, **plain)
op("CropAndResizeGradBoxes", boxes_grad, back_boxes, **plain)

image, boxes, numbers, size = zeros(2, 4, 4, 1), zeros(3, 4), i32(0, 1, 0), i32(2, 2)
crops = zeros(3, 2, 2, 1)
for wrong in ([image[0], boxes, numbers, size], [image, boxes[:, :3], numbers, size], [image, boxes[0], numbers, size],
              [image, boxes, numbers[:2], size], [image, boxes, numbers, i32(2)], [image, boxes, numbers, i32(2, 0)],
              [zeros(2, 0, 4, 1), boxes, numbers, size]):
    refuses("CropAndResize", wrong)
for bad in (-1, 2):
    refuses("CropAndResize", [image, boxes, i32(0, bad, 0), size], "box_ind[1]", bad, "2")
    refuses("CropAndResizeGradImage", [crops, boxes, i32(0, bad, 0), i32(2, 4, 4, 1)], "box_ind[1]", bad, "2", T=F)
    refuses("CropAndResizeGradBoxes", [crops, image, boxes, i32(0, bad, 0)], "box_ind[1]", bad, "2")
refuses("CropAndResizeGradImage", [crops, boxes, numbers, i32(2, 4, 4)], "image_size", "3", T=F)
refuses("CropAndResizeGradImage", [crops, boxes, numbers, i32(2, 4, 4, 3)], "channels", "3", "1", T=F)
refuses("CropAndResizeGradImage", [crops[:2], boxes, numbers, i32(2, 4, 4, 1)], "2", "3", T=F)
refuses("CropAndResizeGradBoxes", [crops, zeros(2, 4, 4, 3), boxes, numbers], "channels")
refuses("CropAndResizeGradBoxes", [crops[:1], image, boxes, numbers], "1", "3")
