"""Loads files of jax.export and portable artifacts of StableHLO and compares with what JAX computed when stablehlo/make.py and make_edges.py
wrote them; then loads damaged files and files beyond the limits, which must fail with a message.

usage: stablehlo_test.py
Exit status: 0 all is well, 1 not."""
import pathlib
import sys
import tempfile

import numpy as np
import thalweg as tw

import model_cases

ARCHIVES = [pathlib.Path(__file__).parent / "stablehlo" / name for name in ("artifacts.npz", "edges.npz")]


def cases():
    return model_cases.cases(ARCHIVES)


def damaged(folder):
    """Loads files that end early or have a byte changed. Returns 1 if one fails without a message or if too few fail, else 0."""
    failed, bad = model_cases.damaged([cases()[name]["file"] for name in ("mlp", "recurrent", "mlp_0_9_0", "mlp_1_9_0")], folder)
    return bool(bad) + (failed < 60)


def messages(folder):
    """What errors say: the byte of damage, and the newest version. Returns how many do not."""
    bad, file = 0, folder / "message.bin"
    module = cases()["mlp_1_9_0"]["file"]
    for data, part in ((module[:200], "is damaged at byte"), (module.replace(b"StableHLO_v1.9.0", b"StableHLO_v9.9.0"), "versions up to 1.20"),
                       (module.replace(b"broadcast_in_dim_v1", b"broadcast_in_din_v1"), "broadcast_in_din")):
        file.write_bytes(data)
        try:
            tw.load(file)
            said = "nothing"
        except tw.Error as e:
            said = str(e)
        if part not in said:
            print(f"an error says '{said}' without '{part}'")
            bad += 1
    return bad


def limits(folder):
    """Loads a module whose functions call each other 2^26 times, and runs an export whose inputs do not fit each other. Returns how many
    checks fail."""
    bad, file, data = 0, folder / "limits.bin", np.load(ARCHIVES[1])

    def said(call, part):
        try:
            call()
            text = "nothing"
        except tw.Error as e:
            text = str(e)
        if part in text:
            return 0
        print(f"an error says '{text}' without '{part}'")
        return 1
    file.write_bytes(data["limits/calls"].tobytes())
    bad += said(lambda: tw.load(file), "counted once for each call")
    file.write_bytes(data["limits/shapes"].tobytes())
    model, x = tw.load(file), np.ones(3, np.float32)
    if np.asarray(model(x, np.ones(7, np.float32))["z"]) != 10:
        print("an export with a checked shape computes other values")
        bad += 1
    bad += said(lambda: model(x, np.zeros(8, np.float32)), "Found inconsistency between dimension size args[1].shape[0] (= ")
    return bad


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        return 1 if model_cases.compare(ARCHIVES, folder) + damaged(folder) + messages(folder) + limits(folder) else 0


if __name__ == "__main__":
    sys.exit(main())
