"""Writes xla.npz: SavedModels of jax2tf, whose graphs call StableHLO modules, with inputs and the results of TensorFlow.

usage: make_xla.py [FILE.npz]     needs jax and tensorflow; made with 0.10.2 and 2.21

The keys are NAME/file/PATH (a file of the SavedModel), NAME/in/INPUT and NAME/out/OUTPUT."""
import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax
from jax.experimental import jax2tf

rng = np.random.default_rng(13)


def floats(*shape):
    return rng.normal(size=shape).astype(np.float32)


def mlp(p, x):
    h = jax.nn.gelu(x @ p["w"] + p["b"])
    return {"y": jax.nn.softmax(h @ p["v"]), "norm": jnp.sqrt(jnp.sum(h * h, -1))}


def net(p, x):
    h = lax.conv_general_dilated(x, p["k"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return {"y": lax.reduce_window(jax.nn.relu(h), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")}


def scanned(p, x):
    last, all_ = lax.scan(lambda c, row: (jnp.tanh(c @ p["w"] + row),) * 2, jnp.zeros(x.shape[-1]), x)
    return {"last": last, "all": all_}


def checked(p, x):
    return {"y": (x.reshape((-1, 3)) * p["s"]).sum(0)}


def programs():
    """Yields name, function, variables, the symbolic shape of x (None: as it is), x, and options of the conversion."""
    yield "mlp", mlp, {"w": floats(4, 6), "b": floats(6), "v": floats(6, 3)}, "(b, 4)", floats(5, 4), {}
    yield "net", net, {"k": floats(3, 3, 2, 3)}, None, floats(2, 6, 6, 2), {}
    yield "scanned", scanned, {"w": floats(3, 3)}, None, floats(4, 3), {}
    yield "checked", checked, {"s": np.float32(0.5)}, "(3*b, )", floats(9), {}
    yield "platforms", mlp, {"w": floats(4, 2), "b": floats(2), "v": floats(2, 2)}, None, floats(3, 4), {"native_serialization_platforms": ("tpu", "cpu")}


def saved(folder, f, variables, shape, x, options):
    """Writes the SavedModel and returns its results on x."""
    module = tf.Module()
    module.variables_ = {key: tf.Variable(value) for key, value in variables.items()}
    converted = jax2tf.convert(f, polymorphic_shapes=[None, shape], with_gradient=False, **options)
    spec = tf.TensorSpec([None if shape and "b" in axis else int(axis) for axis in shape.strip("()").replace(" ", "").strip(",").split(",")]
                         if shape else x.shape, tf.float32, name="x")
    module.f = tf.function(lambda x: converted(module.variables_, x), input_signature=[spec], autograph=False)
    tf.saved_model.save(module, folder, signatures={"serving_default": module.f.get_concrete_function()})
    return {key: value.numpy() for key, value in tf.saved_model.load(folder).signatures["serving_default"](x=x).items()}


def main():
    arrays = {}
    for name, f, variables, shape, x, options in programs():
        with tempfile.TemporaryDirectory() as folder:
            results = saved(folder, f, variables, shape, x, options)
            root = pathlib.Path(folder)
            for path in sorted(p for p in root.rglob("*") if p.is_file() and p.name != "fingerprint.pb"):
                arrays[f"{name}/file/{path.relative_to(root)}"] = np.frombuffer(path.read_bytes(), np.uint8)
        arrays[f"{name}/in/x"] = x
        arrays.update({f"{name}/out/{key}": value for key, value in results.items()})
    np.savez_compressed(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "xla.npz", **arrays)


if __name__ == "__main__":
    main()
