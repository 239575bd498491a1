"""Row 27: stripped sizes of installed files, and the memory of a process that has run a step and waits."""
import pathlib
import shutil
import subprocess

import peers
from bench import Goal
from workers import Failed

NUMBER = 27
TITLE = "sizes, stripped, and idle memory"
MOST = {"lib/libthalweg.so": 7.3e6, "lib/thalweg/plugins/libcpu.so": 25e6}  # bytes; tests/tools/sizes_test.py enforces the limits


def stripped_bytes(path, folder):
    """Returns the size of a library or program without its debug symbols."""
    copy = pathlib.Path(folder) / (pathlib.Path(path).name + ".stripped")
    if not shutil.which("strip"):
        raise Failed("there is no 'strip' here; install binutils")
    subprocess.run(["strip", "-o", str(copy), str(path)], check=True)
    size = copy.stat().st_size
    copy.unlink()
    return size


def resident_bytes(program):
    """Returns the resident memory of a program that prints "ready" and waits."""
    with subprocess.Popen([str(program), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout.readline() != "ready\n":
            raise Failed(f"{program.name}: ended with status {process.wait()}")
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        process.stdin.close()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def tensorflow_bytes(bench):
    """Returns the size of the two libraries with TensorFlow's runtime and kernels, as its package ships them; None if not installed."""
    folder = peers.package("tensorflow") if bench.use_peers else None
    return sum(path.stat().st_size for path in folder.glob("libtensorflow_*.so.2")) if folder else None


def run(bench):
    cold_start, empty = bench.program("cold_start"), bench.program("empty")
    anchor = tensorflow_bytes(bench)
    for what, (file, most) in zip(["core library", "CPU kernels"], MOST.items()):
        bench.note(what, "MB", stripped_bytes(bench.build / file, bench.folder), "TensorFlow", anchor, Goal(most, of="ours"))
    bench.note("idle memory", "MB", resident_bytes(cold_start), "empty process", resident_bytes(empty), Goal(20e6, of="ours"))
