"""Loads files of jax.export and portable artifacts of StableHLO and compares with what JAX computed when stablehlo/make.py and make_edges.py
wrote them; then loads damaged files and files beyond the limits, which must fail with a message.

usage: stablehlo_test.py
Exit status: 0 all is well, 1 not."""
import pathlib
import sys
import tempfile

import numpy as np
import thalweg as tw

ARCHIVES = [pathlib.Path(__file__).parent / "stablehlo" / name for name in ("artifacts.npz", "edges.npz")]
EXACT = "biu?"      # kinds of elements that must be equal
TOLERANCE = 2e-5    # of the largest expected element, for real and complex numbers


def cases():
    """Returns the cases by name: bytes of the file, inputs, outputs. A case without bytes uses those of the case before."""
    found = {}
    for key, value in ((key, data[key]) for data in map(np.load, ARCHIVES) for key in data.files if not key.startswith("limits/")):
        name, part, *rest = key.split("/", 2)
        case = found.setdefault(name, {"file": b"", "in": {}, "out": {}})
        if part == "file":
            case["file"] = value.tobytes()
        else:
            case[part][rest[0]] = value
    before = b""
    for case in found.values():
        before = case["file"] = case["file"] or before
    return found


def differences(got, expected):
    """Yields what is wrong with the outputs."""
    if set(got) != set(expected):
        yield f"outputs are {sorted(got)}, not {sorted(expected)}"
        return
    for key, wanted in expected.items():
        value = np.asarray(got[key])
        if value.shape != wanted.shape or value.dtype != wanted.dtype:
            yield f"'{key}' is {value.dtype}{list(value.shape)}, not {wanted.dtype}{list(wanted.shape)}"
        elif wanted.dtype.kind in EXACT:
            if not np.array_equal(value, wanted):
                yield f"'{key}' differs"
        else:
            finite = np.isfinite(wanted)
            if not np.array_equal(value[~finite], wanted[~finite], equal_nan=True):
                yield f"'{key}' has other infinities or NaNs"
                continue
            scale = max(1.0, float(np.abs(wanted[finite]).max(initial=0)))
            error = float(np.abs(value.astype(np.complex128)[finite] - wanted[finite]).max(initial=0)) / scale
            if not error <= TOLERANCE:
                yield f"'{key}' differs by {error:.1e}"


def compare(folder):
    """Runs all cases. Returns how many differ."""
    bad = 0
    for name, case in cases().items():
        file = folder / f"{name}.bin"  # no importer knows this ending
        file.write_bytes(case["file"])
        try:
            problems = list(differences(tw.load(file).run(case["in"]), case["out"]))
        except Exception as e:  # every failure of a case is a finding, and the others still run
            problems = [f"{type(e).__name__}: {e}"]
        print(f"{name}: {'; '.join(problems) or 'equal'}")
        bad += bool(problems)
    return bad


def damaged(folder):
    """Loads files that end early or have a byte changed. Each must load or fail with a message. Returns how many do neither."""
    bad, rng, file, failed = 0, np.random.default_rng(7), folder / "damaged.bin", 0
    for name in ("mlp", "recurrent", "mlp_0_9_0", "mlp_1_9_0"):
        whole = cases()[name]["file"]
        cut = [whole[:n] for n in rng.integers(5, len(whole), 12)]
        changed = []
        for at in rng.integers(4, len(whole), 40):
            one = bytearray(whole)
            one[at] ^= 1 << rng.integers(8)
            changed.append(bytes(one))
        for data in cut + changed:
            file.write_bytes(data)
            try:
                tw.load(file)
            except tw.Error as e:
                failed += 1
                bad += not str(e)
    print(f"{failed} damaged files were refused")
    return bad + (failed < 60)


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
        return 1 if compare(folder) + damaged(folder) + messages(folder) + limits(folder) else 0


if __name__ == "__main__":
    sys.exit(main())
