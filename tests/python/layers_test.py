"""Transposed convolutions, pooling, orthogonal weights, rotations and caches of attention against NumPy in float64."""
import numpy as np
import pytest

import thalweg as tw

rng = np.random.default_rng(6)


def initialised(graph):
    session = tw.Session(graph)
    session.run(graph.initializer())
    return session


def transposed(x, kernel, strides, dilations, padding):
    """Each element of x adds its multiple of the kernel; "same" padding then cuts the edges as a convolution's input would lie."""
    axes = x.ndim - 2
    window = kernel.shape[:axes]
    full = [(n - 1) * s + (k - 1) * d + 1 for n, k, s, d in zip(x.shape[1:-1], window, strides, dilations)]
    y = np.zeros((x.shape[0], *full, kernel.shape[-2]))
    for at in np.ndindex(*x.shape[1:-1]):
        for k in np.ndindex(*window):
            place = tuple(a * s + i * d for a, s, i, d in zip(at, strides, k, dilations))
            y[(slice(None), *place)] += x[(slice(None), *at)] @ kernel[k].T
    if padding == "valid":
        return y
    out = np.zeros((x.shape[0], *(n * s for n, s in zip(x.shape[1:-1], strides)), kernel.shape[-2]))
    cut = []
    for n, s, f in zip(x.shape[1:-1], strides, full):
        before = max(f - n * s, 0) // 2
        cut.append((before, min(f - before, n * s)))
    out[(slice(None), *(slice(0, size) for _, size in cut))] = y[(slice(None), *(slice(b, b + size) for b, size in cut))]
    return out


@pytest.mark.parametrize("axes,stride,dilation,padding", [(1, 2, 1, "same"), (1, 3, 2, "valid"), (2, 2, 1, "same"), (2, 1, 2, "valid"), (2, 3, 1, "valid"),
                                                          (3, 2, 1, "same"), (3, 2, 1, "valid")])
@pytest.mark.parametrize("known", [True, False])
def test_transposed_convolutions(axes, stride, dilation, padding, known):
    kind = (tw.nn.Conv1DTranspose, tw.nn.Conv2DTranspose, tw.nn.Conv3DTranspose)[axes - 1]
    x = rng.normal(size=(2, *range(3, 3 + axes), 2)).astype(np.float32)
    with tw.Graph() as g:
        layer = kind(4, 3, strides=stride, dilations=dilation, padding=padding, bias=("constant", 0.25), seed=2)
        p = tw.placeholder("float32", x.shape if known else [None] * (axes + 1) + [2])
        y = layer(p)
    with initialised(g) as s:
        kernel, got = s.run([layer.kernel, y], {p: x})
    wanted = transposed(x.astype(np.float64), kernel.astype(np.float64), [stride] * axes, [dilation] * axes, padding) + 0.25
    assert got.shape == wanted.shape and y.shape == (wanted.shape if known else (None,) * (axes + 1) + (4,))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_a_transposed_convolution_trains():
    with tw.Graph() as g:
        layer = tw.nn.Conv2DTranspose(1, 2, strides=2, seed=3)
        loss = (layer(rng.normal(size=(3, 4, 4, 2)).astype(np.float32)) - 1)
        loss = (loss * loss).mean()
        step = tw.train.Adam(0.05).minimize(loss)
    with initialised(g) as s:
        first = s.run(loss)
        for _ in range(30):
            s.run(step)
        assert s.run(loss) < first / 3


