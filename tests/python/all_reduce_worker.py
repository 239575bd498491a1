"""A worker of all_reduce_test.py: trains on its rows of each batch, prints a line for each step, and saves the weights.

    all_reduce_worker.py DATA OUT STEPS      OUT: a file .npz; the environment says which worker this is; without it, the only one"""
import os
import sys

import numpy as np

import thalweg as tw

BATCH = 64
rank, workers = int(os.environ.get("THALWEG_COLLECTIVE_RANK", 0)), int(os.environ.get("THALWEG_COLLECTIVE_MEMBERS", 1))
rows = np.loadtxt(sys.argv[1], delimiter=",", max_rows=640)
images, labels = rows[:, :64] / 16, rows[:, 64].astype(np.int32)

with tw.Graph() as g:
    x, y = tw.placeholder("float64", [None, 64], name="x"), tw.placeholder("int32", [None], name="y")
    random, h, sizes = np.random.default_rng(1), x, [64, 40, 24, 10]
    for i, (n, m) in enumerate(zip(sizes, sizes[1:])):
        # Only worker 0 has the right weights at first.
        w = tw.Variable(random.standard_normal((n, m)) * n ** -0.5 * (rank == 0), name=f"w{i}")
        b = tw.Variable(np.zeros(m), name=f"b{i}")
        h = tw.ops.bias_add(tw.ops.mat_mul(h, w), b)
        h = tw.ops.relu(h) if i + 2 < len(sizes) else h
    loss = tw.ops.mean(tw.ops.sparse_softmax_cross_entropy_with_logits(h, y).loss, 0)
    optimizer = tw.train.Adam(0.01)
    variables = g.variables()
    if workers > 1:
        optimizer = tw.train.AllReduce(optimizer, bucket_bytes=8 << 10)  # three buckets
    step = optimizer.minimize(loss, clip=5.0)
    start = tw.train.broadcast_variables(variables) if workers > 1 else None

share = BATCH // workers
with tw.Session(g) as s:
    s.run(g.initializer())
    if start is not None:
        s.run(start)
    for i in range(int(sys.argv[3])):
        at = i * BATCH % 640 + rank * share
        s.run([step], {x: images[at:at + share], y: labels[at:at + share]})
        print("step", i, flush=True)
    np.savez(sys.argv[2], *s.run(list(variables)))
