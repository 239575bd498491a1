"""Several workers learn handwritten digits; the parameters are on other processes. A plot compares three ways of training.

    mkdir -p /tmp/run
    thalweg launch -n 2 --ps 2 --restart 3 --allow /tmp/run -- python3 digits.py --data digits.csv --folder /tmp/run --mode sync
    python3 digits.py --plot /tmp/run

async:  every worker applies its gradients as soon as it has them.
sync:   an update applies the mean of the gradients of all workers. The losses have the same bits at any speed and if workers die.
backup: like sync, but an update does not wait for the last worker; a gradient that arrives too late for its update is dropped.
single: one process alone, without a cluster and without thalweg launch.

Every worker runs this file. Worker 0 is the chief: it initializes the variables, or restores them from the last checkpoint, and saves
them. Read the file in this order: Model, trained, train; plot is independent."""
import argparse
import contextlib
import json
import os
import pathlib
import time

import numpy as np

import thalweg as tw

HELD_OUT = 360  # rows at the end of the file that are never used for training
BATCH = 32
SIZES = [64, 48, 10]
MODES = ["async", "sync", "backup"]


def load(path):
    """Returns pixels from 0 to 1, [n, 64], and labels."""
    rows = np.loadtxt(path, delimiter=",", dtype=np.float32)
    return rows[:, :64] / 16, rows[:, 64].astype(np.int32)


class Model:
    """The model. Its parameters are on the servers, balanced by size; the rest runs on this worker."""

    def __init__(self, servers, worker):
        def on_server(bytes):
            return spread.device(bytes) if spread else contextlib.nullcontext()

        spread = tw.Spread("ps", servers, by_size=True) if servers else None
        here = f"/job:worker/task:{worker}" if servers else ""
        random = np.random.default_rng(1)
        with tw.Graph() as self.graph:
            self.x, self.y = tw.placeholder("float32", [None, 64], name="pixels"), tw.placeholder("int32", [None], name="labels")
            h = self.x
            for i, (n, m) in enumerate(zip(SIZES, SIZES[1:])):
                with on_server(4 * n * m):
                    w = tw.Variable(random.standard_normal((n, m)).astype(np.float32) * np.float32(n ** -0.5), name=f"w{i}")
                with on_server(4 * m):
                    b = tw.Variable(np.zeros(m, np.float32), name=f"b{i}")
                with tw.device(here):
                    h = tw.ops.bias_add(tw.ops.mat_mul(h, w), b)
                    h = tw.ops.relu(h) if i + 2 < len(SIZES) else h
            with tw.device(here):
                self.loss = tw.ops.mean(tw.ops.sparse_softmax_cross_entropy_with_logits(h, self.y).loss, 0)
                self.right = tw.ops.mean(tw.ops.cast(tw.ops.equal(tw.ops.arg_max(h, 1, output_type="int32"), self.y), DstT="float32"), 0)


def trained(model, args, session, worker, workers):
    """Returns an iterator over (number, loss) of the training steps."""
    chief, folder, optimizer = worker == 0, pathlib.Path(args.folder) / args.mode, tw.train.SGD(args.learning_rate)
    rows = np.arange(worker, len(args.labels) - HELD_OUT, workers)  # this worker draws its batches from these rows

    def batch(step):
        chosen = rows[np.random.default_rng([worker, step]).integers(len(rows), size=BATCH)]
        return {model.x: args.pixels[chosen], model.y: args.labels[chosen]}

    how = dict(chief=chief, every_steps=args.save_every, wait=args.wait, background=args.background)
    with model.graph:
        if args.mode == "async":
            with tw.device("/job:ps/task:0"):
                count = tw.schedules.global_step()
                step = optimizer.minimize(model.loss)
            training = tw.AsyncTraining(session, step, count, folder, **how)
            steps = args.steps * workers
        else:
            needed = workers - (args.mode == "backup")
            sync = tw.SyncReplicas(optimizer, workers, worker, required=needed, device="/job:ps/task:0")
            training = tw.SyncTraining(session, sync.minimize(model.loss), folder, **how)
            steps = args.steps
    return training.run(steps, model.loss, batch)


def alone(model, args, session):
    """Trains in one process; yields the number and the loss of each step."""
    with model.graph:
        step, start = tw.train.SGD(args.learning_rate).minimize(model.loss), tw.initializer()
    session.run(start)
    for i in range(args.steps):
        rows = np.random.default_rng(i).integers(len(args.labels) - HELD_OUT, size=BATCH)
        yield i, session.run([model.loss, step], {model.x: args.pixels[rows], model.y: args.labels[rows]})[0]


