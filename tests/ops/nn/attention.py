import numpy as np

from arrays import zeros
from declare import expect, op, refuses, slope
from domains import between, where
from ulps import near

NOTHING = -np.inf
BIASES = [lambda q, k: (q, k), lambda q, k: (1, k), lambda q, k: (q, 1), lambda q, k: (k,), lambda q, k: (1,), lambda q, k: ()]


def drawn(d):
    """Draws query, key, value and sometimes a bias."""
    if d.large:  # more than one block of queries and of keys, and a remainder
        batch, queries, keys, depth, width = (d.integer(1, 2),), d.integer(129, 300), d.integer(257, 600), d.integer(1, 40), d.integer(1, 40)
    elif d.smooth:
        batch, queries, keys, depth, width = d.pick((), (2,), (1, 2)), *(d.integer(1, 3) for _ in range(4))
    else:
        batch = d.pick((), (), (3,), (0,), (2, 3), (2, 1, 2))
        queries, keys, depth, width = (d.pick(0, 1, 1, 2, 3, 5, 17) for _ in range(4))
    inputs = [d("query", (*batch, queries, depth)), d("key", (*batch, keys, depth)), d("value", (*batch, keys, width))]
    biases = []
    if d.integer(0, 1):
        own = tuple(1 if d.integer(0, 2) == 0 else size for size in batch)[d.integer(0, len(batch)):]
        shape = d.pick(*BIASES)(queries, keys)
        biases = [d("bias", (*own, *shape) if len(shape) == 2 else shape)]
    return inputs + [biases]


def long_rows(d):
    """Draws one query, as in text generation, and more keys than a block has."""
    batch, keys = d.integer(1, 9), d.integer(257, 700)
    return [d("query", (batch, 1, 9)), d("key", (batch, keys, 9)), d("value", (batch, keys, 5)), []]


def back(d):
    query, key, value, biases = drawn(d)
    output = query.shape[:-1] + value.shape[-1:]
    return [query, key, value, biases, d("output", output), d("logsumexp", query.shape[:-1]), d("grad_output", output)]


def turned(x):
    return np.swapaxes(x, -1, -2)


def scores(query, key, bias, is_causal, scale):
    """Returns the scores, -infinity for masked keys, and the magnitude of the terms of each row."""
    scale = scale or 1 / np.sqrt(np.longdouble(max(query.shape[-1], 1)))
    s, size = scale * (query @ turned(key)), abs(scale) * (abs(query) @ abs(turned(key)))
    for b in bias:
        s, size = s + b, size + np.where(np.isfinite(b), abs(b), 0)
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, NOTHING)
    return s, 1 + size.max(-1, initial=0, keepdims=True), scale


def attention(query, key, value, bias, *, is_causal, scale, T, U):
    s, reach, _ = scores(query, key, bias, is_causal, scale)
    most = s.max(-1, initial=NOTHING, keepdims=True)
    grown = np.exp(s - np.where(most == NOTHING, 0, most))
    total = grown.sum(-1, keepdims=True)
    shares = grown / np.where(total == 0, 1, total)
    logarithm = (most + np.log(total))[..., 0]
    rounded = 2.0 ** 29 if U == np.float64 and T != np.float64 else 1  # results that are computed in float have only its digits
    of_logarithm = reach[..., 0] + np.where(np.isfinite(logarithm), abs(logarithm), 0)
    return [near(shares @ value, (shares @ abs(value)) * reach), near(logarithm, of_logarithm * rounded)]


def gradients(query, key, value, bias, output, logsumexp, grad_output, *, is_causal, scale):
    s, reach, scale = scores(query, key, bias, is_causal, scale)
    shift = logsumexp[..., None]
    shares = np.where(shift == NOTHING, 0, np.exp(s - np.where(shift == NOTHING, 0, shift)))
    reach = (reach + np.where(np.isfinite(shift), abs(shift), 0)).max(initial=1)

    def made(of, take, query, key, value, output, grad_output):
        slopes = shares * take(grad_output @ turned(value), (grad_output * output).sum(-1, keepdims=True))
        return [of * (slopes @ key), of * (turned(slopes) @ query), turned(shares) @ grad_output]

    values = made(scale, np.subtract, query, key, value, output, grad_output)
    sizes = made(abs(scale), np.add, *(abs(x) for x in (query, key, value, output, grad_output)))
    return [near(v, size * reach) for v, size in zip(values, sizes)]


small = between(-2, 2).plain
hidden = where(between(-2, 2), lambda x: x == NOTHING)
how = dict(ulps=16, half_ulps=2, zero_signs=False, denormals=False, attrs=dict(scale=[0.0, 0.0, 0.5, -0.25]))
op("ScaledDotProductAttention", attention, drawn, domain=dict(query=small, key=small, value=small, bias=hidden), also=(long_rows,), **how)
op("ScaledDotProductAttentionGrad", gradients, back,
   domain=dict(query=small, key=small, value=small, bias=hidden, output=small, grad_output=small,
               logsumexp=where(between(0, 3), lambda x: x == NOTHING)), **how)

