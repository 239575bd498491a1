"""Runs StableHLO's test data: programs in MLIR's text whose inputs and expected results are functions of the file. jaxlib makes a portable
artifact of each; Thalweg loads and runs it. A program without expected results takes random inputs and is compared with XLA; sizes that it
leaves open are then 4.

usage: stablehlo_testdata_peer.py [--only TEXT] [--list FILE] [--least N]
  --only   files whose path contains this text
  --list   writes the outcome of each file there
  --least  fails if fewer files pass; default 2300 for the whole folder
The environment variable THALWEG_STABLEHLO_TESTDATA names the folder `stablehlo/testdata` of https://github.com/openxla/stablehlo.
Results pass exactly for expect_eq, within 1e-3 for expect_almost_eq, as in StableHLO's interpreter, and for expect_close within 1e-5 of
float, 1e-11 of double, 2e-3 of half and 1e-2 of bfloat16, absolute below 1 and relative above. StableHLO's interpreter allows expect_close
3 units of the last place; how many files pass so is printed too.
Exit status: 0 enough pass, 1 not, 77 the folder is not there."""
import argparse
import collections
import os
import pathlib
import re
import sys
import tempfile
import traceback

import numpy as np
import thalweg as tw

LEAST = 2300
OPEN = 4  # every size that a program leaves open
CLOSE = {"float16": 2e-3, "bfloat16": 1e-2, "float64": 1e-11, "complex128": 1e-11}


class Skipped(Exception):
    """A file that jaxlib cannot turn into an artifact."""


def artifact(module):
    """Returns the bytes of a module. CHLO's ops become StableHLO's, as in jax.export."""
    from jax._src.lib import _jax
    from jaxlib.mlir.dialects import stablehlo
    return _jax.mlir.serialize_portable_artifact(module, stablehlo.get_current_version(), False)


def parsed(text):
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    context = mlir.make_ir_context()
    with context, ir.Location.unknown(context):
        try:
            return ir.Module.parse(text)
        except ir.MLIRError as error:
            raise Skipped("jaxlib cannot read it: " + str(error).split("\n")[1][:120]) from None


def function(module, name):
    return next(op for op in module.body.operations if op.operation.name == "func.func" and op.sym_name.value == name)


def returning_checks(module):
    """Makes main return what it checks: each pair of a result and what is expected. Returns the kinds of checks."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import func
    with module.context, ir.Location.unknown(module.context):
        main = function(module, "main")
        block = main.entry_block
        checks = [op for op in block.operations if op.operation.name == "stablehlo.custom_call" and op.call_target_name.value.startswith("check.")]
        kinds = [op.call_target_name.value[len("check."):] for op in checks]
        values = [value for op in checks for value in op.operands]
        list(block.operations)[-1].operation.erase()
        with ir.InsertionPoint(block):
            func.ReturnOp(values)
        for op in checks:
            op.operation.erase()
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], [v.type for v in values]))
        if "res_attrs" in main.attributes:
            del main.attributes["res_attrs"]
    return kinds


def wide(x):
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return x.astype(np.complex128)
    return x.astype(np.float64) if x.dtype.kind == "f" or x.dtype.name.startswith(("bfloat", "float8")) else x


def units(dtype):
    """The distance of 1 from the next number of this type."""
    name = np.dtype(dtype).name
    if name == "bfloat16":
        return 2.0**-7
    kinds = {"float16": 2.0**-10, "float32": 2.0**-23, "complex64": 2.0**-23}
    return kinds.get(name, 2.0**-52)


def close(got, expected, tolerance):
    """Whether all elements are within `tolerance`, absolute below 1 and relative above."""
    a, b = wide(got), wide(expected)
    if a.shape != b.shape or got.dtype != expected.dtype:
        return False
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    with np.errstate(all="ignore"):
        if a.dtype.kind == "c":
            return close_parts(a.real, b.real, tolerance) and close_parts(a.imag, b.imag, tolerance)
        return close_parts(a, b, tolerance)


def close_parts(a, b, tolerance):
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return bool(np.all(same | (np.abs(a - b) <= tolerance * np.maximum(1, np.abs(b)))))


def near(got, expected, ulps=3):
    """Whether all elements are within so many units of the last place."""
    a, b = wide(got), wide(expected)
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    with np.errstate(all="ignore"):
        bound = ulps * units(expected.dtype) * np.maximum(np.abs(b), np.finfo(np.float32).tiny)
        return bool(np.all((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= bound)))


def fits(kind, got, expected):
    if kind in ("expect_eq", "eq"):
        return close(got, expected, 0)
    if kind == "expect_almost_eq":
        return close(got, expected, 1e-3)
    return close(got, expected, CLOSE.get(expected.dtype.name, 1e-5))


def run(bytes_of_artifact, inputs=()):
    """Loads the artifact with Thalweg and returns main's results in order."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.mlirbc"
        path.write_bytes(bytes_of_artifact)
        model = tw.load(path)
        results = model(*inputs)
        return [np.array(results[port.name]) for port in model.signatures["main"].outputs]


