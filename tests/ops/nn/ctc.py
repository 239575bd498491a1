"""Connectionist temporal classification, from its definition: the sum over paths, of which all are tried where they are few."""
import itertools

import numpy as np

from declare import expect, op, refuses
from domains import between
from ulps import near

L = np.longdouble


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def labels_of(path, blank, merge):
    """Returns the labels of a path. merge: classes that follow themselves are one label; else blanks alone may be repeated."""
    kept = [c for k, c in enumerate(path) if not merge or k == 0 or path[k - 1] != c]
    return [c for c in kept if c != blank]


def by_paths(y, labels, blank, merge):
    """Returns the probability of the labels, and that of the paths with them that use each class at each step; tries all paths."""
    total, used = L(0), np.zeros_like(y)
    for path in itertools.product(range(y.shape[1]), repeat=len(y)):
        if labels_of(path, blank, merge) == labels:
            p = np.prod([y[t, c] for t, c in enumerate(path)], dtype=L)
            total += p
            for t, c in enumerate(path):
                used[t, c] += p
    return total, used


def by_states(y, labels, blank, merge):
    """Returns the same, step by step over the states blank, label, blank, ..., label, blank."""
    states = [blank] + [c for label in labels for c in (label, blank)]
    n = len(states)
    move = np.zeros((n, n), L)  # from a state to a state
    for u in range(n):
        move[u, u] = merge or states[u] == blank
        if u + 1 < n:
            move[u, u + 1] = 1
        if u + 2 < n and states[u + 2] != blank and not (merge and states[u] == states[u + 2]):
            move[u, u + 2] = 1
    z = y[:, states]
    forward, backward = np.zeros_like(z), np.zeros_like(z)
    forward[0, :2] = z[0, :2]
    backward[-1, -2:] = 1
    for t in range(1, len(y)):
        forward[t] = forward[t - 1] @ move * z[t]
        backward[-t - 1] = move @ (backward[-t] * z[-t])
    used = np.zeros_like(y)
    for u, c in enumerate(states):
        used[:, c] += forward[:, u] * backward[:, u]
    return forward[-1, -2:].sum(), used


def one_loss(x, labels, blank, merge):
    """Returns the loss of a sequence and its gradient."""
    y = softmax(x)
    way = by_paths if y.shape[1] ** len(y) <= 300 else by_states
    p, used = way(y, labels, blank, merge)
    return -np.log(p), y - used / (p or 1)


def loss(inputs, places, values, lengths, *, preprocess_collapse_repeated, ctc_merge_repeated, blank=None):
    blank = inputs.shape[2] - 1 if blank is None else blank
    losses, gradient = np.zeros(len(lengths), L), np.zeros_like(inputs)
    for b, length in enumerate(lengths):
        given = [int(v) for v, at in zip(values, places) if at[0] == b]
        labels = [v for k, v in enumerate(given) if not (preprocess_collapse_repeated and k > 0 and given[k - 1] == v) and v != blank]
        if len(given) <= length and length > 0:
            losses[b], gradient[:length, b] = one_loss(inputs[:length, b], labels, blank, ctc_merge_repeated)
    size = np.maximum(1, np.where(np.isfinite(losses), abs(losses), 1))
    return [near(losses, size), near(gradient, np.ones_like(gradient))]


def loss_v2(inputs, places, values, lengths, *, preprocess_collapse_repeated, ctc_merge_repeated):
    return loss(inputs, places, values, lengths, preprocess_collapse_repeated=preprocess_collapse_repeated,
                ctc_merge_repeated=ctc_merge_repeated, blank=0)


def sequences(d):
    """Draws logits and the lengths of sequences."""
    time, batch, classes = (40, 200, 30) if d.large else (d.integer(0, 6), d.integer(0, 3), d.integer(1, 4))
    return d("inputs", (time, batch, classes)), d("sequence_length", of=d.rng.integers(0, time, batch, endpoint=True))