def test_pooling_over_one_axis_and_over_all_positions():
    x = rng.normal(size=(2, 7, 3)).astype(np.float32)
    with tw.Graph() as g:
        p = tw.placeholder("float32", [None, 7, 3])
        made = [tw.nn.MaxPool1D(3)(p), tw.nn.AvgPool1D(2, 3)(p), tw.nn.MaxPool1D(2, padding="same")(p), tw.nn.GlobalMaxPool()(p), tw.nn.GlobalAvgPool()(p)]
    most, mean, same, all_most, all_mean = tw.Session(g).run(made, {p: x})
    np.testing.assert_array_equal(most, np.stack([x[:, i:i + 3].max(1) for i in (0, 3)], 1))
    np.testing.assert_allclose(mean, np.stack([x[:, i:i + 2].mean(1) for i in (0, 3)], 1), rtol=1e-6)
    np.testing.assert_array_equal(same, np.stack([x[:, i:i + 2].max(1) for i in (0, 2, 4, 6)], 1))
    np.testing.assert_array_equal(all_most, x.max(1))
    np.testing.assert_allclose(all_mean, x.mean(1), rtol=1e-6)
    assert made[0].shape == (None, 2, 3) and made[3].shape == (None, 3)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (2, 3, 5), (5, 5)])
def test_orthogonal_weights_are_orthonormal_and_seeded(shape):
    def draw(seed):
        with tw.Graph() as g:
            layer = tw.nn.Dense(shape[-1], kernel=("orthogonal", 2.0), seed=seed) if len(shape) == 2 else \
                tw.nn.Conv1D(shape[-1], shape[0], kernel=("orthogonal", 2.0), seed=seed)
            layer(np.zeros((1, *shape[-2:-1]) if len(shape) == 2 else (1, 3, shape[1]), np.float32))
        with initialised(g) as s:
            return s.run(layer.kernel)

    one, same, other = draw(7), draw(7), draw(8)
    assert one.shape == shape and np.array_equal(one, same) and not np.allclose(one, other)
    q = one.reshape(-1, shape[-1]).astype(np.float64) / 2
    small = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-6)


