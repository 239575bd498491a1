"""The training steps of the bench, in Thalweg, PyTorch and JAX. `make(network, batch, side, precision)` returns a function that runs one
step and returns its loss, or raises Missing. Steps use plain gradient descent; images, labels and weights stay on the GPU."""
import gc
import itertools
import os
import sys

import numpy as np

RATE = 1e-3
DEVICE = os.environ.get("THALWEG_GPU_DEVICE", "CUDA:0")  # Thalweg's device
CONTAINERS = (f"bench {k}" for k in itertools.count())  # containers of variables, which outlive their graphs


def give_memory_back():
    """Frees the memory that no step needs any more, so that the next step has enough."""
    gc.collect()
    if "thalweg" in sys.modules:
        sys.modules["thalweg"].Runtime.default().give_memory_back()
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_available():
        sys.modules["torch"].cuda.empty_cache()


class Missing(Exception):
    """This machine lacks the framework."""


def start(shape, seed):
    fan_in = int(np.prod(shape[:-1])) or 1
    return (np.random.default_rng(seed).standard_normal(shape, np.float32) * np.float32((2 / fan_in) ** 0.5)).astype(np.float32)


def images(batch, side):
    rng = np.random.default_rng(0)
    return rng.standard_normal((batch, side, side, 3), np.float32), rng.integers(0, 1000, batch).astype(np.int32)


class Thalweg:
    def __init__(self, tw):
        self.tw, self.weights = tw, []

    def weight(self, shape, value=None):
        self.weights.append(self.tw.Variable(start(shape, len(self.weights) + 1) if value is None else np.full(shape, value, np.float32)))
        return self.weights[-1]

    def conv(self, x, out, size, stride, padding):
        w = self.weight((size, size, x.shape[3], out))
        around = [0, 0, padding, padding, padding, padding, 0, 0]
        how = dict(padding="EXPLICIT", explicit_paddings=around) if padding else dict(padding="VALID")
        y = self.tw.ops.conv2d(x, w, strides=[1, stride, stride, 1], **how)
        return self.tw.ops.bias_add(y, self.weight((out,), 0))

    def pool(self, x, size, stride, padding):
        if padding:
            edge = [[0, 0], [padding, padding], [padding, padding], [0, 0]]
            x = self.tw.ops.pad_v2(x, np.array(edge, np.int32), np.float32(-3e38))
        return self.tw.ops.max_pool(x, ksize=[1, size, size, 1], strides=[1, stride, stride, 1], padding="VALID")

    def relu(self, x):
        return self.tw.ops.relu(x)

    def flat(self, x):
        return x.reshape(x.shape[0], int(np.prod(x.shape[1:])))

    def dense(self, x, out):
        return self.tw.ops.bias_add(x @ self.weight((x.shape[1], out)), self.weight((out,), 0))

    def concat(self, parts):
        return self.tw.ops.concat_v2(parts, np.int32(3))

    def add(self, x, y):
        return x + y

    def norm(self, x):
        c = x.shape[3]
        return self.tw.ops.fused_batch_norm_v3(x, self.weight((c,), 1), self.weight((c,), 0), np.zeros(0, np.float32), np.zeros(0, np.float32),
                                               epsilon=1e-3, is_training=True).y

    def mean(self, x):
        return x.mean([1, 2])


def thalweg_step(loss_of, feeds, **options):
    """Returns a function that runs a step. loss_of(backend, values): builds the loss. options: options of the session."""
    import thalweg as tw
    with tw.Graph() as g, tw.device(DEVICE):
        b = Thalweg(tw)
        loss = loss_of(b, [tw.Variable(f).read() for f in feeds])
        step = tw.train.SGD(RATE).minimize(loss, b.weights)
        init = g.initializer()
    session = tw.Session(g, fallback="allow", container=next(CONTAINERS), **options)
    session.run(init)
    call = session.callable([loss], targets=[step])
    return lambda: call()[0]


def thalweg(network, batch, side, _precision):
    def loss_of(b, feeds):
        x, labels = feeds
        return b.tw.ops.sparse_softmax_cross_entropy_with_logits(network(b, x), labels).loss.mean()
    return thalweg_step(loss_of, images(batch, side))