def labelled(d):
    inputs, lengths = sequences(d)
    classes, first = inputs.shape[2], "T" not in d.types  # CTCLossV2 is of float alone
    places, values = [], []
    for b, length in enumerate(lengths):
        count = d.integer(0, length + 2 if d.attrs["ignore_longer_outputs_than_inputs"] else length)
        blanks = d.integer(0, count) if d.integer(0, 3) == 0 else 0
        blank = 0 if first else classes - 1
        own = [d.integer(1, classes - 1) - (not first) if classes > 1 and k < count - blanks else blank for k in range(count)]
        values += own
        places += [[b, 2 * k + 1] for k in range(count)]
    return [inputs, d("labels_indices", of=np.reshape(places, (len(places), 2))), d("labels_values", of=np.int32(values)), lengths]


WHY = "its gradient is an output, which has none itself; gradient_test.py compares it with differences"
logits = dict(inputs=between(-5, 5).plain)
# Logarithms of probabilities are rounded by some 2^-53 of themselves a step, and they are in the hundreds after 40 steps.
plain = dict(domain=logits, ulps=4096, zero_signs=False, no_gradient=WHY)
op("CTCLoss", loss, labelled, asks=["preprocess_collapse_repeated", "ctc_merge_repeated"], **plain)
op("CTCLossV2", loss_v2, labelled, **plain)


# ---- Decoders ----


def sparse(lists):
    """Returns the indices, values and shape of lists of labels, one for each sequence."""
    places = [[b, t] for b, labels in enumerate(lists) for t in range(len(labels))]
    return (np.reshape(np.int64(places), (len(places), 2)), np.int64([c for labels in lists for c in labels]),
            np.int64([len(lists), max(map(len, lists), default=0)]))


def greedy(inputs, lengths, *, merge_repeated, blank_index):
    found, score = [], np.zeros((len(lengths), 1), L)
    for b, length in enumerate(lengths):
        x = inputs[:length, b]
        found.append(labels_of(list(x.argmax(-1)), blank_index % inputs.shape[2], merge_repeated))
        score[b] = -x.max(-1).sum()
    return [*sparse(found), near(score, np.maximum(1, abs(inputs).max(-1).sum(0))[:, None])]


def decoded(d):
    inputs, lengths = sequences(d)
    d.set(blank_index=d.axis(inputs.shape[2]))
    return [inputs, lengths]


def probabilities(x):
    """Returns {labels: probability} over all paths."""
    found, y = {}, softmax(x)
    for path in itertools.product(range(x.shape[1]), repeat=len(x)):
        labels = tuple(labels_of(path, x.shape[1] - 1, True))
        found[labels] = found.get(labels, 0) + np.prod([y[t, c] for t, c in enumerate(path)], dtype=L)
    return found


def merged(labels):
    return [c for k, c in enumerate(labels) if k == 0 or labels[k - 1] != c]


def best(inputs, lengths, *, merge_repeated, top_paths):
    """The result of a beam so wide that nothing is dropped."""
    paths, scores = [[] for _ in range(top_paths)], np.zeros((len(lengths), top_paths), L)
    for b, length in enumerate(lengths):
        ranked = sorted(probabilities(inputs[:length, b]).items(), key=lambda item: -item[1])
        for p in range(top_paths):
            paths[p].append(merged(ranked[p][0]) if merge_repeated else list(ranked[p][0]))
            scores[b, p] = np.log(ranked[p][1])
    parts = [sparse(lists) for lists in paths]
    return [part[k] for k in range(3) for part in parts] + [near(scores, np.maximum(1, abs(scores)))]


def beams(d):
    time, batch, classes = (3, 700, 4) if d.large else (d.integer(0, 4), d.integer(0, 3), d.integer(1, 4))
    inputs = d("inputs", (time, batch, classes))
    lengths = d.rng.integers(0, time, batch, endpoint=True) if d.integer(0, 1) else np.full(batch, time)
    fewest = min((len(probabilities(np.zeros((int(n), classes)))) for n in {*lengths.tolist()}), default=5)
    d.set(beam_width=200, top_paths=d.integer(1, min(fewest, 4)))
    return [inputs, d("sequence_length", of=lengths)]


op("CTCGreedyDecoder", greedy, decoded, domain=logits, ulps=8, zero_signs=False)
op("CTCBeamSearchDecoder", best, beams, domain=logits, ulps=64, given=dict(beam_width=2, top_paths=1))

