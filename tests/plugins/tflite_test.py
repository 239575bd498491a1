"""Loads TensorFlow Lite files and compares with what TensorFlow's interpreter computed when tflite/make.py wrote them; then loads damaged
files, files beyond the limits and files of operators that are unknown, which must fail with a message.

usage: tflite_test.py
Exit status: 0 all is well, 1 not."""
import pathlib
import sys
import tempfile

import numpy as np
import thalweg as tw

import model_cases

FOLDER = pathlib.Path(__file__).parent / "tflite"
ARCHIVES = [FOLDER / name for name in ("operators.npz", "nets.npz")]


def allowed(name):
    """Models with quantised values are computed in real numbers, rounded at each tensor: results may be a step of the last tensor off."""
    return (1, 1.5 / 128) if name.endswith("_int8") else ()


def damaged(folder):
    """Loads files that end early or have a bit changed. Returns 1 if one fails without a message or if too few fail, else 0."""
    cases = model_cases.cases(ARCHIVES)
    failed, bad = model_cases.damaged([cases[name]["file"] for name in ("image", "loop", "lstm_false", "conv_2d_int8")], folder)
    return bool(bad) + (failed < 60)


def said(call, part):
    """Returns 0 if the call fails with a message that has the part, else 1."""
    try:
        call()
        text = "nothing"
    except tw.Error as e:
        text = str(e)
    if part in text:
        return 0
    print(f"an error says '{text}' without '{part}'")
    return 1


def messages(folder):
    """What errors say. Returns how many do not."""
    bad, file = 0, folder / "message.bin"
    cases, limits = model_cases.cases(ARCHIVES), np.load(FOLDER / "limits.npz")
    image = cases["image"]["file"]
    for data, part in ((image[:2000], "is damaged at byte"), (image[:4] + b"TFL2" + image[8:], "no importer recognises"),
                       (limits["unknown"].tobytes(), "HASHTABLE_LOOKUP (1)"), (limits["unknown"].tobytes(), "custom operator 'Resample' (2)"),
                       (limits["version"].tobytes(), "version 4"), (limits["bytes"].tobytes(), "has 12 bytes; its shape [2, 2] of float needs 16"),
                       (limits["two"].tobytes(), "DEPTHWISE_CONV_2D 'y0'"), (limits["two"].tobytes(), "SPLIT 'y1'"),
                       (limits["itself"].tobytes(), "nested more than 64 deep"), (limits["names"].tobytes(), "together are too long"),
                       (limits["made"].tobytes(), "more than eight times"), (limits["state"].tobytes(), "before an operator makes it")):
        file.write_bytes(data)
        bad += said(lambda: tw.load(file), part)
    return bad


def signatures(folder):
    """A file with two signatures has both, and the first one is the default. A changed batch needs no second load. Returns how many checks
    fail."""
    file = folder / "two.bin"
    file.write_bytes(model_cases.cases(ARCHIVES)["two_signatures"]["file"])
    model = tw.load(file)
    bad = int(sorted(model.signatures) != ["double", "total"])
    bad += np.asarray(model.run({"x": np.ones(3, np.float32)}, signature="total")["sum"]) != 3
    for batch in (1, 5):
        bad += np.asarray(model(x=np.ones((batch, 2), np.float32))["twice"]).tolist() != [[2.0, 2.0]] * batch
    # A name that is no UTF-8 is shown with question marks.
    file.write_bytes(model_cases.cases(ARCHIVES)["two_signatures"]["file"].replace(b"twice", b"tw\xc8\x01e"))
    bad += [port.name for port in tw.load(file).signatures["double"].outputs] != ["tw??e"]
    print(f"{bad} checks of signatures fail")
    return int(bad)


def sparse(folder):
    """A constant without its zeros, with blocks and without, is read with them. Returns how many checks fail."""
    bad, data, file = 0, np.load(FOLDER / "limits.npz"), folder / "sparse.bin"
    for name in ("rows", "blocks"):
        file.write_bytes(data[f"sparse_{name}"].tobytes())
        x = np.eye(4, dtype=np.float32)
        got = np.asarray(tw.load(file).run({"x0": x})["y0"])
        if not np.array_equal(got, data["dense"].T):
            print(f"a sparse constant of {name} is {got.T.tolist()}, not {data['dense'].tolist()}")
            bad += 1
    return bad


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        bad = model_cases.compare(ARCHIVES, folder, allowed) + damaged(folder) + messages(folder) + signatures(folder) + sparse(folder)
        return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