class Torch:
    def __init__(self, torch):
        self.torch, self.f, self.weights, self.at, self.n = torch, torch.nn.functional, [], 0, 0

    def weight(self, shape, value=None, order=None):
        self.n += 1
        if self.at == len(self.weights):
            w = start(shape, self.n) if value is None else np.full(shape, value, np.float32)
            w = self.torch.tensor(w if order is None else np.ascontiguousarray(w.transpose(order)), device="cuda", requires_grad=True)
            self.weights.append(w)
        self.at += 1
        return self.weights[self.at - 1]

    def conv(self, x, out, size, stride, padding):
        w = self.weight((size, size, x.shape[1], out), order=(3, 2, 0, 1))
        return self.f.conv2d(x, w, self.weight((out,), 0), stride, padding)

    def pool(self, x, size, stride, padding):
        return self.f.max_pool2d(x, size, stride, padding)

    def relu(self, x):
        return self.torch.relu(x)

    def flat(self, x):
        return x.flatten(1)

    def dense(self, x, out):
        return self.torch.addmm(self.weight((out,), 0), x, self.weight((x.shape[1], out)))

    def concat(self, parts):
        return self.torch.cat(parts, 1)

    def add(self, x, y):
        return x + y

    def norm(self, x):
        c = x.shape[1]
        return self.f.batch_norm(x, None, None, self.weight((c,), 1), self.weight((c,), 0), training=True, eps=1e-3)

    def mean(self, x):
        return x.mean((2, 3))


def cuda_torch():
    try:
        import torch
    except ImportError as error:
        raise Missing(f"PyTorch: {error}") from None
    if not torch.cuda.is_available():
        raise Missing("PyTorch finds no GPU")
    return torch


def torch_step(loss_of, feeds, precision):
    torch = cuda_torch()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    b = Torch(torch)
    values = [torch.tensor(f.transpose(0, 3, 1, 2).copy() if f.ndim == 4 else f, device="cuda") for f in feeds]

    def step():
        b.at = b.n = 0
        loss = loss_of(b, values)
        loss.backward()
        with torch.no_grad():
            torch._foreach_add_(b.weights, [w.grad for w in b.weights], alpha=-RATE)
            for w in b.weights:
                w.grad = None
        return float(loss)  # waits
    return step


def torch(network, batch, side, precision):
    return torch_step(lambda b, feeds: b.f.cross_entropy(network(b, feeds[0]), feeds[1].long()), images(batch, side), precision)


class Jax:
    def __init__(self, jax, weights=None):
        self.jax, self.np, self.lax, self.weights, self.given, self.at = jax, jax.numpy, jax.lax, [], weights, 0

    def weight(self, shape, value=None):
        self.at += 1
        if self.given is not None:
            return self.given[self.at - 1]
        self.weights.append(self.np.asarray(start(shape, self.at) if value is None else np.full(shape, value, np.float32)))
        return self.weights[-1]

    def conv(self, x, out, size, stride, padding):
        y = self.lax.conv_general_dilated(x, self.weight((size, size, x.shape[3], out)), (stride, stride), [(padding, padding)] * 2,
                                          dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return y + self.weight((out,), 0)

    def pool(self, x, size, stride, padding):
        edge = ((0, 0), (padding, padding), (padding, padding), (0, 0))
        return self.lax.reduce_window(x, -np.inf, self.lax.max, (1, size, size, 1), (1, stride, stride, 1), edge)

    def relu(self, x):
        return self.np.maximum(x, 0)

    def flat(self, x):
        return x.reshape(x.shape[0], -1)

    def dense(self, x, out):
        return x @ self.weight((x.shape[1], out)) + self.weight((out,), 0)

    def concat(self, parts):
        return self.np.concatenate(parts, 3)

    def add(self, x, y):
        return x + y

    def norm(self, x):
        scale, offset = self.weight((x.shape[3],), 1), self.weight((x.shape[3],), 0)
        mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - mean) * (scale * self.lax.rsqrt(var + 1e-3)) + offset

    def mean(self, x):
        return x.mean((1, 2))


def jax(network, batch, side, precision):
    try:
        import jax as j
    except ImportError as error:
        raise Missing(f"JAX: {error}") from None
    if not any(d.platform == "gpu" for d in j.devices()):
        raise Missing("JAX finds no GPU")
    j.config.update("jax_default_matmul_precision", "tensorfloat32" if precision == "tf32" else "float32")
    x, labels = (j.numpy.asarray(f) for f in images(batch, side))
    first = Jax(j)
    network(first, x)

    def loss_of(weights):
        z = network(Jax(j, weights), x)
        return -j.nn.log_softmax(z)[j.numpy.arange(batch), labels].mean()

    @j.jit
    def update(weights):
        loss, slopes = j.value_and_grad(loss_of)(weights)
        return loss, [w - RATE * g for w, g in zip(weights, slopes)]

    state = [first.weights]

    def step():
        loss, state[0] = update(state[0])
        return float(loss)  # waits
    return step


ALL = {"Thalweg": thalweg, "PyTorch": torch, "JAX": jax}
