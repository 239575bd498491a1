"""OpenCL devices and their drivers: memory has a limit; two devices share a graph; queues may be out of order; programs are compiled, and
tiles measured, only once. A driver that is missing, too old, broken or lost in the middle of a step is reported as an error. Tests that
need a device are skipped without one."""
import os
import subprocess
import sys

import numpy as np
import pytest

import thalweg as tw

needs_device = pytest.mark.skipif(not any(d.kind == "OPENCL" for d in tw.devices()),
                                  reason="no OpenCL device was found; install a driver (pocl-opencl-icd runs on the CPU)")


@needs_device
def test_more_memory_than_the_cap_is_an_error_that_names_the_op():
    runtime = tw.Runtime(**{"memory_limit.OPENCL": "4M"})
    with tw.Graph(runtime) as g:
        x = tw.placeholder("float32", [None])
        y = tw.ops.tile(x, [1000])
    with pytest.raises(tw.ResourceExhaustedError, match="Tile|tile"):
        tw.Session(g, device="OPENCL:0", fallback="fail").run(y, {x: np.zeros(100000, "f")})
    assert np.array_equal(tw.Session(g, device="OPENCL:0", fallback="fail").run(y, {x: np.ones(10, "f")}), np.ones(10000, "f"))


def child(program, **environment):
    done = subprocess.run([sys.executable, "-c", "import numpy as np, thalweg as tw\n" + program], env={**os.environ, **environment},
                          text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_device
def test_two_devices_share_a_graph():
    program = """
with tw.Graph() as g:
    x = tw.placeholder("float32", [None])
    with tw.device("OPENCL:0"):
        a = tw.ops.square(x)
    with tw.device("OPENCL:1"):
        b = tw.ops.exp(a)
    with tw.device("OPENCL:0"):
        c = a + b
print([d.name for d in tw.devices() if d.kind == "OPENCL"], tw.Session(g, fallback="fail").run(c, {x: np.array([0, 1], "f")}).tolist())
"""
    names, values = child(program, POCL_DEVICES="pthread pthread").strip().split("] [")
    assert "OPENCL:1" in names and np.allclose(eval("[" + values), [1, 1 + np.e])


@needs_device
def test_programs_are_compiled_once_for_each_source_device_and_driver_and_damaged_ones_again(tmp_path):
    program = """
import os
runtime = tw.Runtime(**{"plugin.org.thalweg.opencl.cache_dir": %r, "plugin.org.thalweg.opencl.loader": os.environ["OPENCL_PROXY"]})
with tw.Graph(runtime) as g:
    x = tw.placeholder("float32", [None])
    y = tw.ops.cosh(x)
print(tw.Session(g, device="OPENCL:0", fallback="fail").run(y, {x: np.zeros(1, "f")})[0])
""" % str(tmp_path)

    def kept():
        return {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert child(program) == "1.0\n"
    first = kept()
    (path,) = first
    assert child(program) == "1.0\n" and kept() == first
    for changed, environment in ((program.replace("cosh", "exp"), {}), (program, dict(DRIVER_VERSION="other")),
                                 (program, dict(DEVICE_NAME="other"))):
        before = kept()
        for _ in range(2):
            assert child(changed, **environment) == "1.0\n" and len(kept()) == len(before) + 1 and before.items() <= kept().items()
    text = path.read_bytes()
    path.write_bytes(text[:-100])
    assert child(program) == "1.0\n" and path.read_bytes()[:200] == text[:200] and path.stat().st_mtime_ns != first[path]


@needs_device
def test_programs_that_the_driver_keeps_itself_are_not_kept_again(tmp_path):
    program = """
with tw.Graph() as g:
    x = tw.placeholder("float32", [None])
    y = tw.ops.cosh(x)
print(tw.Session(g, device="OPENCL:0", fallback="fail").run(y, {x: np.zeros(1, "f")})[0])
"""
    for _ in range(2):
        assert child(program, XDG_CACHE_HOME=str(tmp_path)) == "1.0\n"
    assert (tmp_path / "thalweg" / "opencl").exists() != (tmp_path / "pocl").exists()


@needs_device
def test_lists_of_any_length_are_added_by_a_few_programs(tmp_path):
    runtime = tw.Runtime(**{"plugin.org.thalweg.opencl.cache_dir": str(tmp_path)})
    for n in (2, 8, 9, 15, 16, 17, 300):
        with tw.Graph(runtime) as g:
            terms = [tw.placeholder("float32", [None]) for _ in range(n)]
            y = tw.ops.add_n(terms)
        values = np.random.default_rng(n).standard_normal((n, 5)).astype("f")
        got = tw.Session(g, device="OPENCL:0", fallback="fail").run(y, dict(zip(terms, values)))
        wanted = values[0]
        for value in values[1:]:
            wanted = wanted + value
        assert np.array_equal(got, wanted), n
    assert len(list(tmp_path.iterdir())) == 4  # sums of 2, 3, 6 and 8 terms


@needs_device
def test_tiles_of_large_products_are_measured_once(tmp_path):
    program = """
runtime = tw.Runtime(**{"plugin.org.thalweg.opencl.cache_dir": %r})
with tw.Graph(runtime) as g:
    x = tw.placeholder("float32", [None, None])
    y = tw.ops.mat_mul(x, x)
x_value = np.random.default_rng(1).standard_normal((512, 512)).astype("f")
got = tw.Session(g, device="OPENCL:0", fallback="fail").run(y, {x: x_value})
print(np.allclose(got, x_value @ x_value, atol=1e-3))
""" % str(tmp_path)
    assert child(program) == "True\n"
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    (tile,) = (path for path in kept if b"\ntile\n" in path.read_bytes())
    assert len(kept) >= 3 and tile.read_bytes()[-1] < 4  # a program for each tile that was tried, and the choice of the best
    assert child(program) == "True\n" and {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == kept


@needs_device
def test_a_processor_as_device_works_in_host_memory_and_small_feeds_are_no_commands():
    program = """
import ctypes, os
proxy = ctypes.CDLL(os.environ["OPENCL_PROXY"])
runtime = tw.Runtime(**{"plugin.org.thalweg.opencl.loader": os.environ["OPENCL_PROXY"]})
with tw.Graph(runtime) as g:
    x = tw.placeholder("float32", [None])
    v = tw.Variable(np.ones(1 << 20, "f"))
    y, init = tw.ops.exp(x), tw.initializer()
    z = tw.ops.sum(v, [0])
session = tw.Session(g, device="OPENCL:0", fallback="fail", disable_pass="fold")
session.run(init)
shared = proxy.counted(0) > 0
assert shared or "pthread" not in next(d for d in runtime.devices() if d.kind == "OPENCL").description  # PoCL shares it
before = proxy.counted(2)
for size in range(1, 50):
    value = np.linspace(0, 1, size, dtype="f")
    assert np.allclose(session.run(y, {x: value}), np.exp(value), rtol=1e-5)
large = np.linspace(0, 1, 1 << 20, dtype="f")
assert np.allclose(session.run(y, {x: large}), np.exp(large), rtol=1e-5) and session.run(z) == 1 << 20
print(not shared or (proxy.counted(1) == 0 and proxy.counted(2) - before < 60))  # 50 feeds and 51 fetches
"""
    assert child(program) == "True\n"


@needs_device
def test_queues_that_keep_no_order_have_the_same_results():
    program = """
rng = np.random.default_rng(3)
runtime = tw.Runtime(**{"plugin.org.thalweg.opencl.queues": "out_of_order"})
with tw.Graph(runtime) as g:
    x = tw.placeholder("float32", [None, 8])
    parts = tw.ops.split(1, x, num_split=4)
    y = tw.ops.concat_v2([tw.ops.exp(p) for p in reversed(parts)] + [x], 1)
    for _ in range(30):
        y = tw.ops.tanh(tw.ops.concat_v2(list(tw.ops.split(1, y, num_split=2))[::-1], 1) * 1.5)
session, plain = (tw.Session(g, compilers="off", **o) for o in (dict(device="OPENCL:0", fallback="fail"), {}))
right = 0
for rows in (1, 3000, 40) * 5:
    value = rng.standard_normal((rows, 8)).astype("f")
    right += np.allclose(session.run(y, {x: value}), plain.run(y, {x: value}), atol=1e-4)
print(right)
"""
    assert child(program) == "15\n"


@needs_device
def test_a_device_that_vanishes_ends_the_step_and_leaves_the_others():
    program = """
import ctypes, os
loader = os.environ["OPENCL_PROXY"]
vanish_after = ctypes.CDLL(loader).vanish_after
vanish_after.argtypes = [ctypes.c_long]
runtime = tw.Runtime(**{"plugin.org.thalweg.opencl.loader": loader})
with tw.Graph(runtime) as g:
    x = tw.placeholder("float32", [None, 64])
    y = tw.ops.mat_mul(tw.ops.tanh(x), x, transpose_b=True)
    y = tw.ops.sum(tw.ops.softmax(y), [0])
value = np.random.default_rng(1).standard_normal((64, 64)).astype("f")
on = dict(device="OPENCL:0", fallback="fail", compilers="off")
wanted = tw.Session(g).run(y, {x: value})
def fits(session):
    return np.allclose(session.run(y, {x: value}), wanted, rtol=1e-4)
assert fits(tw.Session(g, **on))
warm = tw.Session(g, **on)
told, went_well = set(), 0
for calls in (*range(60), 100, 150):
    for session in (tw.Session(g, **on), warm):
        vanish_after(calls)
        try:
            went_well += fits(session)
        except tw.Error as error:
            assert "CL_DEVICE_NOT_AVAILABLE" in str(error) and "other devices" in str(error), error
            told.add(type(error).__name__)
            assert fits(tw.Session(g))
        if session is not warm:
            session.close()
        vanish_after(-1)
    if calls % 10 == 0:
        assert fits(warm) and fits(tw.Session(g, **on))  # back again
vanish_after(0)
warm.close()
assert fits(tw.Session(g)) and went_well >= 2
print(sorted(told))
"""
    assert child(program) == "['UnavailableError']\n"


@needs_device
def test_a_driver_does_not_bind_to_an_llvm_of_the_program(tmp_path):
    library = tmp_path / "llvm.so"
    text = """#include <stdlib.h>
void add(void) __asm__("_ZN4llvm2cl6Option11addArgumentEv");
void add(void) { abort(); }"""
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=text, text=True, check=True)
    program = f"""
import ctypes
ctypes.CDLL({str(library)!r}, ctypes.RTLD_GLOBAL)
with tw.Graph() as g:
    x = tw.placeholder("float32", [None])
print(tw.Session(g, device="OPENCL:0", fallback="fail").run(tw.ops.cosh(x), {{x: np.zeros(1, "f")}})[0])
"""
    assert child(program) == "1.0\n"


def devices_with(loader, **environment):
    program = f"""
runtime = tw.Runtime(**{{"plugin.org.thalweg.opencl.loader": {str(loader)!r}}})
print([d.kind for d in runtime.devices()])
with tw.Graph(runtime) as g:
    x = tw.placeholder("float32", [None])
    y = tw.ops.cosh(x)
try:
    tw.Session(g, device="OPENCL:0", fallback="fail").run(y, {{x: np.zeros(1, "f")}})
except tw.Error as error:
    print(error)
print(tw.Session(g).run(y, {{x: np.zeros(1, "f")}})[0])
"""
    return child(program, **environment).splitlines()


@pytest.mark.parametrize("loader, stub, why", [
    ("/nowhere/libOpenCL.so", "", "no OpenCL loader: /nowhere/libOpenCL.so"), ("libm.so.6", "", "no OpenCL loader: libm.so.6"),
    (os.environ.get("OPENCL_STUB"), "old", "'stub device' is left out: it is of 'OpenCL 1.1 stub', and OpenCL 1.2 is needed")])
def test_a_driver_that_is_missing_or_too_old_leaves_the_other_devices_and_is_told(loader, stub, why):
    kinds, error, value = devices_with(loader, STUB=stub)
    assert kinds == "['CPU']" and "OPENCL:0" in error and "registered: CPU:0" in error and value == "1.0"
    assert "plugin 'org.thalweg.opencl' provides OPENCL: " in error and why in error


def test_what_the_compiler_says_reaches_the_user_and_the_cpu_goes_on():
    kinds, *error, value = devices_with(os.environ["OPENCL_STUB"], STUB="broken")
    assert "OPENCL" in kinds and "the stub understands nothing" in " ".join(error) and "Cosh" in " ".join(error) and value == "1.0"