# Each column of the values shows which keys are visible.
one = np.eye(3)
half, third = 1 / 2, 1 / 3
expect("ScaledDotProductAttention", [np.zeros((3, 2)), np.zeros((3, 2)), one],
       [np.array([[1, 0, 0], [half, half, 0], [third, third, third]]), np.log(np.array([1.0, 2, 3]))], is_causal=True, N=0, U=np.float64)
expect("ScaledDotProductAttention", [np.zeros((2, 2)), np.zeros((3, 2)), one, np.array([[NOTHING, 0, 0], [NOTHING] * 3])],
       [np.array([[0, half, half], [0, 0, 0]]), np.array([np.log(2.0), NOTHING])], N=1, U=np.float64)
expect("ScaledDotProductAttention", [np.zeros((2, 2)), np.zeros((0, 2)), np.zeros((0, 3))], [np.zeros((2, 3)), np.full(2, NOTHING)], N=0, U=np.float64)

# Scores far from 0: the row's largest score is subtracted before the exponential.
far = np.array([[1000.0], [-1000.0]])
expect("ScaledDotProductAttention", [far, far, np.array([[1.0], [2.0]])], [np.array([[1.0], [2.0]]), np.array([1e6, 1e6])], N=0, U=np.float64)

# Equal scores have equal weights, even if they are so large that the logarithm of their sum is lost; so have those of a row that a large
# bias masks as a whole.
many, large = np.full((1, 1), 2e3, np.float32), np.full((3, 1), 2e3, np.float32)
expect("ScaledDotProductAttention", [many, large, one.astype(np.float32)], [np.full((1, 3), third), np.full(1, 4e6)], 1e-6, N=0)
ramp = np.arange(16.0, dtype=np.float32).reshape(8, 2)
expect("ScaledDotProductAttention", [np.zeros((2, 1), np.float32), np.zeros((8, 1), np.float32), ramp, np.array([[0], [-1e9]], np.float32)],
       [np.array([[7, 8], [7, 8]]), np.array([np.log(8), -1e9])], 1e-6, N=1)

# A row without visible keys is 0 for any values.
expect("ScaledDotProductAttention", [np.zeros((1, 2)), np.zeros((2, 2)), np.array([[np.nan], [np.inf]]), np.array(NOTHING)],
       [np.zeros((1, 1)), np.array([NOTHING])], N=1, U=np.float64)

# Masked keys.
rng = np.random.default_rng(5)
q, k, v, b = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 4, 2)), rng.normal(size=(2, 4, 3)), rng.normal(size=(3, 4))
b[1, :3] = NOTHING
slope("ScaledDotProductAttention", q, k, v, b, wrt=[0, 1, 2], N=1, U=np.float64)


q, k, v, y, l = zeros(2, 3, 4), zeros(2, 5, 4), zeros(2, 5, 6), zeros(2, 3, 6), zeros(2, 3)
for name, more in (("ScaledDotProductAttention", []), ("ScaledDotProductAttentionGrad", [y, l, y])):
    refuses(name, [zeros(4), k, v, *more], "query", "[4]", N=0)
    refuses(name, [q, zeros(4), v, *more], "key", "[4]", N=0)
    refuses(name, [q, k, zeros(6), *more], "value", "[6]", N=0)
    refuses(name, [q, zeros(3, 5, 4), v, *more], "'query' and 'key'", "2", "3", N=0)
    refuses(name, [q, k, zeros(1, 5, 6), *more], "'query' and 'value'", "2", "1", N=0)
    refuses(name, [q, zeros(2, 5, 3), v, *more], "'query' and 'key'", "4", "3", N=0)
    refuses(name, [q, k, zeros(2, 7, 6), *more], "'key' and 'value'", "5", "7", N=0)
    refuses(name, [q, k, v, zeros(3, 4), *more], "bias", "[3, 4]", "[2, 3, 5]", N=1)
    refuses(name, [q, k, v, zeros(1, 2, 3, 5), *more], "bias", "[1, 2, 3, 5]", N=1)
    refuses(name, [q, k, v, zeros(5), zeros(5), *more], "bias", "2", N=2)
    refuses(name, [q, k, v, *more], "scale", "inf", N=0, scale=float("inf"))
refuses("ScaledDotProductAttentionGrad", [q, k, v, zeros(2, 3, 5), l, y], "output", "[2, 3, 5]", N=0)
refuses("ScaledDotProductAttentionGrad", [q, k, v, y, zeros(2, 4), y], "logsumexp", "[2, 4]", N=0)
refuses("ScaledDotProductAttentionGrad", [q, k, v, y, l, zeros(2, 3)], "grad_output", N=0)
