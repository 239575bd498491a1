import numpy as np

from arrays import f32
from declare import op, refuses
from domains import distinct, normal


def overlap(a, b):
    """Returns the common area of two boxes divided by that of both."""
    low, high = (np.stack([f(x[:2], x[2:]) for x in (a, b)]) for f in (np.minimum, np.maximum))
    areas = np.prod(high - low, axis=1)
    if areas.min() <= 0:
        return 0
    both = np.prod(np.maximum(high.min(0) - low.max(0), 0))
    return both / (areas.sum() - both)


def chosen(scores, most, overlap_of, limit, least=-np.inf, sigma=0):
    """Returns the numbers and the scores of the chosen boxes: the box with the largest score left, again and again. A chosen box rules out
    what overlaps it, or lowers its score."""
    left = {i: s for i, s in enumerate(scores) if s > least}
    found = []
    while left and len(found) < most:
        best = max(left, key=lambda i: (left[i], -i))
        found.append((best, left.pop(best)))
        for i in list(left):
            shared = overlap_of(i, best)
            left[i] *= np.exp(-0.5 * shared**2 / sigma) if sigma > 0 else 1
            if (sigma <= 0 and shared > limit) or left[i] <= least:
                del left[i]
    return found


def of_boxes(boxes, scores, most, *limits):
    return chosen(scores, most, lambda i, j: overlap(boxes[i], boxes[j]), *limits)


def numbers(found):
    return np.array([i for i, _ in found], np.int32)


def padded(found, most, pad):
    room = most if pad else len(found)
    indices, scores = np.zeros(room, np.int32), np.zeros(room, np.longdouble)
    for k, (i, s) in enumerate(found):
        indices[k], scores[k] = i, s
    return indices, scores, np.int32(len(found))


# Corners are whole numbers up to 6, so no overlap, a fraction with a denominator up to 36, is near one of the limits.
LIMITS = 0.315, 0.47, 0.61


def boxes(d):
    n = 300 if d.large else d.integer(0, 9)
    values = dict(boxes=d.rng.integers(0, 7, (n, 4)), max_output_size=d.integer(0, 12), iou_threshold=d.pick(*LIMITS),
                  overlap_threshold=d.pick(*LIMITS), score_threshold=d.pick(-1e4, 0, 0.5),
                  soft_nms_sigma=d.pick(0, 0.5, 2) if d.types.get("T") == "float" else 0, overlaps=d.rng.uniform(0, 1, (n, n)))
    if d.declaration.op == "NonMaxSuppression":
        d.set(iou_threshold=values["iou_threshold"])
    return [d("scores", (n,)) if name == "scores" else d(name, of=values[name]) for name in d.inputs]


def combined(d):
    batch, n, classes = d.integer(0, 2), 40 if d.large else d.integer(0, 6), d.integer(1, 3)
    return [d("boxes", of=d.rng.integers(-1, 6, (batch, n, d.pick(1, classes), 4)) / 4), d("scores", (batch, n, classes)),
            d("max_output_size_per_class", of=d.integer(1, 4)), d("max_total_size", of=d.integer(1, 9)), d("iou_threshold", of=d.pick(*LIMITS)),
            d("score_threshold", of=d.pick(-1e4, 0, 0.5))]


def combined_oracle(boxes, scores, per_class, total, limit, least, *, pad_per_class, clip_boxes):
    batch, _, classes = scores.shape
    room = min(total, per_class * classes) if pad_per_class else total
    outputs = np.zeros((batch, room, 4)), np.zeros((batch, room)), np.zeros((batch, room)), np.zeros(batch, np.int32)
    for b in range(batch):
        found = [(s, c, i) for c in range(classes)
                 for i, s in of_boxes(boxes[b, :, c % boxes.shape[2]], scores[b, :, c], per_class, limit, least)]
        for k, (s, c, i) in enumerate(sorted(found, key=lambda x: (-x[0], x[1], x[2]))[:room]):
            box = boxes[b, i, c % boxes.shape[2]]
            outputs[0][b, k], outputs[1][b, k], outputs[2][b, k] = np.clip(box, 0, 1) if clip_boxes else box, s, c
            outputs[3][b] = k + 1
    return list(outputs)


plain = dict(domain=dict(scores=distinct.plain))
op("NonMaxSuppression", lambda b, s, most, *, iou_threshold: numbers(of_boxes(b, s, most, iou_threshold)), boxes, **plain)
op("NonMaxSuppressionV2 NonMaxSuppressionV3", lambda *x: numbers(of_boxes(*x)), boxes, **plain)
op("NonMaxSuppressionV4", lambda b, s, most, *x, pad_to_max_output_size: [*padded(of_boxes(b, s, most, *x), most, pad_to_max_output_size)[::2]],
   boxes, **plain)
op("NonMaxSuppressionV5", lambda b, s, most, *x, pad_to_max_output_size: [*padded(of_boxes(b, s, most, *x), most, pad_to_max_output_size)],
   boxes, ulps=16, **plain)
op("NonMaxSuppressionWithOverlaps", lambda table, s, most, *x: numbers(chosen(s, most, lambda i, j: table[i, j], *x)), boxes,
   domain=dict(scores=distinct.plain, overlaps=normal.plain))
op("CombinedNonMaxSuppression", combined_oracle, combined, zero_signs=False, **plain)

two, scores, most, half = np.zeros((2, 4), np.float32), f32(1, 2), np.int32(2), np.float32(0.5)
extra = {"": [], "V2": [half], "V3": [half, half], "V4": [half, half], "V5": [half, half, half]}
for version, more in extra.items():
    name = "NonMaxSuppression" + version
    refuses(name, [two, f32(1, 2, 3), most, *more], "2", "3")
    refuses(name, [two[:, :3], scores, most, *more], "[2, 3]")
    refuses(name, [two[0], scores, most, *more], "boxes", "[4]")
    refuses(name, [two, scores, np.int32(-1), *more], "max_output_size", "-1")
    refuses(name, [two, scores, np.int32([2]), *more], "max_output_size")
    if more:
        refuses(name, [two, scores, most, np.float32(1.5), *more[1:]], "iou_threshold", "1.5")
        refuses(name, [two, scores, most, f32(0.5), *more[1:]], "iou_threshold")
refuses("NonMaxSuppression", [two, scores, most], "iou_threshold", iou_threshold=-0.5)
refuses("NonMaxSuppressionV5", [two, scores, most, half, half, np.float32(-1)], "soft_nms_sigma", "-1")
refuses("NonMaxSuppressionWithOverlaps", [two, scores, most, half, half], "2", "4")
refuses("NonMaxSuppressionWithOverlaps", [two[:, :2], f32(1), most, half, half], "2", "1")
one, three = np.zeros((1, 2, 1, 4), np.float32), np.zeros((1, 2, 3), np.float32)
for wrong in ([one[0], three, most, most, half, half], [one, three[0], most, most, half, half], [one[..., :3], three, most, most, half, half],
              [one, three[:, :1], most, most, half, half], [np.zeros((1, 2, 2, 4), np.float32), three, most, most, half, half],
              [one, three, np.int32(0), most, half, half], [one, three, most, np.int32(0), half, half],
              [one, three, most, most, np.float32(-1), half]):
    refuses("CombinedNonMaxSuppression", wrong)
