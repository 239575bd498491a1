"""Compares inputs, outputs and attributes of the ops that TensorFlow also has with TensorFlow's definitions (goldens/definitions.json.gz,
which definitions_peer.py writes). TensorFlow's graphs name them all, and a name that is missing here would make us reject the graph."""
import gzip
import json
import pathlib

import numpy as np

import cases
import tw

# (reason, ops, attribute, its definition): the differences of our ops.
DIFFERENT = [
    ("no kernel of TensorFlow's accumulates others", [op for op in tw.ops() if "Accumulator" in op], "dtype", "allowed"),
    ("16 bits serve as well as in UnsortedSegmentSum", ["UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd"], "Tindices", "allowed"),
]
DIFFERENT = {(op, attr, what): why for why, ops, attr, what in DIFFERENT for op in ops}
met = set()


def plain(about):
    """Normalizes a definition: a minimum length of 0 is dropped, choices are unordered, numbers are rounded as they are stored."""
    about = {k: v for k, v in about.items() if (k, v) != ("minimum", 0) or not about.get("list")}
    if "allowed" in about:
        about["allowed"] = set(about["allowed"])
    if isinstance(about.get("default"), float):
        about["default"] = float(np.float32(about["default"]))
    return about


def compare(op, theirs, ours):
    for side in ("inputs", "outputs"):
        mine = [{k: v for k, v in x.items() if k != "resource"} for x in ours[side]]  # TensorFlow does not declare the resource
        cases.holds(f"{op} {side}", mine == theirs[side], f"{mine}, theirs {theirs[side]}")
    mine, wanted = ({a["name"]: plain(a) for a in side["attrs"]} for side in (ours, theirs))
    cases.holds(f"{op} attributes", mine.keys() == wanted.keys(), f"{sorted(mine)}, theirs {sorted(wanted)}")
    for name in mine.keys() & wanted.keys():
        for what in mine[name].keys() | wanted[name].keys():
            same = mine[name].get(what) == wanted[name].get(what)
            if not same and (op, name, what) in DIFFERENT:
                met.add((op, name, what))
                continue
            cases.holds(f"{op} {name} {what}", same, f"{mine[name].get(what)}, theirs {wanted[name].get(what)}")


with gzip.open(pathlib.Path(__file__).parent / "goldens" / "definitions.json.gz", "rt") as file:
    known = json.load(file)
for op, theirs in known.items():
    compare(op, theirs, tw.ops()[op])
for op, attr, what in DIFFERENT.keys() - met:
    if op in known and any(a["name"] == attr for a in known[op]["attrs"]):
        cases.holds(f"{op} {attr} {what}", False, "is as TensorFlow's: take it off the list")
cases.finish()
