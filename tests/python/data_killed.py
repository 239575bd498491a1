"""The program that data_test.py kills: takes batches, notes them, and stores its position in a file that it replaces."""
import os
import pathlib
import sys

from thalweg import data

folder, log, names = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
pipeline = data.arrays(names).shuffle(5, seed=1).interleave(lambda f: data.records(f), cycle=3).shuffle(30, seed=2)
i = pipeline.map(lambda x: x + b"", 2).batch(2).prefetch(3).iterator()
state, number = folder / "state", 0
if state.exists():
    held = state.read_bytes()
    number = int.from_bytes(held[:8], "little")
    i.restore(held[8:])
for batch in i:
    with open(log, "ab") as f:
        f.write(b"%d " % number + b" ".join(batch.numpy().tolist()) + b"\n")
    number += 1
    new = folder / "new state"
    new.write_bytes(number.to_bytes(8, "little") + i.save())
    os.replace(new, state)
    print(number, flush=True)
