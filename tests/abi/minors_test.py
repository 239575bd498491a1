"""Plugins that know minor 1 run both ways: on an archived host of minor 0, and on this host. Each is built from minors.c for one target
and one floor. The archived host is a binary of its time (archive/README.md), whose tables end where minor 0 ended."""
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"])
HERE = pathlib.Path(__file__).resolve().parent
OLD_HOST = HERE / "archive/epoch3/host0"
RAN = ["TripleOfMinors: 3 -6", "file: hello"]
T1, F0, FILES = "-DTHALWEG_TARGET_MINOR=1", "-DTHALWEG_FLOOR_MINOR=0", "-DTHALWEG_FILE_SYSTEM_TARGET=1"

# name: flags; the lines that the archived host prints, its exit status; whether this host's trace has the counter
PLUGINS = {
    "target 0": ([], ["agreed minor 0", *RAN], 0, False),
    "floor 0, target 1": ([T1, F0, FILES], ["agreed minor 0", *RAN], 0, True),
    "floor 1": ([T1], ["it needs ABI epoch 3, minors 1 to 1 (spans and counters of kernels in traces), this host offers epoch 3, minor 0"], 1,
                True),
    "floor 1 of the role": ([FILES, "-DTHALWEG_FILE_SYSTEM_FLOOR=1"], ["agreed minor 0", "left out: file_system", RAN[0]], 0, False),
    "without TW_HAS": ([T1, F0, "-DUNGUARDED"], ["agreed minor 0"], -signal.SIGSEGV, True),
}


def build(folder, flags):
    library = folder / "libminors.so"
    subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
                    "-I", SOURCE / "c_api/include", *flags, HERE / "minors.c", "-o", library], check=True)
    return library


def on_the_old_host(library, lines, status):
    plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # without a sanitizer, which would catch the signal
    done = subprocess.run([OLD_HOST, library, "TripleOfMinors", "1", "-2"], env=plain, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()) == (status, lines), f"status {done.returncode}: {done.stdout}{done.stderr}"


def on_this_host(library, counted):
    import numpy as np  # pylint: disable=import-outside-toplevel
    import thalweg as tw  # pylint: disable=import-outside-toplevel
    runtime = tw.Runtime(threads=1, trust_plugin_folders=True)
    runtime.load_plugin(library)
    with tw.Graph(runtime) as graph:
        x = tw.placeholder("float32", (2,))
        stats = tw.StepStats()
        y = tw.Session(graph, threads=1).run(graph.op("TripleOfMinors", x), {x: np.float32([1, -2])}, stats=stats)
        np.testing.assert_array_equal(y, [3, -6])
        assert (' elements", "ph": "C"' in stats.to_json()) == counted, stats.to_json()


def main():
    if platform.machine() != "x86_64":
        print("skipped: the archived host is for x86-64")
        sys.exit(77)
    failures = []
    for name, (flags, lines, status, counted) in PLUGINS.items():
        with tempfile.TemporaryDirectory() as folder:
            library = build(pathlib.Path(folder), flags)
            for where, body, arguments in (("archived host", on_the_old_host, (lines, status)), ("this host", in_a_child, (counted,))):
                try:
                    body(library, *arguments)
                    print(f"passed  {name}, {where}")
                except AssertionError as e:
                    failures.append(f"FAILED  {name}, {where}: {e}")
    print("\n".join(failures))
    sys.exit(bool(failures))


def in_a_child(library, counted):
    """Runs the plugin on this host in a process of its own, because the plugin may crash it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            on_this_host(library, counted)
            status = 0
        except Exception as e:  # pylint: disable=broad-exception-caught
            print(f"{type(e).__name__}: {e}", flush=True)
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, f"exit status {status}"


if __name__ == "__main__":
    main()
