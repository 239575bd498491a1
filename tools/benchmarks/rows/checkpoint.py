"""Row 23: a checkpoint of 1 GB with checksums, written and synced, and read again from the file system's cache, against plain calls that
write, sync and rename, or read, as many bytes. The previous checkpoint stays until the new one is complete, as in training."""
import pathlib
import shutil
import tempfile

from bench import Goal

NUMBER = 23
TITLE = "checkpoint of 1 GB: write, read"
MISSED = """Row 23: PyTorch empties the old file before it writes the new one, whose pages the system then has at hand; a checkpoint that must
never be half of one cannot."""


def run(bench):
    # The files are in the build's folder, which is on a disk; /tmp may be in memory.
    folder = pathlib.Path(tempfile.mkdtemp(dir=bench.folder))
    try:
        ours, machine = bench.ours(2), bench.machine()
        for what, raw in (("write", Goal(round(1 / 0.85, 3), floor=round(1 / 0.7, 3))), ("read", Goal(round(1 / 0.7, 3)))):
            command = ("Thalweg", ours, f"checkpoint_{what} {folder}")
            bench.compare(what, command, (f"plain {what}", machine, f"raw_{what} {folder}"), unit="ms", goal=raw)
            for name in ("TensorFlow", "PyTorch"):
                bench.compare(what, command, (name, bench.peer(name, 2), f"checkpoint_{what} {folder}"), unit="ms", goal=Goal(1))
    finally:
        shutil.rmtree(folder)
