"""A trainer of a data service, which data_service_test.py starts and kills: data_trainer.py JSON.

It takes examples, and after each replaces its checkpoint: the examples that its "model" has seen, and the position, in one file. Before it
takes an example it prints its number, and waits for a line. At the end of the last epoch it prints "done"."""
import json
import os
import pathlib
import sys

import thalweg as tw

how = json.loads(sys.argv[1])
tw.load_plugin(how["transport"])
names = how["files"]
elements = tw.data.records(names).shuffle(3, seed=1).map(lambda x: tw.ops.string_to_number(x, out_type="int64"))
data = elements.distribute(how["target"], name=how["name"], mode="exactly_once", seed=5, trainer=how["trainer"], trainers=how["trainers"],
                           cycle=2, wait=30)
folder = pathlib.Path(how["folder"])


def checkpoint(trainers, trainer):
    return folder / f"{trainers}-{trainer}.json"


with data.iterator() as batches:
    mine, seen = checkpoint(how["trainers"], how["trainer"]), []
    if mine.exists():
        held = json.loads(mine.read_text())
        seen = held["seen"]
        batches.restore(held["position"].encode())
    elif how["before"]:
        held = [json.loads(checkpoint(how["before"], t).read_text()) for t in range(how["before"])]
        batches.restore(*(h["position"].encode() for h in held))
    while True:
        print(len(seen), flush=True)
        sys.stdin.readline()
        element = next(batches, None)
        if element is None:
            if batches.epoch + 1 >= how["epochs"]:
                break
            batches.reset(batches.epoch + 1)
        else:
            seen.append([batches.epoch, int(element)])
        new = mine.with_suffix(".new")
        new.write_text(json.dumps({"seen": seen, "position": batches.save().decode()}))
        os.replace(new, mine)
        if how["stop_after"] is not None and len(seen) >= how["stop_after"]:
            break
    print("done", flush=True)
