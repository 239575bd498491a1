"""Row 28, the part for every machine: loading plugins, over opening their files; starting with many known plugins; checking a plugin;
building one."""
import shlex
import subprocess
import time

from bench import Goal
from workers import Failed

NUMBER = 28
TITLE = "plugins: loading one, 200 in a folder, checking ten ops, building one"
KNOWN = 200
MISSED = """Row 28, CPU plugin: it registers more than 2,000 kernels, at some 3,200 instructions each: half of them make the spec in the
plugin, a quarter take it over, a sixth sort it in by its op; it is read when the op is first used."""


def folder_of_plugins(bench):
    """Makes a folder of KNOWN plugins with one op each, which differ only in a number."""
    folder = bench.folder / "numbered"
    folder.mkdir(exist_ok=True)
    file = bench.program("numbered_plugin").read_bytes()
    for i in range(KNOWN):
        copy = folder / f"libnumbered{i:03}.so"
        contents = file.replace(b"000000", b"%06d" % i)
        if not copy.exists() or copy.read_bytes() != contents:
            copy.write_bytes(contents)
    return folder


def compile_seconds(bench):
    """Compiles a C++ file with one op by the build's compiler. Returns the best time of three, in nanoseconds."""
    cache = (bench.build / "CMakeCache.txt").read_text().splitlines()
    compiler = next(line.split("=", 1)[1] for line in cache if line.startswith("CMAKE_CXX_COMPILER:"))
    source = next(line.split("=", 1)[1] for line in cache if line.startswith("CMAKE_HOME_DIRECTORY:"))
    command = [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", f"-I{source}/c_api/include", f"{source}/plugins/examples/scale.cc", "-o",
               str(bench.folder / "one_op.so")]
    times = []
    for _ in range(3):
        begin = time.perf_counter_ns()
        done = subprocess.run(command, capture_output=True, text=True)
        times.append(time.perf_counter_ns() - begin)
        if done.returncode:
            raise Failed(f"{shlex.join(command)}: {done.stderr[-1000:]}")
    return min(times)


def kit_ns(bench):
    """Runs the conformance kit on a plugin of ten ops. Returns its time in nanoseconds."""
    if bench.may_build:
        done = subprocess.run(["cmake", "--build", str(bench.build), "--target", "thalweg-conformance", "thalweg_plugin_ten"], capture_output=True,
                              text=True)
        if done.returncode:
            raise Failed(f"cannot build the kit in {bench.build}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    plugin = bench.build / "tests/guides/libten.so"
    begin = time.perf_counter_ns()
    done = subprocess.run([str(bench.build / "bin/thalweg-conformance"), str(plugin)], capture_output=True, text=True)
    passed = time.perf_counter_ns() - begin
    if done.returncode:
        raise Failed(f"the kit refuses {plugin}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    return passed


def run(bench):
    plugins = bench.build / "lib/thalweg/plugins"
    numbered = folder_of_plugins(bench)
    for what, file, goal in (("CPU plugin", plugins / "libcpu.so", Goal(1e6, of="ours")),
                             ("plugin of one op", numbered / "libnumbered000.so", Goal(1e6, of="difference"))):
        bench.compare(what, ("Thalweg", bench.ours(1), f"plugin_load {file}"), ("opening the file", bench.machine(), f"dlopen {file}"),
                      unit="us", goal=goal)
    empty = bench.folder / "no_plugins"
    empty.mkdir(exist_ok=True)
    bench.compare(f"a runtime that knows {KNOWN} plugins", ("Thalweg", bench.ours(1), f"plugins_known {numbered}"),
                  ("none", bench.ours(1), f"plugins_known {empty}"), unit="ms", goal=Goal(10e6, of="difference"))
    bench.note("the kit on ten ops", "ms", kit_ns(bench), "nothing", None, Goal(60e9, of="ours"))
    bench.note("building an op in C++", "ms", compile_seconds(bench), "nothing", None, Goal(3e9, of="ours"))