def rotated(x, first=0, base=10_000.0, interleaved=False):
    depth, n = x.shape[-1], x.shape[-2]
    angles = (first + np.arange(n))[:, None] * base ** (-2 * np.arange(depth // 2) / depth)
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :depth // 2], x[..., depth // 2:])
    first, second = a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)
    return np.stack([first, second], -1).reshape(x.shape) if interleaved else np.concatenate([first, second], -1)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotations(interleaved):
    x = rng.normal(size=(2, 3, 5, 8)).astype(np.float32)
    with tw.Graph() as g:
        p, at = tw.placeholder("float32", [None, 3, None, 8]), tw.placeholder("int32", [])
        y, z = tw.nn.rotary(p, interleaved=interleaved), tw.nn.rotary(p, at, base=100.0, interleaved=interleaved)
        with pytest.raises(tw.InvalidArgumentError, match="its last size must be known and even"):
            tw.nn.rotary(np.zeros((4, 3), np.float32))
    assert y.shape == (None, 3, None, 8)
    got = tw.Session(g).run([y, z], {p: x, at: 1000})
    np.testing.assert_allclose(got[0], rotated(x.astype(np.float64), 0, interleaved=interleaved), atol=1e-6)
    np.testing.assert_allclose(got[1], rotated(x.astype(np.float64), 1000, 100.0, interleaved), atol=1e-5)


@pytest.mark.parametrize("rotary", [False, 500.0])
def test_a_cache_gives_what_causal_attention_gives(rotary):
    x = rng.normal(size=(2, 6, 8)).astype(np.float32)
    with tw.Graph() as g:
        layer = tw.nn.MultiHeadAttention(2, rotary=rotary, seed=4)
        p, at = tw.placeholder("float32", [2, None, 8]), tw.placeholder("int32", [])
        whole = layer(p, causal=True)
        keys, values = (tw.placeholder("float32", [2, 2, 6, 4]) for _ in range(2))
        part, new_keys, new_values = layer(p, cache=(keys, values, at))
    assert new_keys.shape == (2, 2, 6, 4)
    with initialised(g) as s:
        wanted, k, v, got = s.run(whole, {p: x}), np.full((2, 2, 6, 4), 9, np.float32), np.full((2, 2, 6, 4), 9, np.float32), []
        for first, n in ((0, 3), (3, 1), (4, 2)):  # what the caches hold beyond the position does not matter
            y, k, v = s.run([part, new_keys, new_values], {p: x[:, first:first + n], keys: k, values: v, at: first})
            got.append(y)
        np.testing.assert_allclose(np.concatenate(got, 1), wanted, rtol=1e-4, atol=1e-5)
        with pytest.raises(tw.InvalidArgumentError):
            s.run(part, {p: x, keys: k, values: v, at: 1})  # one row beyond the caches


def test_groups_are_those_of_the_weights():
    with tw.Graph():
        layer = tw.nn.Conv2D(4, 3, groups=2)
        layer(np.zeros((1, 5, 5, 4), np.float32))
        with pytest.raises(tw.InvalidArgumentError, match="'conv2d': the input has shape .*, so 8 channels; the weights are for 4, in 2 groups"):
            layer(np.zeros((1, 5, 5, 8), np.float32))
        with pytest.raises(tw.InvalidArgumentError, match="groups is 2; it must be 1"):
            tw.nn.Conv2DTranspose(4, 3, groups=2)(np.zeros((1, 5, 5, 4), np.float32))


def convolved(x, kernel, strides, dilations, around):
    """The correlation of x with zeros around it, each window alone."""
    axes = x.ndim - 2
    x = np.pad(x, [(0, 0), *around, (0, 0)])
    reach = [(k - 1) * d + 1 for k, d in zip(kernel.shape, dilations)]
    out = [(n - r) // s + 1 for n, r, s in zip(x.shape[1:-1], reach, strides)]
    y = np.zeros((x.shape[0], *out, kernel.shape[-1]))
    for at in np.ndindex(*out):
        window = x[(slice(None), *(slice(a * s, a * s + r, d) for a, s, r, d in zip(at, strides, reach, dilations)))]
        y[(slice(None), *at)] = np.tensordot(window, kernel, axes + 1)
    return y


@pytest.mark.parametrize("kind,padding,around", [
    (tw.nn.Conv1D, 2, [(2, 2)]), (tw.nn.Conv1D, [(0, 3)], [(0, 3)]), (tw.nn.Conv2D, 1, [(1, 1), (1, 1)]), (tw.nn.Conv2D, (2, (0, 1)), [(2, 2), (0, 1)]),
    (tw.nn.Conv2D, 0, [(0, 0), (0, 0)]), (tw.nn.Conv3D, (1, 0, (1, 2)), [(1, 1), (0, 0), (1, 2)])])
@pytest.mark.parametrize("known", [True, False])
def test_convolutions_with_sizes_of_padding(kind, padding, around, known):
    x = rng.normal(size=(2, *range(5, 5 + len(around)), 2)).astype(np.float32)
    with tw.Graph() as g:
        layer = kind(3, 3, strides=2, padding=padding, bias=("constant", 0.5), seed=1)
        p = tw.placeholder("float32", x.shape if known else [None] * (x.ndim - 1) + [2])
        y = layer(p)
        slope = tw.gradients(y.sum(), [p])[0]
    with initialised(g) as s:
        kernel, got, grad = s.run([layer.kernel, y, slope], {p: x})
    wanted = convolved(x.astype(np.float64), kernel.astype(np.float64), [2] * len(around), [1] * len(around), around) + 0.5
    assert got.shape == wanted.shape and grad.shape == x.shape and y.shape == (wanted.shape if known else (None,) * (x.ndim - 1) + (3,))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    one = np.zeros(x.shape)
    one[1, 2, ..., 1] = 1  # along this direction the sum changes by the convolution of it
    moved = convolved(one, kernel.astype(np.float64), [2] * len(around), [1] * len(around), around).sum()
    np.testing.assert_allclose((grad * one).sum(), moved, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind,window,strides,padding,around", [(tw.nn.MaxPool1D, 3, 2, 1, [(1, 1)]), (tw.nn.MaxPool1D, 2, 1, [(0, 1)], [(0, 1)]),
                                                                (tw.nn.MaxPool2D, 3, 2, 1, [(1, 1), (1, 1)]),
                                                                (tw.nn.MaxPool2D, (3, 2), (2, 1), (2, (1, 0)), [(2, 2), (1, 0)])])
def test_max_pools_with_sizes_of_padding(kind, window, strides, padding, around):
    x = rng.normal(size=(2, *range(6, 6 + len(around)), 3)).astype(np.float32) - 5  # below 0, so that padding would show
    windows, steps = (given if isinstance(given, tuple) else (given,) * len(around) for given in (window, strides))
    with tw.Graph() as g:
        p = tw.placeholder("float32", [None, *x.shape[1:]])
        y = kind(window, strides, padding)(p)
    full = np.pad(x, [(0, 0), *around, (0, 0)], constant_values=-np.inf)
    out = [(n - w) // s + 1 for n, w, s in zip(full.shape[1:-1], windows, steps)]
    wanted = np.empty((2, *out, 3), np.float32)
    for at in np.ndindex(*out):
        area = full[(slice(None), *(slice(a * s, a * s + w) for a, s, w in zip(at, steps, windows)))]
        wanted[(slice(None), *at)] = area.max(tuple(range(1, 1 + len(at))))
    np.testing.assert_array_equal(tw.Session(g).run(y, {p: x}), wanted)
    assert y.shape == (None, *out, 3)
    np.testing.assert_array_equal(kind(window, strides, padding)(tw.constant(x)).numpy(), wanted)


def test_wrong_paddings_are_told():
    for padding in (-1, (1, 2, 3), ((1, 2, 3), 1), (1, -2)):
        with pytest.raises(ValueError, match="Conv2D: padding is .*; it must be 'valid', 'same', 'causal', a number of 0 or more, or for each of 2 axes"):
            tw.nn.Conv2D(1, 3, padding=padding)
    with pytest.raises(TypeError, match="Conv2D: padding is 0.5; it must be a whole number"):
        tw.nn.Conv2D(1, 3, padding=0.5)
    with pytest.raises(ValueError, match="Conv2DTranspose: padding is 1; it must be 'valid' or 'same'"):
        tw.nn.Conv2DTranspose(1, 3, padding=1)
    with pytest.raises(ValueError, match="AvgPool2D: padding is 1; a mean needs 'valid' or 'same'"):
        tw.nn.AvgPool2D(3, padding=1)
    with pytest.raises(ValueError, match="there is no padding 'full'"):
        tw.nn.MaxPool2D(padding="full")
    with tw.Graph():
        with pytest.raises(ValueError, match="module 'conv2d': its input .* has 3 axes; it needs 4"):
            tw.nn.Conv2D(1, 3, padding=1)(np.zeros((1, 5, 5), np.float32))
        with pytest.raises(tw.InvalidArgumentError, match="padding must be less than the window"):
            tw.nn.MaxPool2D(2, padding=2)(np.zeros((1, 5, 5, 1), np.float32))


def test_concat_joins_results_along_an_axis():
    x = rng.normal(size=(2, 3)).astype(np.float32)
    with tw.Graph() as g:
        p = tw.placeholder("float32", [None, 3])
        layer = tw.nn.Concat(tw.nn.Dense(2, seed=1), tw.nn.Sequential(tw.nn.Dense(4, seed=2), tw.nn.relu), lambda v: -v)
        first, second = layer.parts[0], layer.parts[1].parts[0]
        y, rows = layer(p), tw.nn.Concat(tw.nn.relu, tw.nn.tanh, axis=0)(p)
        assert len(layer.parameters()) == 4
    with initialised(g) as s:
        a, b, got, below = s.run([first.kernel, second.kernel, y, rows], {p: x})
    assert y.shape == (None, 9)
    np.testing.assert_allclose(got, np.concatenate([x @ a, np.maximum(x @ b, 0), -x], 1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(below, np.concatenate([np.maximum(x, 0), np.tanh(x)]), rtol=1e-5)
    assert tw.nn.Concat(tw.nn.relu, tw.nn.tanh)(tw.constant(x)).shape == (2, 6)
    with pytest.raises(ValueError, match="Concat has no parts"):
        tw.nn.Concat()
    with pytest.raises(TypeError, match="is neither a module nor a function"):
        tw.nn.Concat(tw.nn.relu, 3)
