"""tools/test builds the sanitized tree beside the tests of the first tree, at the lowest priority, and its status is that of the first step
that failed: test_order_test.py"""
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile

TOOLS = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "tools"
# Replace the scripts that tools/test calls. Each writes a line to the log. A fifo lets the sanitized build go on only when the tests of the
# release have begun, and these end only when that build has begun.
SETUP = """#!/bin/sh
echo "setup $*" >>"$LOG"
"""
BUILD = """#!/bin/sh
echo "build $1 $4 at $(nice)" >>"$LOG"
[ "$1" = asan ] || exit 0
if [ -n "$STAYS" ]; then
  exec 9>"$BUILDING"
  echo begun >&9
  exec sleep 600
fi
echo begun >"$BUILDING"
read testing <"$TESTING"
echo "built $1" >>"$LOG"
echo "build asan: the output"
exit "${BUILD_STATUS:-0}"
"""
CTEST = """#!/bin/sh
[ "$1" = --help ] && echo "  -R -L -V" && exit 0
echo "ctest $2 $5" >>"$LOG"
[ "$2" = build/release ] || exit "${HOSTILE_STATUS:-0}"
[ -z "$STAYS" ] || exit 0
read building <"$BUILDING"
echo begun >"$TESTING"
exit "${TEST_STATUS:-0}"
"""


def tree(name):
    folder = pathlib.Path(name)
    for path, text in {"tools/setup": SETUP, "tools/cmake/build": BUILD, "bin/ctest": CTEST, "bin/nproc": "#!/bin/sh\necho 2\n"}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        (folder / path).chmod(0o755)
    shutil.copy(TOOLS / "test", folder / "tools/test")
    for fifo in ("building", "testing"):
        os.mkfifo(folder / fifo)
    return folder


def start(folder, **more):
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "LOG": str(folder / "log"), "BUILDING": str(folder / "building"),
                   "TESTING": str(folder / "testing"), **more}
    return subprocess.Popen([folder / "tools/test"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, start_new_session=True)


def run(**more):
    """Returns the status of a whole run, its lines in the log, and its output."""
    with tempfile.TemporaryDirectory() as name:
        folder = tree(name)
        process = start(folder, **more)
        said = process.communicate(timeout=60)
        return process.returncode, (folder / "log").read_text().splitlines(), "".join(said)


def main():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # whoever runs this test may ignore it, and children inherit that
    own = os.nice(0)
    status, log, said = run()
    assert status == 0, (status, said)
    assert log[:2] == ["setup --sanitizers", f"build release all at {own}"], log
    assert sorted(log[2:4]) == [f"build asan hostile at {min(own + 19, 19)}", "ctest build/release -j"], log
    assert log[4:] == ["built asan", "ctest build/asan -j"], log
    assert run(TEST_STATUS="9")[0] == 9
    assert run(HOSTILE_STATUS="7")[0] == 7
    status, log, said = run(BUILD_STATUS="5")
    assert status == 5 and log[-1] == "built asan" and "build asan: the output" in said, (status, log, said)

    # The build ends with tools/test, whatever ends that.
    with tempfile.TemporaryDirectory() as name:
        folder = tree(name)
        building = os.open(folder / "building", os.O_RDONLY | os.O_NONBLOCK)  # an open that waits would wait for ever if tools/test failed
        process = start(folder, STAYS="yes")
        assert select.select([building], [], [], 60)[0] and os.read(building, 100) == b"begun\n", process.communicate(timeout=60)
        process.terminate()
        assert select.select([building], [], [], 60)[0] and os.read(building, 100) == b"", "the build goes on"
        os.close(building)
        process.communicate(timeout=60)


main()
