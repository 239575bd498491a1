"""`on_device.py KIND SCRIPT ARGS`: runs a test of this folder if there is a device of that kind; otherwise the test is skipped."""
import runpy
import sys

import thalweg

kind, *sys.argv = sys.argv[1:]
if not any(d.kind == kind for d in thalweg.devices()):
    print(f"skipped  there is no {kind} device here")
    sys.exit(77)
runpy.run_path(sys.argv[0], run_name="__main__")
