"""Installed files, stripped, are no larger than row 27 of tools/bench allows: sizes_test.py BUILD"""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "tools/benchmarks"))
from rows import sizes  # noqa: E402

too_large = 0
with tempfile.TemporaryDirectory() as folder:
    for file, most in sizes.MOST.items():
        found = sizes.stripped_bytes(pathlib.Path(sys.argv[1]) / file, folder)
        print(f"{file}: {found} bytes, at most {most:.0f}")
        too_large += found > most
sys.exit(too_large > 0)
