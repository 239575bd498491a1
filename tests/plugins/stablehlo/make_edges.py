"""Writes edges.npz: small exports of JAX whose inputs are at the edges of what the ops define, with the results that JAX computes, and two
files for the limits of the importer.

usage: make_edges.py [FILE.npz]     needs jax and jaxlib; made with 0.10.2

The keys are those of artifacts.npz. Beside them, `limits/calls` is a module whose functions call each other twice, 26 deep, and
`limits/shapes` is an export whose second input must have 2*b + 1 elements if the first one has b."""
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jaxlib.mlir.dialects import stablehlo

import make

LEVELS = 26
F = np.float32
SPECIALS = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5], F)


def largest(x):
    return dict(zip(("values", "places"), lax.top_k(x, x.shape[-1])))


def beyond(x, i):
    axes = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1))
    part = lax.gather(x, i, axes, (2, 3), mode=lax.GatherScatterMode.CLIP)
    return {"gathered": part, "sliced": lax.dynamic_slice(x, (i[0, 0], i[0, 1]), (2, 3))}


def reduced(x):
    def step(p, q):
        return jnp.where(p > q, p * 0.5, q)     # jnp.where is a call of a function
    return {"y": lax.reduce(x, F(1), step, (1,))}


def switched(i, x):
    return {"y": lax.switch(i, [lambda x, k=k: x * F(k) for k in range(100)], x)}


X = np.arange(15, dtype=F).reshape(3, 5)
CASES = {
    "largest": (largest, (SPECIALS,)),
    "largest_rows": (largest, (np.array([[np.inf, -np.inf, 3, -np.inf], [0, -0.0, 0, -1]], F),)),
    "beyond_unsigned": (beyond, (X, np.array([[2**64 - 1, 1], [0, 2**63]], np.uint64))),
    "reduced_by_calls": (reduced, (X,)),
    "switch_of_100": (switched, (np.int32(77), X)),
    "switch_outside": (switched, (np.int32(-3), X)),
}


def calls():
    """Returns a module that stands for 2^26 calls."""
    text = ["func.func private @f0(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"]
    for i in range(1, LEVELS):
        call = f"func.call @f{i - 1}"
        text.append(f"func.func private @f{i}(%x: tensor<f32>) -> tensor<f32> {{\n%a = {call}(%x) : (tensor<f32>) -> tensor<f32>\n"
                    f"%b = {call}(%a) : (tensor<f32>) -> tensor<f32>\nreturn %b : tensor<f32>\n}}")
    text.append(f"func.func @main(%x: tensor<f32>) -> tensor<f32> {{\n%a = func.call @f{LEVELS - 1}(%x) : (tensor<f32>) -> tensor<f32>\n"
                "return %a : tensor<f32>\n}")
    return stablehlo.serialize_portable_artifact_str("module {\n" + "\n".join(text) + "\n}", "1.9.0")


def main():
    jax.config.update("jax_enable_x64", True)
    into = {}
    for name, (function, arguments) in CASES.items():
        make.record(into, name, export.export(jax.jit(function))(*make.shapes(arguments)).serialize(), function, arguments)
    into["limits/calls"] = np.frombuffer(calls(), np.uint8)
    b, more = export.symbolic_shape("b, 2*b + 1")
    # Any sizes fit the computation itself, so nothing but the check of sizes can fail.
    checked = export.export(jax.jit(lambda x, y: {"z": jnp.sum(x) + jnp.sum(y)}))(
        jax.ShapeDtypeStruct((b,), F), jax.ShapeDtypeStruct((more,), F))
    into["limits/shapes"] = np.frombuffer(bytes(checked.serialize()), np.uint8)
    to = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "edges.npz")
    np.savez_compressed(to, **into)
    print(f"{to}: {to.stat().st_size} bytes")


if __name__ == "__main__":
    main()
