"""Compares the declared ops with TensorFlow, on the same drawn uses and some with one fault: results, and whether there is an error.
TensorFlow runs in a process of its own (peer_worker.py), which is restarted, because some uses crash it. `peer_test.py FAMILY COUNT SEED
[write]` draws COUNT uses of each op; `write` stores TensorFlow's answers in goldens/, for golden_test.py."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import cases
import golden
import tw
from declare import declared, uses
from mutations import mutations

HERE = pathlib.Path(__file__).parent
PYTHON = HERE.parent.parent / "tools/cmake/peer-python"
SMALL = 240  # elements of one input


def fits(inputs):
    flat = [x for group in inputs for x in (group if isinstance(group, list) else [group])]
    return all(x.size <= SMALL for x in flat) and all(golden.kind_of(x) in golden.KINDS for x in flat)


def normal(x):
    """Replaces denormals by zeros, as TensorFlow does."""
    least = {"half": 2.0**-14, "bfloat16": 2.0**-126, "float": 2.0**-126, "double": 2.0**-1022}.get(golden.kind_of(x))
    if least is None:
        return x
    wide = tw.from_bfloat16(x) if x.dtype == tw.bfloat16 else x
    return np.where(abs(wide) < least, np.zeros((), x.dtype), x)


def record(op, inputs, attrs, what):
    inputs = [[golden.packed(normal(x)) for x in group] if isinstance(group, list) else golden.packed(normal(group)) for group in inputs]
    return {"op": op, "inputs": inputs, "attrs": {a: golden.packed_attr(v) for a, v in attrs.items()}, "what": what}


def drawn(declaration, count, seed):
    rng = np.random.default_rng([seed, 3, *declaration.op.encode()])
    found = [use for use in uses(declaration, 6 * count, seed) if fits(use.inputs)][:count]
    for use in found:
        yield record(use.op, use.inputs, use.attrs, "")
        about = tw.ops()[use.op]
        counted = {x.get("number_attr") for x in about["inputs"]}  # TensorFlow counts them itself
        wrong = [m for m in mutations(use, about, rng) if fits(m.inputs) and " of type " not in m.what and m.what.split()[0] not in counted]
        for m in (wrong[k] for k in rng.permutation(len(wrong))[:2]):
            yield record(use.op, m.inputs, m.attrs, m.what)


def theirs(records):
    """Returns TensorFlow's answer to each record."""
    answers = []
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONPATH")}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.writelines(json.dumps(r) + "\n" for r in records)
        file.flush()
        while len(answers) < len(records):
            worker = subprocess.Popen([PYTHON, HERE / "peer_worker.py", file.name, str(len(answers))], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True, env=environment)
            before = len(answers)
            answers += [json.loads(line) for line in worker.stdout if line.endswith("\n")]
            code = worker.wait()
            if code == 77:
                print("skipped: the other frameworks are not installed; run tools/setup --peers")
                sys.exit(77)
            if len(answers) < len(records):
                answers.append("crash")
                print(f"TensorFlow ended with {code} at {golden.text(records[len(answers) - 1])}", flush=True)
            if before == len(answers):
                sys.exit("peer_worker.py does not start")
    return answers


def size(outputs):
    return sum(int(np.prod(shape)) for _, shape, _ in outputs)


def main(family, count="4", seed="9", write=""):
    declarations = [d for d in declared(family).ops.values() if d.oracle and (family == "random" or not tw.ops()[d.op]["stateful"])]
    records = [r for d in declarations for r in drawn(d, int(count), int(seed))]
    for r, answer in zip(records, theirs(records)):
        r["theirs"] = answer
    if write:
        golden.save(family, [r for r in records if isinstance(r["theirs"], str) or size(r["theirs"]) <= 4 * SMALL])
    golden.compare(records)
    kinds = [r["theirs"] if isinstance(r["theirs"], str) else "result" for r in records]
    print({kind: kinds.count(kind) for kind in sorted(set(kinds))})
    cases.finish()


main(*sys.argv[1:])
