"""tools/gpu-tree packs a tree that works wherever it is unpacked: it runs on the stub driver, and without a driver it prints what is
missing. `tree_test.py BUILD STUB`"""
import ctypes
import json
import os
import subprocess
import sys
import tarfile
import tempfile

BUILD, STUB = sys.argv[1:]
TOOL = os.path.join(os.environ["THALWEG_SOURCE_DIR"], "tools", "gpu-tree")


def has_driver():
    try:
        return ctypes.CDLL("libcuda.so.1") is not None
    except OSError:
        return False


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as place:
        packed = os.path.join(place, "tree.tar.xz")
        subprocess.run([sys.executable, TOOL, "--build", BUILD, packed], check=True)
        with tarfile.open(packed) as t:
            t.extractall(place)
        script, results = os.path.join(place, "thalweg-gpu", "run"), os.path.join(place, "results.json")
        parts = ["ops training", "control_flow", "check capture", "check failures", "check memory_cap", "check two_sessions", "check loss_scale", "check dlpack", "digits on CUDA:0"]
        done = subprocess.run([sys.executable, script, "--library", STUB, "--small", "--only", *parts, "--json", results], cwd=place,
                              capture_output=True, text=True)
        if done.returncode != 0:
            wrong.append(f"status {done.returncode}\n{done.stdout}{done.stderr}")
        else:
            with open(results) as f:
                found = json.load(f)["parts"]
            if sorted(found) != sorted(parts) or any(p["status"] != 0 for p in found.values()):
                wrong.append(f"results: {found}")
            again = [sys.executable, script, "--library", STUB, "--small", "--resume", "--minutes", "0", "--json", results, "--only", *parts]
            for more, status, reached in (([], 0, 0), (["bench"], 1, 2)):  # passed parts are skipped; the others have no time
                done = subprocess.run([*again, *more], cwd=place, capture_output=True, text=True)
                with open(results) as f:
                    late = [name for name, part in json.load(f)["parts"].items() if part["status"] == "not reached"]
                if done.returncode != status or len(late) != reached:
                    wrong.append(f"without time: status {done.returncode}, not reached: {late}\n{done.stdout}{done.stderr}")
        if not has_driver():
            done = subprocess.run([sys.executable, script], cwd=place, capture_output=True, text=True)
            if done.returncode != 77 or "no NVIDIA driver: libcuda.so.1 was not found; install the driver" not in done.stdout:
                wrong.append(f"without a driver: status {done.returncode}\n{done.stdout}{done.stderr}")
    print("\n".join(wrong) or "the tree works")
    return 1 if wrong else 0


sys.exit(main())