def train(args):
    args.pixels, args.labels = load(args.data)
    config = json.loads(os.environ["TF_CONFIG"]) if args.mode != "single" else {"cluster": {}, "task": {"index": 0}}
    worker, workers = config["task"]["index"], len(config["cluster"].get("worker", [0]))
    model = Model(len(config["cluster"].get("ps", [])), worker)
    target = {"target": os.environ["THALWEG_TARGET"]} if args.mode != "single" else {}
    pathlib.Path(args.folder).mkdir(parents=True, exist_ok=True)
    with tw.Session(model.graph, **target) as session:
        steps = alone(model, args, session) if args.mode == "single" else trained(model, args, session, worker, workers)
        begun, losses = time.monotonic(), {}
        for step, loss in steps:
            losses[step] = (time.monotonic() - begun, float(loss))
            if len(losses) % 100 == 0:
                print(f"step {step}: loss {np.mean([l for _, l in list(losses.values())[-100:]]):.3f}", flush=True)
        write(pathlib.Path(args.folder) / f"{args.mode}-{worker}.csv", losses)
        accuracy = session.run(model.right, {model.x: args.pixels[-HELD_OUT:], model.y: args.labels[-HELD_OUT:]})
        print(f"accuracy {accuracy:.3f} on digits that nobody trained on", flush=True)


def write(path, losses):
    path.write_text("step,seconds,loss\n" + "".join(f"{step},{t:.6f},{l.hex()}\n" for step, (t, l) in sorted(losses.items())))


# ---- The plot ----

def plot(folder):
    """Writes the loss of worker 0 against seconds as SVG, for each way of training that the folder has."""
    left, top, width, height = 60, 40, 620, 320
    curves = {}
    for mode in MODES:
        path = pathlib.Path(folder) / f"{mode}-0.csv"
        if path.exists():
            rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
            curves[mode] = np.array([(float(t), float.fromhex(l)) for _, t, l in rows])
    if not curves:
        raise SystemExit(f"digits: {folder} has no curves; train with --mode first")
    longest, highest = (max(c[:, k].max() for c in curves.values()) for k in (0, 1))

    def text(x, y, words, anchor="start", fill="#7b8794"):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="13" fill="{fill}">{words}</text>'

    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 420" font-family="system-ui, sans-serif">',
             '<rect width="760" height="420" fill="#ffffff"/>', text(left, 24, "loss of training, a mean of 20 steps, against seconds")]
    for k in range(5):
        y, x = top + height * k / 4, left + width * k / 4
        parts += [f'<path d="M{left} {y:.1f}H{left + width}" stroke="#e4e7eb"/>',
                  text(left - 8, y + 4, f"{highest * (4 - k) / 4:.2f}", "end"),
                  text(x, top + height + 20, f"{longest * k / 4:.1f} s", "middle")]
    for k, ((mode, curve), colour) in enumerate(zip(curves.items(), ["#2f6fde", "#d9480f", "#2b8a3e"])):
        smooth = np.convolve(curve[:, 1], np.ones(20) / 20, "valid") if len(curve) >= 20 else curve[:, 1]
        points = zip(curve[-len(smooth):, 0], smooth)
        path = " ".join(f"{left + width * t / longest:.1f},{top + height * (1 - l / highest):.1f}" for t, l in points)
        parts += [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
                  text(left + width - 10, top + 18 + 20 * k, mode, "end", colour)]
    (pathlib.Path(folder) / "loss.svg").write_text("\n".join([*parts, "</svg>"]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--mode", choices=[*MODES, "single"], default="sync")
    parser.add_argument("--folder", default="/tmp/digits", help="checkpoints and curves; the servers must be allowed to write there")
    parser.add_argument("--plot", metavar="FOLDER", help="draw FOLDER/loss.svg of the curves there, and train nothing")
    parser.add_argument("--plugin", action="append", default=[], help="a plugin to load, such as a transport")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--learning-rate", type=float, default=0.3)
    parser.add_argument("--save-every", type=int, default=100, metavar="STEPS")
    parser.add_argument("--background", action="store_true", help="train on while the servers write a checkpoint")
    parser.add_argument("--wait", type=float, default=60, metavar="SECONDS", help="how long processes may be away")
    args = parser.parse_args()
    if args.plot:
        return plot(args.plot)
    if not args.data:
        parser.error("--data is needed")
    if args.mode != "single" and "TF_CONFIG" not in os.environ:
        parser.error("there is no cluster; start it by `thalweg launch -n 2 --ps 2 --allow FOLDER -- python3 ...`, or alone by --mode single")
    for plugin in args.plugin:
        tw.load_plugin(plugin)
    train(args)


if __name__ == "__main__":
    main()
