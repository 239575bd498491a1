"""Loads SavedModels of jax2tf and compares with what TensorFlow computed when savedmodel/make_xla.py wrote them; then a model whose module
is damaged, which must fail with a message.

usage: savedmodel_xla_test.py
Exit status: 0 all is well, 1 not."""
import pathlib
import sys
import tempfile

import numpy as np
import thalweg as tw

import model_cases

ARCHIVE = pathlib.Path(__file__).parent / "savedmodel" / "xla.npz"


def written(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def main():
    data, cases, bad = np.load(ARCHIVE), {}, 0
    for key in data.files:
        name, part, rest = key.split("/", 2)
        case = cases.setdefault(name, {"file": {}, "in": {}, "out": {}})
        case[part][rest] = data[key].tobytes() if part == "file" else data[key]
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for name, case in cases.items():
            problems = list(model_cases.differences(tw.load(written(root / name, case["file"])).run(case["in"]), case["out"]))
            print(f"{name}: {'; '.join(problems) or 'equal'}")
            bad += bool(problems)
        # An open size serves other batches.
        model = tw.load(root / "mlp")
        bad += np.asarray(model(x=np.ones((2, 4), np.float32))["y"]).shape != (2, 3)
        # Bytes of the module that are no op of any version.
        files = dict(cases["net"]["file"])
        files["saved_model.pb"] = files["saved_model.pb"].replace(b"convolution_v", b"convolutiom_v")
        try:
            tw.load(written(root / "damaged", files))
            said = "nothing"
        except tw.Error as e:
            said = str(e)
        if "XlaCallModule '" not in said or "convolutiom" not in said:
            print(f"an error says '{said}'")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
