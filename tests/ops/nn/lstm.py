import numpy as np

from arrays import zeros
from declare import op, refuses
from domains import between
from ulps import near

FLOAT_ONLY = "float is its widest type; gradient_of_floats_test.py checks it"
ICFO, IFCO = (0, 1, 2, 3), (0, 2, 1, 3)  # the positions of i, ci, f and o among the gates


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def forward(gates, cs_prev, wci, wcf, wco, forget_bias, cell_clip, use_peephole):
    """Returns i, cs, f, o, ci, co, h from the inputs of the gates."""
    i, ci, f, o = gates
    if use_peephole:
        i, f = i + cs_prev * wci, f + cs_prev * wcf
    i, ci, f = sigmoid(i), np.tanh(ci), sigmoid(f + forget_bias)
    cs = ci * i + f * cs_prev
    if cell_clip > 0:
        cs = np.clip(cs, -cell_clip, cell_clip)
    o, co = sigmoid(o + cs * wco if use_peephole else o), np.tanh(cs)
    return [i, cs, f, o, ci, co, o * co]


def backward(cs_prev, wci, wcf, wco, i, cs, f, o, ci, co, cs_grad, h_grad, use_peephole):
    """Returns cs_prev_grad, the gradients of the inputs of i, ci, f and o, and those of the peepholes."""
    do = o * (1 - o) * h_grad * co
    dcs = (1 - co ** 2) * h_grad * o + cs_grad + (do * wco if use_peephole else 0)
    di, dci, df = i * (1 - i) * dcs * ci, (1 - ci ** 2) * dcs * i, f * (1 - f) * dcs * cs_prev
    if not use_peephole:
        return dcs * f, [di, dci, df, do], [np.zeros_like(w) for w in (wci, wcf, wco)]
    return dcs * f + di * wci + df * wcf, [di, dci, df, do], [(di * cs_prev).sum(0), (df * cs_prev).sum(0), (do * cs).sum(0)]


def parts(matrix, order=ICFO):
    quarters = np.split(matrix, 4, -1)
    return [quarters[k] for k in order]


def joined(gates, order=ICFO):
    quarters = [None] * 4
    for place, gate in zip(order, gates):
        quarters[place] = gate
    return np.concatenate(quarters, -1)


def sizes(d):
    return (37, 21, 66) if d.large else (d.integer(0, 3), d.integer(0, 4), d.integer(1, 5))


def parameters(d, n, cell):
    """Draws w, wci, wcf, wco, b."""
    hole = cell if d.attrs["use_peephole"] else d.pick(cell, 0, 3)
    return [d("w", (n + cell, 4 * cell))] + [d(name, (hole,)) for name in ("wci", "wcf", "wco")] + [d("b", (4 * cell,))]


def step(d):
    batch, n, cell = sizes(d)
    return [d("x", (batch, n)), d("cs_prev", (batch, cell)), d("h_prev", (batch, cell))] + parameters(d, n, cell)


def step_back(d):
    inputs = step(d)
    return inputs + [d(name, inputs[1].shape) for name in ("i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad")]


def sequence(d):
    batch, n, cell = sizes(d)
    time = 5 if d.large else d.integer(0, 4)
    states = [d("cs_prev", (batch, cell)), d("h_prev", (batch, cell))]
    return [d("seq_len_max", of=d.integer(0, time)), d("x", (time, batch, n))] + states + parameters(d, n, cell)


def sequence_back(d):
    inputs = sequence(d)
    shape = (len(inputs[1]), *inputs[2].shape)
    return inputs + [d(name, shape) for name in ("i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad")]


def close(values, reach):
    """Returns values whose errors are relative to the magnitude of the sums in them."""
    return [near(v, np.full(v.shape, reach)) for v in values]


def most(*arrays):
    return max((float(abs(a).max(initial=0)) for a in arrays), default=0)


def cell_oracle(x, cs_prev, h_prev, w, wci, wcf, wco, b, *, forget_bias, cell_clip, use_peephole):
    gates = np.concatenate([x, h_prev], 1) @ w + b
    reach = 1 + most(abs(x) @ abs(w[:x.shape[1]]) + abs(h_prev) @ abs(w[x.shape[1]:]), cs_prev)
    return close(forward(parts(gates), cs_prev, wci, wcf, wco, forget_bias, cell_clip, use_peephole), reach)


def cell_grad_oracle(x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, cs_grad, h_grad, *, use_peephole):
    dcs_prev, gates, holes = backward(cs_prev, wci, wcf, wco, i, cs, f, o, ci, co, cs_grad, h_grad, use_peephole)
    reach = (1 + most(cs_prev, cs)) * (1 + most(cs_grad) + most(h_grad)) * (len(x) + 1)
    return close([dcs_prev, joined(gates), *holes], reach)


def over_time(order):
    def oracle(length, x, cs_prev, h_prev, w, wci, wcf, wco, b, *, cell_clip, use_peephole, forget_bias=0.0):
        steps, n = [], x.shape[2]
        for t in range(int(length)):
            gates = parts(x[t] @ w[:n] + h_prev @ w[n:] + b, order)
            steps.append(forward(gates, cs_prev, wci, wcf, wco, forget_bias, cell_clip, use_peephole))
            cs_prev, h_prev = steps[-1][1], steps[-1][6]
        outputs = [np.zeros((len(x), *cs_prev.shape), x.dtype) for _ in range(7)]
        for t, made in enumerate(steps):
            for y, v in zip(outputs, made):
                y[t] = v
        return close(outputs, 1 + len(steps) + most(abs(x) @ abs(w[:n])) + most(abs(h_prev) @ abs(w[n:])))
    return oracle


