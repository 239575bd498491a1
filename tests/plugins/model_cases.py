"""Cases of importers in npz archives: files of models, inputs, and the outputs that another implementation gave for them.

The keys of an archive are NAME/file (the bytes), NAME/in/INPUT and NAME/out/OUTPUT. A case without bytes uses those of the case before."""
import numpy as np
import thalweg as tw

EXACT = "biu?"      # kinds of elements that must be equal
TOLERANCE = 2e-5    # of the largest expected element, for real and complex numbers


def cases(archives):
    """Returns the cases by name: bytes of the file, inputs, outputs."""
    found = {}
    for key, value in ((key, data[key]) for data in map(np.load, archives) for key in data.files if not key.startswith("limits/")):
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


def differences(got, expected, steps=0, tolerance=TOLERANCE):
    """Yields what is wrong with the outputs. steps: how far integers may be apart. tolerance: of the largest expected real element."""
    if set(got) != set(expected):
        yield f"outputs are {sorted(got)}, not {sorted(expected)}"
        return
    for key, wanted in expected.items():
        value = np.asarray(got[key])
        if value.shape != wanted.shape or value.dtype != wanted.dtype:
            yield f"'{key}' is {value.dtype}{list(value.shape)}, not {wanted.dtype}{list(wanted.shape)}"
        elif wanted.dtype.kind in EXACT:
            if steps and np.abs(value.astype(np.int64) - wanted.astype(np.int64)).max(initial=0) > steps:
                yield f"'{key}' differs by more than {steps}"
            elif not steps and not np.array_equal(value, wanted):
                yield f"'{key}' differs"
        else:
            finite = np.isfinite(wanted)
            if not np.array_equal(value[~finite], wanted[~finite], equal_nan=True):
                yield f"'{key}' has other infinities or NaNs"
                continue
            scale = max(1.0, float(np.abs(wanted[finite]).max(initial=0)))
            error = float(np.abs(value.astype(np.complex128)[finite] - wanted[finite]).max(initial=0)) / scale
            if not error <= tolerance:
                yield f"'{key}' differs by {error:.1e}"


def compare(archives, folder, allowed=lambda name: ()):
    """Loads and runs all cases. allowed: the last arguments of `differences` for a case. Returns how many differ."""
    bad = 0
    for name, case in cases(archives).items():
        file = folder / f"{name}.bin"  # no importer knows this ending
        file.write_bytes(case["file"])
        try:
            problems = list(differences(tw.load(file).run(case["in"]), case["out"], *allowed(name)))
        except Exception as e:  # every failure of a case is a finding, and the others still run
            problems = [f"{type(e).__name__}: {e}"]
        print(f"{name}: {'; '.join(problems) or 'equal'}")
        bad += bool(problems)
    return bad


def damaged(files, folder, changes=40):
    """Loads parts of the files, and the files with a bit changed. Each must load or fail with a message. Returns how many were refused
    with a message, and how many without one."""
    rng, file, failed, bad = np.random.default_rng(7), folder / "damaged.bin", 0, 0
    for whole in files:
        cut = [whole[:n] for n in rng.integers(5, len(whole), 12)]
        changed = []
        for at in rng.integers(4, len(whole), changes):
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
    return failed, bad