def checked(module):
    """Runs a file with checks. Returns (passes, passes within units of the last place, text)."""
    kinds = returning_checks(module)
    if not kinds:
        raise Skipped("it checks nothing")
    results = run(artifact(module))
    pairs = list(zip(kinds, results[0::2], results[1::2]))
    for kind, got, expected in pairs:
        if not fits(kind, got, expected):
            a, b = wide(got), wide(expected)
            worst = float(np.nanmax(np.abs(a - b))) if a.shape == b.shape and a.size and a.dtype.kind != "b" else float("nan")
            return False, False, f"{kind}: {got.dtype}{list(got.shape)} differs by at most {worst:.3g}"
    return True, all(near(got, expected) for _, got, expected in pairs), ""


def with_xla(text):
    """Returns the artifact of a program without checks, random inputs, and XLA's results. Sizes that arguments leave open follow from the
    leading scalar arguments, which hold them: jax.export passes each dimension variable so. All of them are 4."""
    import ml_dtypes
    from jax._src.lib import _jax
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import func, stablehlo
    module = parsed(text)
    with module.context, ir.Location.unknown(module.context):
        main = function(module, "main")
        types = list(main.type.inputs)
        rng = np.random.default_rng(7)
        names = re.findall(r"tensor<([^>]*)>", " ".join(str(t) for t in types))
        leading = 0
        while leading < len(types) and str(types[leading]) in ("tensor<i64>", "tensor<i32>") and any("?" in n for n in names):
            leading += 1
        if leading == 0 and any("?" in n for n in names):
            raise Skipped("no argument gives the sizes that are open")
        inputs = []
        for i, t in enumerate(types):
            shaped = ir.RankedTensorType(t)
            element = str(shaped.element_type)
            dtype = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "ui32": np.uint32,
                     "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64, "complex<f32>": np.complex64}.get(element)
            if dtype is None:
                raise Skipped("an argument is " + element)
            if i < leading:
                inputs.append(np.array(OPEN, dtype))
                continue
            dims = [OPEN if shaped.is_dynamic_dim(axis) else shaped.get_dim_size(axis) for axis in range(shaped.rank)]
            values = rng.normal(size=dims) * (1 if np.dtype(dtype).kind in "fc" else 3)
            inputs.append(np.asarray(values).astype(dtype))
        program = artifact(module)
        # The wrapper: static arguments, converted to the declared types; then XLA refines all shapes.
        main.attributes["sym_name"] = ir.StringAttr.get("inner")
        main.attributes["sym_visibility"] = ir.StringAttr.get("private")
        static = [ir.RankedTensorType.get(x.shape, ir.RankedTensorType(t).element_type) for x, t in zip(inputs, types)]
        outs = list(main.type.results)
        with ir.InsertionPoint(module.body):
            wrapper = func.FuncOp("main", ir.FunctionType.get([s for i, s in enumerate(static) if i >= leading], outs), visibility="public")
            with ir.InsertionPoint(wrapper.add_entry_block()):
                arguments, given = [], list(wrapper.arguments)
                for i, t in enumerate(types):
                    if i < leading:
                        arguments.append(stablehlo.ConstantOp(ir.DenseElementsAttr.get(inputs[i], type=ir.RankedTensorType(t).element_type, shape=[])).result)
                    else:
                        arguments.append(stablehlo.ConvertOp(t, given[i - leading]).result)
                call = func.CallOp(outs, "inner", arguments)
                func.ReturnOp(call.results)
        refined = _jax.mlir.refine_polymorphic_shapes(str(module).encode(), enable_shape_assertions=True, validate_static_shapes=True)
    import jax
    from jax._src import compiler, xla_bridge
    from jax._src.lib import xla_client
    backend = xla_bridge.get_backend("cpu")
    with mlir_context() as context, ir.Location.unknown(context):
        again = ir.Module.parse(refined) if isinstance(refined, (str, bytes)) else refined
        options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
        loaded = compiler.backend_compile_and_load(backend, again, xla_client.DeviceList(tuple(backend.local_devices()[:1])), options, [])
        expected = [np.asarray(r[0]) for r in loaded.execute_sharded([jax.device_put(x) for x in inputs[leading:]]).disassemble_into_single_device_arrays()]
    return program, inputs, expected


