"""Measures the memory of ops beyond their inputs and outputs: each case runs in a process of its own, whose peak size is checked; then it
runs with too little memory. `memory_test.py CASE` runs one case."""
import resource
import subprocess
import sys

import numpy as np

import cases
import tw

MIB = 1 << 20
rng = np.random.default_rng(29)
some = rng.integers(0, 1 << 24, 1000)
none = np.zeros(0, np.float32)


def bincount():
    return "Bincount", [some.astype(np.int32), np.int32(1 << 25), none], {}, np.bincount(some, minlength=1 << 25)


def segments():
    grad, ids = rng.normal(size=(1000, 1)).astype(np.float32), np.arange(1000, dtype=np.int32)
    wanted = np.bincount(some, grad[:, 0], 1 << 24)[:, None]
    return "SparseSegmentSumGrad", [grad, some.astype(np.int32), ids, np.int32(1 << 24)], {}, wanted


def top_k():
    row = rng.random(1 << 24, np.float32)
    return "TopKV2", [row, np.int32(5)], {}, np.sort(np.partition(row, -5)[-5:])[::-1]


def einsum():
    a, b, c = (rng.normal(size=(90, 90)).astype(np.float32) for _ in range(3))
    return "Einsum", [a, b, c], dict(equation="ab,cd,bc->ad"), a @ c @ b


CASES = {case.__name__: case for case in (bincount, segments, top_k, einsum)}
REFUSED = {"TopKV2": ([np.zeros(1 << 23, np.float32), np.int32(1 << 23)], {}),
           "Bincount": ([np.int32([1]), np.int32(2**31 - 1), none], {}),
           "Einsum": ([np.ones((1 << 9, 1 << 9), np.float32)] * 4, dict(equation="ab,bc,cd,ad->abcd"))}


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def one(name):
    """Runs one case. Inputs and outputs exist twice, as arrays and as tensors."""
    op, inputs, attrs, wanted = CASES[name]()
    tw.run("Add", [np.float32(1), np.float32(1)])
    before = peak()
    got = tw.run(op, inputs, **attrs)[0]
    more = peak() - before
    cases.equal(f"{name}: values", got, wanted.astype(np.float32), 1e-4)
    known = 2 * sum(np.asarray(x).nbytes for x in (*inputs, got))
    cases.holds(name, more <= known + 32 * MIB, f"{more / MIB:.0f} MiB, of which inputs and outputs explain {known / MIB:.0f}")


def refused():
    limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + 96 * MIB
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for op, (inputs, attrs) in REFUSED.items():
        try:
            tw.run(op, inputs, **attrs)
            cases.holds(f"{op} with too little memory", False, "no error")
        except tw.Error as error:
            cases.holds(f"{op} with too little memory", error.code_name == "RESOURCE_EXHAUSTED" and "memory" in str(error), error)


if len(sys.argv) > 1:
    one(sys.argv[1]) if sys.argv[1] in CASES else refused()
else:
    for name in (*CASES, "refused"):
        done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True)
        cases.holds(name, done.returncode == 0, done.stdout + done.stderr[-500:])
cases.finish()
