"""Several workers learn handwritten digits at once; the parameters are on other processes: asynchronous training with parameter servers.

    thalweg launch -n 2 --ps 2 -- python3 digits_async.py --data digits.csv

Every worker is a process of its own that runs this file. The workers share the variables, which are on the parameter servers. Each worker
reads them, computes gradients of its own batches on its own task, and applies them without waiting for the others, so the values that it
reads may be a step or two old. Worker 0 initializes the variables; the others wait until they are initialized."""
import argparse
import json
import os
import time

import numpy as np

import thalweg as tw

HELD_OUT = 360  # rows at the end of the file that are never used for training
BATCH = 32


def load(path):
    """Returns pixels from 0 to 1, [n, 64], and labels."""
    rows = np.loadtxt(path, delimiter=",", dtype=np.float32)
    return rows[:, :64] / 16, rows[:, 64].astype(np.int32)


def build(cluster, worker, learning_rate):
    """Builds the model. Parameters go to the servers in turn, the rest to this worker."""
    servers = [f"/job:ps/task:{i}" for i in range(len(cluster["ps"]))]
    random = np.random.default_rng(1)
    sizes = [64, 48, 10]
    with tw.Graph() as graph:
        x, y = tw.placeholder("float32", [None, 64], name="pixels"), tw.placeholder("int32", [None], name="labels")
        h, parameters = x, []
        for i, (n, m) in enumerate(zip(sizes, sizes[1:])):
            with tw.device(servers[i % len(servers)]):
                w = tw.Variable(random.standard_normal((n, m)).astype(np.float32) * np.float32(n ** -0.5), name=f"w{i}")
                b = tw.Variable(np.zeros(m, np.float32), name=f"b{i}")
            parameters += [w, b]
            with tw.device(f"/job:worker/task:{worker}"):
                h = tw.ops.bias_add(tw.ops.mat_mul(h, w), b)
                if i + 2 < len(sizes):
                    h = tw.ops.relu(h)
        with tw.device(f"/job:worker/task:{worker}"):
            loss = tw.ops.mean(tw.ops.sparse_softmax_cross_entropy_with_logits(h, y)[0], [0])
            right = tw.ops.mean(tw.ops.cast(tw.ops.equal(tw.ops.arg_max(h, 1, output_type="int32"), y), DstT="float32"), [0])
        step = tw.train.SGD(learning_rate).minimize(loss, count_steps=False)
        there = [tw.ops.var_is_initialized_op(p.handle) for p in parameters]
        start = tw.initializer()
    return graph, x, y, loss, right, step, start, there


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--plugin", action="append", default=[], help="a plugin to load, such as a transport")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--learning-rate", type=float, default=0.3)
    args = parser.parse_args()
    for plugin in args.plugin:
        tw.load_plugin(plugin)
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if "ps" not in config.get("cluster", {}):
        parser.error("there is no cluster with parameter servers; start it by `thalweg launch -n 2 --ps 2 -- python3 ...`")
    worker, workers = config["task"]["index"], len(config["cluster"]["worker"])
    pixels, labels = load(args.data)
    train_x, train_y = pixels[worker:-HELD_OUT:workers], labels[worker:-HELD_OUT:workers]
    graph, x, y, loss, right, step, start, there = build(config["cluster"], worker, args.learning_rate)
    with tw.Session(graph, target=os.environ["THALWEG_TARGET"]) as session:
        if worker == 0:
            session.run(start)
        while not all(session.run(there)):
            time.sleep(0.05)
        random, began, losses = np.random.default_rng(worker), time.monotonic(), []
        for i in range(args.steps):
            rows = random.integers(len(train_y), size=BATCH)
            losses.append(session.run([loss, step], {x: train_x[rows], y: train_y[rows]})[0])
            if i % 100 == 99:
                print(f"step {i + 1}: loss {np.mean(losses[-100:]):.3f}, {(i + 1) / (time.monotonic() - began):.0f} steps/s", flush=True)
        accuracy = session.run(right, {x: pixels[-HELD_OUT:], y: labels[-HELD_OUT:]})
        print(f"accuracy {accuracy:.3f} on digits that nobody trained on", flush=True)


if __name__ == "__main__":
    main()