def dynamic_peer(text):
    """Compares a program without checks with XLA. Returns what `checked` returns."""
    program, inputs, expected = with_xla(text)
    results = run(program, inputs)
    for got, want in zip(results, expected):
        if not fits("expect_close", got, want):
            return False, False, f"{got.dtype}{list(got.shape)} differs from XLA's {want.dtype}{list(want.shape)}"
    return True, all(near(g, w) for g, w in zip(results, expected)), ""


def mlir_context():
    from jax._src.interpreters import mlir
    return mlir.make_ir_context()


def outcome(path):
    text = path.read_text()
    if "!quant." in text:
        return "skipped", False, "jaxlib has no quantised types, so no artifact can be made"
    try:
        module = parsed(text)
        good, tight, why = checked(module) if "@check." in text else dynamic_peer(text)
        return ("passed" if good else "differs"), tight, why
    except Skipped as reason:
        return "skipped", False, str(reason)
    except tw.Error as error:
        return "refused", False, str(error)
    except Exception as error:  # a defect of this script or of jaxlib: reported as such, and never counted as a pass
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "broken", False, f"{type(error).__name__}: {str(error)[:200]} ({where.name}:{where.lineno})"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--only", default="")
    options.add_argument("--list", type=pathlib.Path)
    options.add_argument("--least", type=int)
    options = options.parse_args()
    folder = os.environ.get("THALWEG_STABLEHLO_TESTDATA", "")
    if not folder or not pathlib.Path(folder).is_dir():
        print("skipped: THALWEG_STABLEHLO_TESTDATA names no folder; it must be stablehlo/testdata of github.com/openxla/stablehlo")
        return 77
    import jax
    jax.config.update("jax_enable_x64", True)
    files = [p for p in sorted(pathlib.Path(folder).rglob("*.mlir")) if options.only in str(p.relative_to(folder))]
    counts, tight, lines, reasons = collections.Counter(), 0, [], collections.Counter()
    for path in files:
        state, is_tight, why = outcome(path)
        counts[state] += 1
        tight += is_tight
        lines.append(f"{state} {path.relative_to(folder)} {' '.join(why.split())[:400]}")
        if state != "passed":
            reasons[state + ": " + re.sub(r"[0-9]+", "N", why)[:160]] += 1
            print(lines[-1][:300], flush=True)
    if options.list:
        options.list.write_text("\n".join(lines) + "\n")
    for reason, count in reasons.most_common(40):
        print(f"{count:5} {reason}")
    print(f"{counts['passed']} of {len(files)} files pass ({tight} within 3 units of the last place); " +
          ", ".join(f"{n} {state}" for state, n in sorted(counts.items()) if state != "passed"))
    least = options.least if options.least is not None else (LEAST if not options.only else 1)
    return 0 if counts["passed"] >= least else 1


if __name__ == "__main__":
    sys.exit(main())
