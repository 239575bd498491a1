"""Exports modules of PyTorch as ONNX files by both exporters of torch.onnx, each with PyTorch's own answers.

usage: torch_exports.py FOLDER [NAME[.dynamo | .script] ...]
FOLDER/NAME.EXPORTER/model.onnx, and inputs.npz, outputs.npz: inputs and outputs in the order of the file, by its names, at the batch of the export;
inputs1.npz, outputs1.npz: at another batch, where the export has a dynamic one. Without NAME: all models by both exporters.
An export that is there already is kept. Exit status: 0, or 1 if an export failed; each is tried."""
import os
import pathlib
import sys
import traceback
import warnings

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
warnings.filterwarnings("ignore")

import numpy as np
import torch

import torch_models


def other_batch(values, axes):
    """Returns the inputs at a batch of three and, where the second size is dynamic, at one size less of it; None without dynamic sizes."""
    if not any(axes):
        return None
    out = []
    for v, dynamic in zip(values, axes):
        if 0 in dynamic:
            v = torch.cat([v, v[:1] if v.dtype.is_floating_point is False else v[:1] * 0.5])[:3]
            v = torch.cat([v, v])[:3]
        if 1 in dynamic:
            v = v[:, :-1]
        out.append(v.contiguous())
    return tuple(out)


def flat(value):
    return [v.detach().numpy() for v in (value if isinstance(value, (tuple, list)) else (value,))]


def make(folder, name, exporter):
    torch.manual_seed(1)
    module, inputs, axes = torch_models.MODELS[name]()
    file = folder / "model.onnx"
    names = [f"in{i}" for i in range(len(inputs))]
    if exporter == "dynamo":
        sizes = {}
        shapes = tuple({a: sizes.setdefault(n, torch.export.Dim(n)) if n != "batch" else torch.export.Dim.DYNAMIC for a, n in dynamic.items()} for dynamic in axes)
        shapes = tuple({a: torch.export.Dim.DYNAMIC for a in dynamic} for dynamic in axes)
        shapes = {"values": shapes} if isinstance(module, torch_models.Named) else shapes
        torch.onnx.export(module, inputs, str(file), input_names=names, dynamic_shapes=shapes if any(axes) else None, dynamo=True, external_data=False,
                          verbose=False)
    else:
        torch.onnx.export(module, inputs, str(file), input_names=names, dynamic_axes={n: a for n, a in zip(names, axes) if a} or None, dynamo=False,
                          opset_version=17, verbose=False)
    import onnx
    graph = onnx.load(str(file), load_external_data=False).graph
    ins, outs = [v.name for v in graph.input], [v.name for v in graph.output]
    with torch.no_grad():
        cases = [("", inputs)]
        again = other_batch(inputs, axes)
        if again:
            cases.append(("1", again))
        for suffix, given in cases:
            got = flat(module(*given))
            np.savez(folder / f"inputs{suffix}.npz", **dict(zip(ins, flat(given))))
            np.savez(folder / f"outputs{suffix}.npz", **dict(zip(outs, got)))


def main(out, names):
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    bad = 0
    wanted = []
    for name in names or torch_models.MODELS:
        base, _, exporter = name.partition(".")
        wanted += [(base, e) for e in ([exporter] if exporter else ("script", "dynamo"))]
    for name, exporter in wanted:
        folder = pathlib.Path(out) / f"{name}.{exporter}"
        if (folder / "outputs.npz").is_file():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        try:
            make(folder, name, exporter)
            print(f"{name}.{exporter}: exported", flush=True)
        except Exception:
            bad += 1
            print(f"{name}.{exporter}: not exported\n{traceback.format_exc()[-1500:]}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
