"""Invalid uses of ops on queues, tables, stacks and other resources behind a handle or a name, and of ops that call functions. It works
like hostile_test.py, from one plain use of each op (kept.py, called.py), which waits only briefly. Handles are destroyed, not fed, empty,
closed, of other types or of another resource; functions are missing, or have other arguments and results.
`hostile_kept_test.py COUNT SEED`: also COUNT random uses of each op."""
import sys

import called
import cases
import kept
import tw
from attempts import LATE, alone, limit
from declare import declared
from hostile_test import FILES, FLOW, FRAMEWORK, calls, hostile, keeps_other, mutated, runs_as, verdict
from schema import Schema
from undeclared import UNDECLARED

# lookup_test.py tests tables from files.
ELSEWHERE = {"InitializeTableFromTextFileV2"} | FRAMEWORK | FILES | set(UNDECLARED["python/summary_ops_test.py"].split())


def worker(count, seed):
    limit()
    answered = refused = 0
    uses = [*kept.plain_uses(), *called.plain_uses()]
    for k, use in enumerate(uses):
        sound = verdict(use.op, use.inputs, use.attrs, "fed", LATE)
        cases.holds(f"{use} goes on and ends", isinstance(sound, list), sound)
        refused += mutated(use.op, [use], seed + k)
        answered += hostile(use.op, Schema(tw.ops()[use.op]["schema"], declared().given(use.op)), count, seed + k, use)
    met = {use.op for use in uses}
    for op in tw.ops():
        left_out = (calls(op) or keeps_other(runs_as(op))) and op not in ELSEWHERE and runs_as(op) not in FLOW
        cases.holds(f"{op} is tried with what is wrong", op in met or not left_out, "kept.py and called.py have no use of it")
    print(f"{len(met)} ops, {refused} wrong uses refused, {answered} random ones answered")
    cases.holds("some of what is wrong is refused", refused > 5 * len(met), refused)
    cases.finish()


if __name__ == "__main__":
    arguments = sys.argv[1:] or ["12", "0"]
    worker(int(sys.argv[2]), int(sys.argv[3])) if arguments[0] == "worker" else alone(__file__, *(arguments + ["0"])[:2])