# ---- Results of TensorFlow's own tests ----

few = np.log(np.array([
    [[0.633766, 0.221185, 0.0917319, 0.0129757, 0.0142857, 0.0260553],
     [0.30176, 0.28562, 0.0831517, 0.0862751, 0.0816851, 0.161508]],
    [[0.111121, 0.588392, 0.278779, 0.0055756, 0.00569609, 0.010436],
     [0.24082, 0.397533, 0.0557226, 0.0546814, 0.0557528, 0.19549]],
    [[0.0357786, 0.633813, 0.321418, 0.00249248, 0.00272882, 0.0037688],
     [0.230246, 0.450868, 0.0389607, 0.038309, 0.0391602, 0.202456]],
    [[0.0663296, 0.643849, 0.280111, 0.00283995, 0.0035545, 0.00331533],
     [0.280884, 0.429522, 0.0326593, 0.0339046, 0.0326856, 0.190345]],
    [[0.458235, 0.396634, 0.123377, 0.00648837, 0.00903441, 0.00623107],
     [0.423286, 0.315517, 0.0338439, 0.0393744, 0.0339315, 0.154046]]]))
five = np.int64([[0, 0], [0, 1], [0, 2], [0, 3], [0, 4], [1, 0], [1, 1], [1, 2], [1, 3]])
expect("CTCLoss", [few, five, np.int32([0, 1, 2, 1, 0, 0, 1, 1, 0]), np.int32([5, 5])], [np.array([3.34211, 5.42262])], 1e-6)

searched = np.log(np.array([
    [0.30999, 0.309938, 0.0679938, 0.0673362, 0.0708352, 0.173908], [0.215136, 0.439699, 0.0370931, 0.0393967, 0.0381581, 0.230517],
    [0.199959, 0.489485, 0.0233221, 0.0251417, 0.0233289, 0.238763], [0.279611, 0.452966, 0.0204795, 0.0209126, 0.0194803, 0.20655],
    [0.51286, 0.288951, 0.0243026, 0.0220788, 0.0219297, 0.129878],
    [0.155251, 0.164444, 0.173517, 0.176138, 0.169979, 0.160671]]))[:, None] + 2
one, two = sparse([[1, 0]]), sparse([[0, 1, 0]])
# The scores there are relative to the largest logits.
scores = np.array([[0.584855, 0.389139]]) + np.log(np.exp(searched[:5, 0] - 2).max(-1)).sum()
expect("CTCBeamSearchDecoder", [searched, np.int32([5])], [part for pair in zip(one, two) for part in pair] + [scores], 1e-5,
       beam_width=2, top_paths=2)

# ---- Edges ----

x, at, two_steps = np.zeros((2, 1, 3)), np.int64([[0, 0], [0, 1]]), np.int32([2])
third = np.full((2, 1, 3), 1 / 3)
# Equal labels need a blank between them.
expect("CTCLoss", [x, at, np.int32([1, 1]), two_steps], [np.array([np.inf]), third], 1e-12)
expect("CTCLoss", [x, at[:0], np.int32([]), two_steps], [np.array([np.log(9)]), third - [0, 0, 1]], 1e-12)
expect("CTCLoss", [x, at[:0], np.int32([]), np.int32([0])], [np.zeros(1), np.zeros((2, 1, 3))])
expect("CTCLoss", [x, at, np.int32([0, 1]), np.int32([1])], [np.zeros(1), np.zeros((2, 1, 3))], ignore_longer_outputs_than_inputs=True)
nan = np.where(np.arange(4).reshape(1, 4, 1) == 1, np.nan, np.zeros((1, 4, 2)))
expect("CTCLoss", [nan, np.int64([[k, 0] for k in range(4)]), np.zeros(4, np.int32), np.ones(4, np.int32)],
       [np.array([np.log(2), np.nan, np.log(2), np.log(2)])], 1e-12)
never = np.array([[[-np.inf, 0, 0]], [[0, 0, -np.inf]]])
expect("CTCLoss", [never, at[:1], np.int32([0]), two_steps], [np.array([np.log(4)])], 1e-12)
expect("CTCBeamSearchDecoder", [nan[:, 1:2], np.int32([1])], [*sparse([[]]), np.array([[np.nan]])],
       beam_width=3, top_paths=1)