def icfo(length, x, cs_prev, h_prev, w, wci, wcf, wco, b, *, forget_bias, cell_clip, use_peephole):
    how = dict(cell_clip=cell_clip, use_peephole=use_peephole, forget_bias=forget_bias)
    return over_time(ICFO)(length, x, cs_prev, h_prev, w, wci, wcf, wco, b, **how)


def ifco(length, x, cs_prev, h_prev, w, wci, wcf, wco, b, *, cell_clip, use_peephole):
    return over_time(IFCO)(length, x, cs_prev, h_prev, w, wci, wcf, wco, b, cell_clip=cell_clip, use_peephole=use_peephole)


def back_over_time(order):
    def oracle(length, x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, h, cs_grad, h_grad, *, use_peephole):
        n, dx, dw, db = x.shape[2], np.zeros_like(x), np.zeros_like(w), np.zeros_like(b)
        dcs, dh, holes, reach = np.zeros_like(cs_prev), np.zeros_like(h_prev), [np.zeros_like(p) for p in (wci, wcf, wco)], 1
        for t in reversed(range(int(length))):
            before, said = (cs[t - 1], h[t - 1]) if t else (cs_prev, h_prev)
            made, arriving = [v[t] for v in (i, cs, f, o, ci, co)], (cs_grad[t] + dcs, h_grad[t] + dh)
            dcs, gates, found = backward(before, wci, wcf, wco, *made, *arriving, use_peephole)
            gates = joined(gates, order)
            dx[t], dh = gates @ w[:n].T, gates @ w[n:].T
            dw += np.concatenate([x[t], said], 1).T @ gates
            db += gates.sum(0)
            holes = [a + b for a, b in zip(holes, found)]
            sums = abs(gates) @ abs(w).T, dcs, abs(x[t]).T @ abs(gates), abs(said).T @ abs(gates)
            reach = max(reach, most(*sums) * (1 + most(before, cs)))
        return close([dx, dcs, dh, dw, *holes, db], reach * (1 + int(length)))
    return oracle


small = between(-1, 1).plain
common = dict(domain=small, ulps=32, half_ulps=8, zero_signs=False, denormals=False, no_gradient=FLOAT_ONLY)
clips = dict(cell_clip=[0.0, -1.0, 0.25, 3.0])
op("LSTMBlockCell", cell_oracle, step, attrs=clips | dict(forget_bias=[0.0, 1.0, -0.5]), **common)
op("LSTMBlockCellGrad", cell_grad_oracle, step_back, **common, given=dict(use_peephole=True))
op("BlockLSTM", icfo, sequence, attrs=clips | dict(forget_bias=[0.0, 1.0, -0.5]), **common)
op("BlockLSTMV2", ifco, sequence, attrs=clips, **common)
op("BlockLSTMGrad", back_over_time(ICFO), sequence_back, **common, given=dict(use_peephole=True))
op("BlockLSTMGradV2", back_over_time(IFCO), sequence_back, **common, given=dict(use_peephole=True))


state, w, hole, b = zeros(2, 3), zeros(7, 12), zeros(3), zeros(12)
right = [zeros(2, 4), state, state, w, hole, hole, hole, b]
NAMES = "x cs_prev h_prev w wci wcf wco b".split()
WRONG = dict(x=[zeros(2), zeros(2, 5)], cs_prev=[zeros(1, 3), zeros(2, 4)], h_prev=[zeros(3, 3), zeros(3)],
             w=[zeros(6, 12), zeros(7, 11), zeros(12)], wci=[zeros(1, 3)], b=[zeros(11), zeros(3, 4)])
length, plain = [np.int64(1)], dict(use_peephole=False)
forms = {"LSTMBlockCell": ([], [], {}), "LSTMBlockCellGrad": ([], [state] * 8, plain),
         "BlockLSTM": (length, [], {}), "BlockLSTMV2": (length, [], {}),
         "BlockLSTMGrad": (length, [zeros(1, 2, 3)] * 9, plain), "BlockLSTMGradV2": (length, [zeros(1, 2, 3)] * 9, plain)}
for name, (first, rest, attrs) in forms.items():
    lift = (lambda x: x[None]) if first else (lambda x: x)
    for k, wrong in ((NAMES.index(which), x) for which, arrays in WRONG.items() for x in arrays):
        inputs = [lift(x) if j == 0 else x for j, x in enumerate([*right[:k], wrong, *right[k + 1:]])]
        refuses(name, first + inputs + rest, **attrs)
    inputs = [lift(right[0]), *right[1:]]
    refuses(name, first + inputs[:4] + [zeros(2)] + inputs[5:] + rest, "wci", "2", "3", **attrs | dict(use_peephole=True))
    if rest:
        refuses(name, first + inputs + [zeros(4, 3)[None]] + rest[1:], "'i'", **attrs)
    if first:
        for steps in (-1, 2, 2**62):
            refuses(name, [np.int64(steps)] + inputs + rest, "seq_len_max", steps, **attrs)
        refuses(name, [np.int64([1])] + inputs + rest, "seq_len_max", **attrs)
