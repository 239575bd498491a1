"""The replay gate fires: on an archive with one fault it must fail and name the fault."""
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"])
HERE = pathlib.Path(__file__).resolve().parent
PLUGIN = pathlib.Path(os.environ["THALWEG_BINARY_DIR"]) / "examples/plugins/libtwice.so"


def replay(folder, epoch, change, plugin=PLUGIN):
    """Replays an archive of one plugin that is built today but archived under `epoch`, with a changed description."""
    place = folder / f"epoch{epoch}"
    place.mkdir(parents=True)
    shutil.copy(plugin, place / "libtwice.so")
    told = json.loads((HERE / "archive/plugins/twice.json").read_text()) | {"floor_adds": "the third draft"}
    change(told)
    (place / "twice.json").write_text(json.dumps(told))
    done = subprocess.run([sys.executable, "-B", HERE / "replay_test.py"], env=os.environ | {"THALWEG_TEST_ARCHIVE": str(folder)},
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def built_against_a_moved_frame(folder):
    """Builds the plugin `twice` as if a field of tw_frame had moved within an epoch."""
    shutil.copytree(SOURCE / "c_api/include", folder / "include")
    kernel = folder / "include/thalweg/plugin/kernel.h"
    text, moved = re.subn(r"(  void\* state; .*\n)(  const tw_view\* const\* in; .*\n)", r"\2\1", kernel.read_text())
    assert moved == 1, "tw_frame has changed; change this test"
    kernel.write_text(text)
    library = folder / "libtwice.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-I", folder / "include", SOURCE / "plugins/examples/twice.c", "-o", library], check=True)
    return library


def main():
    if platform.machine() != "x86_64":
        print("skipped: the archive is for x86-64")
        sys.exit(77)
    failures = []
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        for what, epoch, change, status, words in (
                ("as it is", 999, lambda told: None, 0, "passed  epoch999/libtwice.so"),
                ("another result", 999, lambda told: told["runs"][0].update(expect=[2, -4, 3]), 1, "Twice: expect"),
                ("another gradient", 999, lambda told: told["runs"][0].update(gradient=[2, 2, 1]), 1, "Twice: gradient"),
                ("an op that should fail", 999, lambda told: told["runs"][0].update(fails=["INTERNAL", "broken"]), 1, "Twice did not fail"),
                ("another step", 999, lambda told: told["runs"][0].update(then=[[0, 0, 0]]), 1, "Twice: then"),
                ("a removed op", 999, lambda told: told["runs"][0].update(op="Thrice"), 1, "Thrice"),
                ("an old plugin that is loaded", 1, lambda told: None, 1, "it was loaded")):
            found, said = replay(root / what.replace(" ", "_"), epoch, change)
            if found != status or words not in said:
                failures.append(f"{what}: status {found}, expected {status} and '{words}' in: {said}")
        found, said = replay(root / "moved", 999, lambda told: None, built_against_a_moved_frame(root))
        if found != 1 or "FAILED  epoch999/libtwice.so" not in said:
            failures.append(f"a moved field of tw_frame: status {found}: {said}")
        empty = root / "empty"
        empty.mkdir()
        if subprocess.run([sys.executable, "-B", HERE / "replay_test.py"], env=os.environ | {"THALWEG_TEST_ARCHIVE": str(empty)},
                          check=False).returncode != 1:
            failures.append("an empty archive passes")
    print("\n".join(failures) or "the gate fires")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