expect("CTCGreedyDecoder", [np.zeros((0, 2, 3), np.float32), np.int32([0, 0])],
       [np.zeros((0, 2), np.int64), np.zeros(0, np.int64), np.int64([2, 0]), np.zeros((2, 1), np.float32)])
repeated = np.log(np.array([[[0.98, 0.01, 0.01]], [[0.01, 0.01, 0.98]], [[0.98, 0.01, 0.01]]]))  # 0, blank, 0
for merge, labels in ((False, [0, 0]), (True, [0])):
    expect("CTCBeamSearchDecoder", [repeated, np.int32([3])], [*sparse([labels])], beam_width=2, top_paths=1, merge_repeated=merge)

values = np.int32([0, 1])
for name, last in (("CTCLoss", "[0, 2)"), ("CTCLossV2", "[1, 3)")):
    inputs, ok = x.astype(np.float32), np.int32([1, 1]) if name[-1] == "2" else values
    refuses(name, [inputs[0], at, ok, two_steps], "inputs", "[1, 3]")
    refuses(name, [inputs, at, ok, np.int32([2, 2])], "sequence_length", "1", "2")
    refuses(name, [inputs, at, ok, np.int32([3])], "sequence_length[0] is 3", "[0, 2]")
    refuses(name, [inputs, at, ok, np.int32([-1])], "sequence_length[0] is -1")
    refuses(name, [inputs, at, ok, np.int32([1])], "sequence_length[0] is 1", "2 labels", "ignore_longer_outputs_than_inputs")
    refuses(name, [inputs, at[:, :1], ok, two_steps], "labels_indices", "[2, 1]")
    refuses(name, [inputs, at, ok[:1], two_steps], "labels_indices", "labels_values")
    refuses(name, [inputs, at[::-1].copy(), ok, two_steps], "labels_indices[1] is [0, 0]", "SparseReorder")
    refuses(name, [inputs, at[[0, 0]], ok, two_steps], "labels_indices[1] is [0, 0]")
    refuses(name, [inputs, np.int64([[0, 0], [1, 0]]), ok, two_steps], "labels_indices[1] is [1, 0]", "[0, 1)")
    refuses(name, [inputs, np.int64([[-1, 0], [0, 0]]), ok, two_steps], "labels_indices[0] is [-1, 0]")
    refuses(name, [inputs, np.int64([[0, -1], [0, 0]]), ok, two_steps], "labels_indices[0] is [0, -1]")
    refuses(name, [inputs, at, np.int32([-1, 1]), two_steps], "labels_values[0] is -1", last)
    refuses(name, [inputs, at, np.int32([2, 1] if name == "CTCLoss" else [0, 1]), two_steps], "labels_values[1] is 1", "blank")
    refuses(name, [inputs[:, :, :0], at[:0], ok[:0], two_steps], "inputs", "[2, 1, 0]")
refuses("CTCLossV2", [x.astype(np.float32), at, np.int32([1, 3]), two_steps], "labels_values[1] is 3", "[1, 3)")
for name, more in (("CTCGreedyDecoder", {}), ("CTCBeamSearchDecoder", dict(beam_width=2, top_paths=1))):
    refuses(name, [x, np.int32([3])], "sequence_length[0] is 3", **more)
    refuses(name, [x, np.int32([-1])], "sequence_length[0] is -1", **more)
    refuses(name, [x, np.int32([1, 1])], "sequence_length", **more)
    refuses(name, [x[0], two_steps], "inputs", "[1, 3]", **more)
    refuses(name, [x[:, :, :0], two_steps], "inputs", "[2, 1, 0]", **more)
refuses("CTCGreedyDecoder", [x, two_steps], "blank_index", "3", blank_index=3)
refuses("CTCGreedyDecoder", [x, two_steps], "blank_index", "-4", blank_index=-4)
refuses("CTCBeamSearchDecoder", [x, two_steps], "top_paths", "3", "beam_width", "2", beam_width=2, top_paths=3)
refuses("CTCBeamSearchDecoder", [x, np.int32([0])], "sequence 0", "1 paths", "top_paths", beam_width=2, top_paths=2)
