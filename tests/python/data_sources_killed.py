"""The program that data_sources_test.py kills: takes batches of all sources with types, notes them, and stores its position."""
import os
import pathlib
import sys

import thalweg as tw

folder = pathlib.Path(sys.argv[1])


def whole(d):
    return d.map(lambda x: tw.ops.cast(x["x"] if isinstance(x, dict) else x, DstT="int64"))


sources = [tw.data.csv(str(folder / "0.csv"), {"x": "int64"}), tw.data.json_lines(str(folder / "1.jsonl"), {"x": "int32"}), tw.data.npy(str(folder / "2.npy")),
           tw.data.npz(str(folder / "3.npz")), tw.data.idx(str(folder / "4-idx1"))]
d = whole(sources[0])
for other in sources[1:]:
    d = d.concatenate(whole(other))
i = d.shuffle(30, seed=2).bucket_by_sequence_length(lambda x: x % 7, [2, 4], [3, 2, 4]).prefetch(2).iterator()
state, number = folder / "state", 0
if state.exists():
    held = state.read_bytes()
    number = int.from_bytes(held[:8], "little")
    i.restore(held[8:])
for batch in i:
    with open(folder / "seen", "ab") as f:
        f.write(b"%d " % number + b" ".join(b"%d" % x for x in batch.numpy()) + b"\n")
    number += 1
    new = folder / "new state"
    new.write_bytes(number.to_bytes(8, "little") + i.save())
    os.replace(new, state)
    print(number, flush=True)
