"""A worker of levels_test.py: executes each collective operation once and saves what it got.

    levels_worker.py OUT      OUT: a file .npz; the environment says which worker this is"""
import os
import sys

import numpy as np

import thalweg as tw

N = 40_000  # elements of large values: more than a message holds
WORKERS = 4


def value(r, dtype, n):
    return (np.random.default_rng(r).standard_normal(n) * 2).astype(dtype)


def reductions(r, dtype):
    """Returns the operations of a member on values of a type, by name."""
    made = {}
    for n in (5, N):
        x = value(r, dtype, n)
        for merge, final in (("Add", "Id"), ("Mul", "Id"), ("Min", "Id"), ("Max", "Id"), ("Add", "Div")):
            if (final, dtype) == ("Div", "int64"):
                continue
            how = {"ordering_token": [], "merge_op": merge, "final_op": final}
            made[f"reduce {dtype} {n} {merge} {final}"] = tw.ops.collective_reduce_v2(x, **keys(made), **how)
            if n == N:
                made[f"scatter {dtype} {n} {merge} {final}"] = tw.ops.collective_reduce_scatter_v2(x, **keys(made), **how)
        made[f"gather {dtype} {n}"] = tw.ops.collective_gather_v2(x, **keys(made), ordering_token=[])
    return made


def moves(r):
    made, x = {}, value(r, "float64", N)
    made["exchange"] = tw.ops.collective_all_to_all_v2(x, **keys(made), ordering_token=[])
    made["permute"] = tw.ops.collective_permute(x, np.int32([[0, 3], [3, 0], [1, 1]]), name="permuted")
    for root in range(WORKERS):
        made[f"broadcast {root}"] = (tw.ops.collective_bcast_send_v2(x, **keys(made)) if r == root
                                     else tw.ops.collective_bcast_recv_v2(**keys(made), shape=[N], T="float64"))
    return made


def keys(made):
    return {"group_size": WORKERS, "group_key": 1, "instance_key": len(made) + 1}


def run(build, *args):
    """Runs the operations in a session of their own, so that shared memory of one session is there at a time."""
    with tw.Graph() as g:
        made = build(*args)
    with tw.Session(g) as session:
        return dict(zip(made, session.run(list(made.values()))))


if __name__ == "__main__":
    rank = int(os.environ["THALWEG_COLLECTIVE_RANK"])
    results = run(moves, rank)
    for dtype in ("float32", "float64", "float16", "int64"):
        results |= run(reductions, rank, dtype)
    np.savez(sys.argv[1], **results)
