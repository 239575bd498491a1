"""Writes artifacts.npz: files of jax.export and portable artifacts of StableHLO, with inputs and the results that JAX computes on them.

usage: make.py [FILE.npz]     needs jax and jaxlib; made with 0.10.2

The keys are NAME/file (the bytes), NAME/in/INPUT and NAME/out/OUTPUT. INPUT and OUTPUT are the names that a load gives them."""
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jaxlib.mlir.dialects import stablehlo

VERSIONS = ("0.9.0", "0.12.0", "0.14.0", "1.0.0", "1.9.0")  # of the bytecode: formats 0, 3, 4 and 6
rng = np.random.default_rng(5)


def floats(*shape, dtype=np.float32):
    return rng.normal(size=shape).astype(dtype)


def mlp(x, w, b):
    return {"y": jax.nn.softmax(jnp.tanh(x @ w + b)), "positive": x > 0}


def net(x, k, scale):
    h = lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    mean, variance = h.mean((0, 1, 2)), h.var((0, 1, 2))
    h = jax.nn.relu((h - mean) * lax.rsqrt(variance + 1e-5) * scale)
    return lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def attention(q, k, v):
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(4))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def recurrent(x, w):
    def step(c, row):
        c = jnp.tanh(c @ w + row)
        return c, c.sum()
    return lax.scan(step, jnp.zeros(3, jnp.float32), x)


def halvings(n):
    return lax.while_loop(lambda v: v[0] > 1, lambda v: (jnp.where(v[0] % 2 == 0, v[0] // 2, 3 * v[0] + 1), v[1] + 1), (n, 0))


def branches(i, x):
    return lax.switch(i, [jnp.sin, lambda v: v * 2, lambda v: v.sum() + v], x), lax.cond(x[0] > 0, jnp.negative, jnp.exp, x)


def picks(x, i):
    return {"take": x[i], "column": x[:, 1], "added": x.at[i].add(1.0), "set": x.at[0, 2].set(7.0), "top": lax.top_k(x, 2)[0]}


def order(x):
    return {"sorted": jnp.sort(x, axis=1), "places": jnp.argsort(x, axis=0), "sums": jnp.cumsum(x, axis=1), "best": jnp.argmax(x, axis=1)}


def drawn(key):
    return jax.random.normal(key, (3,)), jax.random.randint(key, (4,), 0, 10)


def solved(a, b):
    a = a @ a.T + 4 * jnp.eye(3, dtype=a.dtype)
    return {"factor": jnp.linalg.cholesky(a), "x": jnp.linalg.solve(a, b)}


def train(params, x, y):
    def loss(p):
        return jnp.mean((jax.nn.relu(x @ p["layers"][0]["w"] + p["layers"][0]["b"]) @ p["out"] - y) ** 2)
    value, grads = jax.value_and_grad(loss)(params)
    return {"loss": value, "params": jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)}


def special(x):
    return jax.scipy.special.erf(x), jax.scipy.special.gammaln(jnp.abs(x) + 1), jnp.fft.fft(x), x.astype(jnp.bfloat16).astype(jnp.float32)


def rows(x, w):
    return {"y": jnp.sin(x) @ w, "flat": x.reshape(-1), "mean": x.mean(0), "twice": jnp.concatenate([x, x])}


def spelled(x):
    return lax.platform_dependent(x, cpu=lambda v: v + 1.0, cuda=lambda v: v + 2.0)


def bits(a, b):
    return {"and": a & b, "shift": a >> 1, "rest": a % b, "ones": lax.population_count(a), "wide": a.astype(jnp.int64 if jax.config.x64_enabled else jnp.int32)}


CASES = {  # a function and its arguments
    "mlp": (mlp, (floats(4, 3), floats(3, 5), floats(5))),
    "net": (net, (floats(1, 6, 6, 2), floats(3, 3, 2, 4), floats(4))),
    "attention": (attention, (floats(2, 3, 2, 4), floats(2, 5, 2, 4), floats(2, 5, 2, 4))),
    "recurrent": (recurrent, (floats(5, 3), floats(3, 3))),
    "halvings": (halvings, (np.int32(27),)),
    "branches": (branches, (np.int32(2), floats(3))),
    "picks": (picks, (floats(4, 3), np.array([2, 0, 2], np.int32))),
    "order": (order, (floats(3, 5),)),
    "drawn": (drawn, (np.array([0, 42], np.uint32),)),
    "solved": (solved, (floats(3, 3), floats(3, 2))),
    "train": (train, ({"layers": [{"w": floats(3, 4), "b": floats(4)}], "out": floats(4, 2)}, floats(6, 3), floats(6, 2))),
    "special": (special, (floats(8),)),
    "bits": (bits, (np.array([13, 7, 255], np.uint8), np.array([6, 2, 9], np.uint8))),
    "complex": (lambda z, w: (z * w, jnp.abs(z), jnp.exp(w)), (floats(3) + 1j * floats(3), floats(3) - 1j * floats(3))),
}


def plain(path):
    """A path of a pytree as a load names it: ['a'][0] is a.0."""
    return ".".join(str(getattr(k, "key", getattr(k, "idx", getattr(k, "name", k)))) for k in path)


def record(into, name, file, function, arguments):
    """Puts a file, what it is fed and what JAX computes into the archive."""
    names = function.__code__.co_varnames[:function.__code__.co_argcount]
    into[f"{name}/file"] = np.frombuffer(bytes(file), np.uint8)
    for argument, value in zip(names, arguments):
        for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]:
            into[f"{name}/in/{'.'.join(filter(None, (argument, plain(path))))}"] = np.asarray(leaf)
    for i, (path, leaf) in enumerate(jax.tree_util.tree_flatten_with_path(jax.jit(function)(*arguments))[0]):
        said = plain(path)
        into[f"{name}/out/{said if said and not said.isdigit() else f'output{i}'}"] = np.asarray(leaf)


def shapes(arguments):
    return jax.tree.map(lambda v: jax.ShapeDtypeStruct(np.shape(v), np.asarray(v).dtype), arguments)


def main():
    into = {}
    for name, (function, arguments) in CASES.items():
        arguments = jax.tree.map(lambda v: v.astype(np.complex64) if np.iscomplexobj(v) else v, arguments)
        record(into, name, export.export(jax.jit(function))(*shapes(arguments)).serialize(), function, arguments)
    # One file for any number of rows, and for two kinds of devices.
    batch = export.symbolic_shape("b, 3")
    many = export.export(jax.jit(rows))(jax.ShapeDtypeStruct(batch, np.float32), jax.ShapeDtypeStruct((3, 2), np.float32))
    w = floats(3, 2)
    for size in (2, 5):
        record(into, f"rows{size}", many.serialize() if size == 2 else b"", rows, (floats(size, 3), w))
    two = export.export(jax.jit(spelled), platforms=("cuda", "cpu"))(jax.ShapeDtypeStruct((3,), np.float32))
    record(into, "platforms", two.serialize(), spelled, (floats(3),))
    # Modules alone, as older versions wrote them.
    function, arguments = CASES["mlp"]
    text = str(export.export(jax.jit(function))(*shapes(arguments)).mlir_module())
    for version in VERSIONS:
        file = stablehlo.serialize_portable_artifact_str(text, version)
        record(into, "mlp_" + version.replace(".", "_"), file, function, arguments)
    to = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "artifacts.npz")
    np.savez_compressed(to, **into)
    print(f"{to}: {len([k for k in into if k.endswith('/file')])} files, {to.stat().st_size} bytes")


if __name__ == "__main__":
    main()
