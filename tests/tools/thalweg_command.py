"""Shared by the tests of the `thalweg` command: functions that run it, small graphs, and a main function."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback

PROGRAMS = pathlib.Path(sys.argv[1])
THALWEG = PROGRAMS / "thalweg"


def run_both(*arguments, status=0, environment=None):
    """Runs the command. Returns standard output and standard error."""
    done = subprocess.run([str(THALWEG), *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **(environment or {})})
    assert done.returncode == status, f"exit status {done.returncode} instead of {status}: {done.stdout}{done.stderr}"
    return done.stdout, done.stderr


def run(*arguments, status=0, environment=None):
    """Runs the command. Returns standard output or, if `status` is not 0, standard error, which must not be empty."""
    out, error = run_both(*arguments, status=status, environment=environment)
    assert (status == 0) == (error == ""), f"standard error: {error}"
    return out if status == 0 else error


# ---- Some messages of GraphDef, encoded by hand, so that the test needs no protobuf ----

def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, payload):
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def node(name, op, *inputs, **attrs):
    message = field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs)
    return field(1, message + b"".join(field(5, field(1, key) + field(2, value)) for key, value in attrs.items()))


def dtype(number):
    return field(6, number)


FLOAT, INT32, STRING = dtype(1), dtype(3), dtype(7)


def shape(*dims):
    return field(7, b"".join(field(2, field(1, d & (2**64 - 1)) if d else b"") for d in dims))


# y = -x for vectors of any length, and a string and an integer that are passed through.
GRAPH = (node("x", "Placeholder", dtype=FLOAT, shape=shape(-1)) + node("y", "Neg", "x") +
         node("t", "Placeholder", dtype=STRING, shape=shape()) + node("same", "Identity", "t") +
         node("i", "Placeholder", dtype=INT32) + node("j", "Identity", "i"))


def files(folder):
    graph = pathlib.Path(folder) / "graph.pb"
    graph.write_bytes(GRAPH)
    return graph


def run_tests(tests):
    """Runs every function whose name begins with test_, each with a folder of its own. Returns the exit status."""
    failed = 0
    for name, test in [(n, f) for n, f in tests.items() if n.startswith("test_")]:
        work = tempfile.mkdtemp()
        try:
            test(work)
            print("passed ", name)
        except Exception:
            failed += 1
            print("FAILED ", name)
            traceback.print_exc(file=sys.stdout)
        finally:
            shutil.rmtree(work)
    return int(failed > 0)
