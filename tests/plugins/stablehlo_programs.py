"""Programs in JAX that StableHLO's importer must run: nets and their gradients, scans and loops, sorting, transforms, linear algebra,
random numbers, control flow. Each is a function and its inputs; jax.export turns it into an artifact. Needs JAX to be imported."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

PROGRAMS = {}  # name: function without arguments that returns (function, inputs)


def program(make):
    PROGRAMS[make.__name__] = make
    return make


def normal(seed, *shape, scale=1.0):
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


def whole(seed, low, high, *shape, dtype=np.int32):
    return np.random.default_rng(seed).integers(low, high, size=shape).astype(dtype)


# ---- Nets ----

def mlp(w, x):
    for weight, bias in w[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    return x @ w[-1][0] + w[-1][1]


MLP = [(normal(i, a, b, scale=a**-0.5), normal(10 + i, b)) for i, (a, b) in enumerate(((12, 32), (32, 32), (32, 5)))]


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


@program
def mlp_forward():
    return mlp, (MLP, normal(1, 8, 12))


@program
def mlp_gradient():
    return jax.grad(lambda w, x, y: cross_entropy(mlp(w, x), y)), (MLP, normal(1, 8, 12), whole(2, 0, 5, 8))


@program
def mlp_steps_of_momentum():
    def step(w, v, x, y):
        g = jax.grad(lambda w: cross_entropy(mlp(w, x), y))(w)
        v = jax.tree.map(lambda a, b: 0.9 * a + b, v, g)
        return jax.tree.map(lambda a, b: a - 0.1 * b, w, v), v

    def steps(w, x, y):
        return lax.fori_loop(0, 5, lambda _, s: step(*s, x, y), (w, jax.tree.map(jnp.zeros_like, w)))[0]
    return steps, (MLP, normal(1, 8, 12), whole(2, 0, 5, 8))


@program
def adam_step():
    def step(w, m, v, x, y):
        g = jax.grad(lambda w: cross_entropy(mlp(w, x), y))(w)
        m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
        v = jax.tree.map(lambda a, b: 0.99 * a + 0.01 * b * b, v, g)
        return jax.tree.map(lambda p, a, b: p - 0.01 * (a / 0.1) / (jnp.sqrt(b / 0.01) + 1e-8), w, m, v), m, v
    zeros = jax.tree.map(lambda a: np.zeros_like(a) + np.float32(0.1), MLP)
    return step, (MLP, zeros, zeros, normal(1, 8, 12), whole(2, 0, 5, 8))


def conv(x, w, strides=(1, 1), padding="SAME", **options):
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)


def cnn(w, x):
    x = jax.nn.relu(conv(x, w[0]))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.gelu(conv(x, w[1], (2, 2)))
    x = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME") / 4
    return x.reshape(x.shape[0], -1) @ w[2]


CNN = [normal(1, 3, 3, 3, 8, scale=0.2), normal(2, 3, 3, 8, 6, scale=0.1), normal(3, 96, 4, scale=0.1)]


@program
def cnn_forward():
    return cnn, (CNN, normal(4, 2, 16, 16, 3))


@program
def cnn_gradient():
    return jax.grad(lambda w, x: jnp.sum(cnn(w, x) ** 2)), (CNN, normal(4, 2, 16, 16, 3))


@program
def cnn_gradient_of_images():
    return jax.grad(lambda x, w: jnp.sum(cnn(w, x) ** 2)), (normal(4, 2, 16, 16, 3), CNN)


@program
def depthwise_convolution():
    return (lambda x, w: conv(x, w, feature_group_count=6)), (normal(1, 2, 9, 9, 6), normal(2, 3, 3, 1, 6))


@program
def depthwise_gradient():
    return jax.grad(lambda w, x: jnp.sum(jnp.sin(conv(x, w, feature_group_count=6)))), (normal(2, 3, 3, 1, 6), normal(1, 2, 9, 9, 6))


@program
def dilated_convolution_1d():
    def f(x, w):
        return lax.conv_general_dilated(x, w, (2,), [(3, 1)], lhs_dilation=(2,), rhs_dilation=(3,), dimension_numbers=("NCH", "OIH", "NCH"))
    return f, (normal(1, 2, 4, 20), normal(2, 5, 4, 3))


@program
def convolution_3d():
    return (lambda x, w: lax.conv(x, w, (1, 2, 1), "SAME")), (normal(1, 2, 3, 5, 6, 7), normal(2, 4, 3, 3, 3, 3))


@program
def transposed_convolution():
    return (lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))), (normal(1, 2, 5, 5, 3), normal(2, 3, 3, 3, 4))


@program
def batch_norm():
    def f(x, g, b):
        mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
        return (x - mean) * lax.rsqrt(variance + 1e-5) * g + b, mean, variance
    return f, (normal(1, 4, 5, 5, 3), normal(2, 3), normal(3, 3))


@program
def layer_norm_gradient():
    def f(x, g):
        mean = jnp.mean(x, -1, keepdims=True)
        return jnp.sum(jnp.tanh((x - mean) * lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-6) * g))
    return jax.grad(f, (0, 1)), (normal(1, 4, 7, 16), normal(2, 16))


def attention(q, k, v, mask):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)


def block(w, x):
    heads = (2, 6, 4, 8)
    mask = jnp.tril(jnp.ones((6, 6), bool))
    normed = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    q, k, v = (a.reshape(heads) for a in jnp.split(normed @ w["qkv"], 3, -1))
    x = x + attention(q, k, v, mask).reshape(2, 6, 32) @ w["out"]
    return x + jax.nn.gelu(x @ w["up"]) @ w["down"]


BLOCK = {"qkv": normal(1, 32, 96, scale=0.2), "out": normal(2, 32, 32, scale=0.2), "up": normal(3, 32, 64, scale=0.2), "down": normal(4, 64, 32, scale=0.2)}


@program
def transformer_block():
    return block, (BLOCK, normal(5, 2, 6, 32))


@program
def transformer_gradient():
    return jax.grad(lambda w, x: jnp.mean(block(w, x) ** 2)), (BLOCK, normal(5, 2, 6, 32))


@program
def transformer_over_layers():
    layers = jax.tree.map(lambda a: np.stack([a, a * 0.5, a * -0.7]), BLOCK)
    return (lambda w, x: lax.scan(lambda h, layer: (block(layer, h), None), x, w)[0]), (layers, normal(5, 2, 6, 32))


@program
def embedding_lookup():
    return (lambda e, i: e[i] + jnp.take(e, i[::-1], axis=0, mode="clip")), (normal(1, 20, 6), whole(2, 0, 20, 3, 5))


@program
def embedding_gradient():
    return jax.grad(lambda e, i: jnp.sum(jnp.sin(e[i]))), (normal(1, 20, 6), whole(2, 0, 20, 3, 5))


@program
def key_value_cache():
    def f(cache, new, at):
        return lax.dynamic_update_slice(cache, new, (0, at, 0)), lax.dynamic_slice_in_dim(cache, at, 2, 1)
    return f, (normal(1, 2, 9, 4), normal(2, 2, 1, 4), np.int32(5))


@program
def rotary_embedding():
    def f(x):
        angles = jnp.arange(7)[:, None] / 10000 ** (jnp.arange(0, 8, 2) / 8)
        a, b = x[..., ::2], x[..., 1::2]
        return jnp.stack([a * jnp.cos(angles) - b * jnp.sin(angles), a * jnp.sin(angles) + b * jnp.cos(angles)], -1).reshape(x.shape)
    return f, (normal(1, 3, 7, 8),)


@program
def mixture_of_experts():
    def f(x, gate, experts):
        weights, chosen = lax.top_k(jax.nn.softmax(x @ gate), 2)
        return jnp.einsum("tk,tko->to", weights, jnp.einsum("ti,tkio->tko", x, experts[chosen]))
    return f, (normal(1, 6, 8), normal(2, 8, 4), normal(3, 4, 8, 5))


@program
def bfloat16_product():
    return (lambda a, b: (a.astype(jnp.bfloat16) @ b.astype(jnp.bfloat16)).astype(jnp.float32)), (whole(1, -3, 4, 5, 7).astype(np.float32), whole(2, -3, 4, 7, 3).astype(np.float32))


@program
def int8_product():
    return (lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32)), (whole(1, -128, 128, 5, 9, dtype=np.int8), whole(2, -128, 128, 9, 4, dtype=np.int8))


# ---- Recurrence and loops ----

@program
def lstm():
    def f(w, u, b, xs):
        def step(state, x):
            h, c = state
            i, g, f_, o = jnp.split(x @ w + h @ u + b, 4, -1)
            c = jax.nn.sigmoid(f_) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        return lax.scan(step, (jnp.zeros((3, 5)), jnp.zeros((3, 5))), xs)
    return f, (normal(1, 4, 20), normal(2, 5, 20), normal(3, 20), normal(4, 6, 3, 4))


@program
def recurrent_gradient():
    def f(w, xs):
        return jnp.sum(lax.scan(lambda h, x: (jnp.tanh(h @ w + x),) * 2, jnp.zeros((2, 4)), xs)[1] ** 2)
    return jax.grad(f), (normal(1, 4, 4), normal(2, 5, 2, 4))


@program
def while_loop():
    return (lambda x: lax.while_loop(lambda s: s[1] < 100, lambda s: (s[0] + 1, s[1] * 2), (0, x))), (np.float32(1.5),)


@program
def collatz():
    def steps(n):
        return lax.while_loop(lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0))[1]
    return jax.vmap(steps), (np.array([1, 7, 9, 27, 97], np.int32),)


@program
def cond_and_switch():
    def f(i, x):
        a = lax.cond(i > 1, lambda x: jnp.sin(x), lambda x: x * 2, x)
        return lax.switch(i, [lambda x: x, lambda x: -x, lambda x: x**2], a)
    return f, (np.int32(2), normal(1, 5))


@program
def newton_root():
    return jax.grad(lambda a: lax.fori_loop(0, 8, lambda _, x: 0.5 * (x + a / x), a)), (np.float32(2.5),)


@program
def runge_kutta():
    def f(y):
        def rate(y):
            return jnp.stack([y[1], -jnp.sin(y[0])])

        def step(y, _):
            k1 = rate(y)
            k2 = rate(y + 0.05 * k1)
            k3 = rate(y + 0.05 * k2)
            k4 = rate(y + 0.1 * k3)
            y = y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return y, y
        return lax.scan(step, y, None, length=20)
    return f, (np.array([1.0, 0.2], np.float32),)


@program
def associative_scan():
    return (lambda a, b: lax.associative_scan(lambda x, y: (x[0] * y[0], x[1] * y[0] + y[1]), (a, b))), (normal(1, 13), normal(2, 13))


@program
def cumulative():
    return (lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 1), lax.cummin(x, 0, reverse=True), lax.cumlogsumexp(x, 1))), (normal(1, 6, 7),)


# ---- Order and selection ----

@program
def sort_and_argsort():
    return (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), jnp.argsort(-x, -1, stable=True))), (normal(1, 9, 8),)


@program
def sort_with_specials():
    return (lambda x: jnp.sort(x)), (np.array([3, np.nan, -np.inf, -0.0, 0.0, np.inf, -2], np.float32),)


@program
def lexicographic_sort():
    return (lambda a, b, c: lax.sort((a, b, c), num_keys=2)), (whole(1, 0, 4, 30), whole(2, 0, 5, 30), normal(3, 30))


@program
def top_k():
    return (lambda x: lax.top_k(x, 4)), (normal(1, 3, 17),)


@program
def arg_extremes():
    return (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x))), (whole(1, 0, 9, 7, 8).astype(np.float32),)


@program
def median_and_quantiles():
    return (lambda x: (jnp.median(x, 0), jnp.quantile(x, np.array([0.1, 0.5, 0.9], np.float32)))), (normal(1, 11, 4),)


@program
def unique_counts():
    return (lambda x: jnp.unique(x, size=6, fill_value=-1, return_counts=True)), (whole(1, 0, 6, 40),)


@program
def searchsorted_histogram():
    return (lambda a, v: (jnp.searchsorted(a, v), jnp.histogram(v, bins=5, range=(-2, 2))[0])), (np.sort(normal(1, 20)), normal(2, 15))


@program
def segment_sums():
    return (lambda x, i: (jax.ops.segment_sum(x, i, 5), jax.ops.segment_max(x, i, 5), jax.ops.segment_prod(x, i, 5))), (normal(1, 12, 3), np.sort(whole(2, 0, 5, 12)))


@program
def scatter_and_index():
    def f(x, i, v):
        return x.at[i].set(v), x.at[i].add(v), x.at[i, 1].multiply(2.0), x.at[:, i[:2]].min(0.1), x[i][:, ::-1], x.at[i].get(mode="fill", fill_value=7)
    return f, (normal(1, 6, 4), np.array([0, 3, 5], np.int32), normal(2, 3, 4))


@program
def gather_along():
    return (lambda x, i: (jnp.take_along_axis(x, i, 1), jnp.choose(i[0] % 3, x[:3, :4], mode="clip"), x[i % 5, i % 4])), (normal(1, 5, 4), whole(2, 0, 4, 5, 4))


@program
def one_hot_and_mask():
    return (lambda i, x: (jax.nn.one_hot(i, 7), jnp.where(i[:, None] > jnp.arange(5), x, 0), jnp.tril(x), jnp.triu(x, 1))), (whole(1, 0, 7, 5), normal(2, 5, 5))


# ---- Arithmetic ----

@program
def special_functions():
    def f(x):
        p = jnp.abs(x) + 0.1
        return (jax.scipy.special.erf(x), jax.scipy.special.erfc(x), jax.scipy.special.gammaln(p), jax.scipy.special.digamma(p), jax.scipy.special.erfinv(jnp.tanh(x)),
                jax.scipy.special.logsumexp(x, 1), jnp.cbrt(x), jnp.log1p(p), jnp.expm1(x), jnp.arctan2(x, p), jax.scipy.special.i1e(x))
    return f, (normal(1, 5, 6),)


@program
def trigonometry():
    return (lambda x: (jnp.tan(x), jnp.arcsin(x / 4), jnp.arccos(x / 4), jnp.arctan(x), jnp.sinh(x), jnp.cosh(x), jnp.arcsinh(x), jnp.arccosh(1 + x * x), jnp.arctanh(x / 4))), (normal(1, 8),)


@program
def whole_numbers():
    def f(a, b):
        return a // b, a % b, lax.div(a, b), lax.rem(a, b), a ** 3, jnp.gcd(a, b), lax.population_count(a), lax.clz(a), a << 3, a >> 2, lax.shift_right_logical(a, 2), a ^ b
    return f, (whole(1, -50, 50, 20), np.where(whole(2, -7, 7, 20) == 0, 3, whole(2, -7, 7, 20)))


@program
def rounding():
    return (lambda x: (jnp.round(x), lax.round(x), jnp.floor(x), jnp.ceil(x), jnp.trunc(x), jnp.sign(x), x.astype(jnp.int32), lax.reduce_precision(x, 5, 4))), (normal(1, 40, scale=3),)


@program
def complex_numbers():
    return (lambda a, b: (jnp.abs(a + 1j * b), jnp.exp(1j * a).real, ((a + 1j * b) * (b - 1j * a)).imag, jnp.angle(a + 1j * b), jnp.sqrt(a + 1j * b).real)), (normal(1, 9), normal(2, 9))


@program
def polynomial_and_hessian():
    return jax.hessian(lambda x: jnp.sum(jnp.polyval(jnp.array([1.0, -2, 0.5, 3]), x) * jnp.cos(x[::-1]))), (normal(1, 5),)


@program
def second_derivatives_of_net():
    return (lambda w, x, v: jax.jvp(jax.grad(lambda x: jnp.sum(jnp.tanh(mlp(w, x)))), (x,), (v,))[1]), (MLP, normal(1, 3, 12), normal(2, 3, 12))


@program
def vectorised_map():
    return jax.vmap(jax.vmap(lambda a, b: jnp.dot(a, b) / (1 + jnp.linalg.norm(a - b)), (None, 0)), (0, None)), (normal(1, 6, 4), normal(2, 5, 4))


# ---- Transforms and linear algebra ----

@program
def fft_of_real():
    return (lambda x: (jnp.fft.rfft(x).real, jnp.fft.irfft(jnp.fft.rfft(x) * 2), jnp.abs(jnp.fft.fft2(x)), jnp.fft.ifft(x).imag)), (normal(1, 4, 12),)


@program
def convolution_by_fft():
    return (lambda a, b: jnp.fft.irfft(jnp.fft.rfft(a, 32) * jnp.fft.rfft(b, 32), 32)), (normal(1, 20), normal(2, 9))


def definite(seed, n):
    a = normal(seed, n, n)
    return a @ a.T + n * np.eye(n, dtype=np.float32)


@program
def cholesky_and_solve():
    return (lambda a, b: (jnp.linalg.cholesky(a), jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), b))), (definite(1, 6), normal(2, 6, 2))


@program
def gaussian_process():
    def f(x, y, z):
        def kernel(a, b):
            return jnp.exp(-0.5 * (a[:, None] - b) ** 2)
        factor = jnp.linalg.cholesky(kernel(x, x) + 0.1 * jnp.eye(len(x)))
        half = jax.scipy.linalg.solve_triangular(factor, kernel(x, z), lower=True)
        return half.T @ jax.scipy.linalg.solve_triangular(factor, y, lower=True), 1 - jnp.sum(half**2, 0)
    return f, (np.sort(normal(1, 8)), normal(2, 8), normal(3, 5))


@program
def linear_solve_and_determinant():
    return (lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.det(a) / 1000, jnp.linalg.inv(a))), (normal(1, 5, 5) + 3 * np.eye(5, dtype=np.float32), normal(2, 5, 2))


@program
def singular_values_and_eigenvalues():
    return (lambda a, s: (jnp.linalg.svd(a, compute_uv=False), jnp.linalg.eigvalsh(s), jnp.linalg.matrix_rank(a))), (normal(1, 6, 4), definite(2, 5))


@program
def conjugate_gradients():
    return (lambda a, b: jax.scipy.sparse.linalg.cg(lambda x: a @ x, b, maxiter=12)[0]), (definite(1, 6), normal(2, 6))


# ---- Random numbers ----

@program
def random_uniform_and_bits():
    def f(seed):
        a, b = jax.random.split(jax.random.key(seed))
        return jax.random.uniform(a, (3, 5)), jax.random.bits(b, (7,)), jax.random.randint(b, (6,), 0, 100)
    return f, (np.int32(42),)


@program
def random_normal_and_choices():
    def f(seed):
        keys = jax.random.split(jax.random.key(seed), 4)
        return jax.random.normal(keys[0], (4, 3)), jax.random.permutation(keys[1], 11), jax.random.categorical(keys[2], jnp.zeros((5, 4))), jax.random.bernoulli(keys[3], 0.3, (9,))
    return f, (np.int32(7),)


@program
def random_bit_generator():
    return (lambda seed: jax.random.bits(jax.random.key(seed, impl="rbg"), (3, 4))), (np.int32(5),)


@program
def dropout_gradient():
    def f(x, seed):
        keep = jax.random.bernoulli(jax.random.key(seed), 0.8, x.shape)
        return jnp.sum(jnp.where(keep, x / 0.8, 0) ** 2)
    return jax.grad(f), (normal(1, 6, 7), np.int32(3))


@program
def monte_carlo():
    def f(seed):
        def step(total, key):
            x = jax.random.uniform(key, (64, 2))
            return total + jnp.sum(jnp.sum(x * x, 1) < 1), None
        return lax.scan(step, 0, jax.random.split(jax.random.key(seed), 10))[0]
    return f, (np.int32(1),)


# ---- Images ----

@program
def image_resize():
    return (lambda x: (jax.image.resize(x, (9, 7, 2), "bilinear"), jax.image.resize(x, (3, 4, 2), "nearest"))), (normal(1, 6, 5, 2),)


@program
def map_coordinates():
    return (lambda x, c: jax.scipy.ndimage.map_coordinates(x, [c[0], c[1]], order=1, mode="nearest")), (normal(1, 6, 5), np.abs(normal(2, 2, 8)) * 2)


@program
def padding_and_rolls():
    return (lambda x: (jnp.pad(x, ((1, 2), (0, 3)), mode="reflect"), lax.pad(x, 0.5, ((1, -1, 2), (-1, 2, 1))), jnp.roll(x, 2, 1), jnp.flip(x, 0), jnp.tile(x, (2, 1)), jnp.kron(x[:2, :2], x))), (normal(1, 4, 5),)


def build(name):
    """Returns (function, the flat inputs that it uses, expected flat outputs as NumPy arrays, bytes of the artifact)."""
    from jax import export
    f, inputs = PROGRAMS[name]()
    flat, tree = jax.tree.flatten(inputs)
    flat = [np.asarray(x) for x in flat]

    @functools.wraps(f)
    def on_flat(*leaves):
        return f(*jax.tree.unflatten(tree, leaves))
    exported = export.export(jax.jit(on_flat))(*flat)
    expected = [np.asarray(x) for x in jax.tree.leaves(jax.jit(on_flat)(*flat))]
    return on_flat, [flat[i] for i in exported.module_kept_var_idx], expected, exported.mlir_module_serialized
