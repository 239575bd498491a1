"""A model in stages, each on a task of its own, and a batch in parts that go through the stages one behind the other.

    thalweg launch -n 1 --ps 4 -- python3 pipeline.py --data digits.csv --trace /tmp/pipeline.json
    python3 pipeline.py --data digits.csv --alone          # the same numbers in one process

While stage 1 computes part 0, stage 0 computes part 1: the stages work at the same time on one batch. At its beginning and its end
a step has stages without work, the bubble. With S stages and M equal parts it is (S - 1) / (M + S - 1) of the step; more parts make it
smaller. The program draws the last step, and says how large its bubble was.

gpipe:  each stage computes all parts forward, then all backward. It keeps what the backward pass needs of all M parts.
1f1b:   one part forward, one backward: stage s computes a part forward only when an earlier one has come back, and keeps what is needed
        of S - s parts. Control edges are all that it takes. The bubble is the same.

All parts of a batch see the same weights, which are updated at the end of the step, so the losses are those of whole batches.
Read the file in this order: Pipeline, train, spans, bubble."""
import argparse
import contextlib
import os
import re

import numpy as np

import thalweg as tw

BATCH = 512
SCHEDULES = ["gpipe", "1f1b"]


def load(path):
    """Returns pixels from 0 to 1, [n, 64], and labels."""
    rows = np.loadtxt(path, delimiter=",", dtype=np.float32)
    return rows[:, :64] / 16, rows[:, 64].astype(np.int32)


def start(stages, width):
    """Returns the initial weights and biases of each stage."""
    random = np.random.default_rng(1)
    sizes = [64] + [width] * (stages - 1) + [10]
    return [(random.standard_normal((n, m)).astype(np.float32) * np.float32((2 / n) ** 0.5), np.zeros(m, np.float32))
            for n, m in zip(sizes, sizes[1:])]


class Pipeline:
    """The graph. devices: one for each stage.   parts: of a batch.   width: of the layers between the stages."""

    def __init__(self, devices, parts, schedule, learning_rate, width):
        stages = len(devices)
        self.weights = []
        with tw.Graph() as self.graph:
            for s, (w, b) in enumerate(start(stages, width)):
                with tw.device(devices[s]):
                    self.weights.append([tw.Variable(w, name=f"w{s}"), tw.Variable(b, name=f"b{s}")])
            self.x, self.y = tw.placeholder("float32", [BATCH, 64], name="pixels"), tw.placeholder("int32", [BATCH], name="labels")
            rows = BATCH // parts
            losses, gradients, back = [], [[[], []] for _ in devices], [[] for _ in devices]
            for m in range(parts):
                h, inputs, outputs = self.x[m * rows:(m + 1) * rows], [], []
                for s, device in enumerate(devices):
                    earlier = m - (stages - s)  # the part that must have come back
                    after = [back[s][earlier]] if schedule == "1f1b" and earlier >= 0 else []
                    with tw.device(device), tw.name_scope(f"stage{s}/forward{m}"), tw.control_dependencies(after):
                        inputs.append(tw.ops.identity(h))
                        h = tw.ops.bias_add(tw.ops.mat_mul(inputs[s], self.weights[s][0]), self.weights[s][1])
                        if s + 1 < stages:
                            h = tw.ops.relu(h)
                        else:
                            h = tw.ops.mean(tw.ops.sparse_softmax_cross_entropy_with_logits(h, self.y[m * rows:(m + 1) * rows]).loss, 0)
                        outputs.append(h)
                losses.append(h)
                dy = None
                for s in reversed(range(stages)):
                    # Gradients place their operations beside those of the forward pass.
                    dy, dw, db = tw.gradients(outputs[s], [inputs[s], *self.weights[s]], None if dy is None else [dy])
                    with tw.device(devices[s]):
                        back[s].append(tw.group(dw, db, dy))
                    gradients[s][0].append(dw)
                    gradients[s][1].append(db)
            with tw.device(devices[-1]):
                self.loss = tw.ops.add_n(losses) * np.float32(1 / parts)
            updates = []
            for s, device in enumerate(devices):
                with tw.device(device), tw.name_scope(f"stage{s}/update"):
                    updates += [v.assign_sub(tw.ops.add_n(g) * np.float32(learning_rate / parts))
                                for v, g in zip(self.weights[s], gradients[s])]
            self.step = tw.group(*updates)
            self.start = tw.initializer()


def train(args, session, model):
    """Trains; returns the losses, and the statistics of the last step."""
    pixels, labels = load(args.data)
    session.run(model.start)
    losses, stats = [], tw.StepStats()
    for i in range(args.steps):
        rows = np.random.default_rng(i).integers(len(labels), size=BATCH)
        last = stats if i + 1 == args.steps else None
        losses.append(session.run([model.loss, model.step], {model.x: pixels[rows], model.y: labels[rows]}, stats=last)[0])
    return losses, stats


# ---- The bubble ----

def spans(nodes):
    """Returns {stage: [(from, to, "forward" or "backward", part)]} of the nodes of a step that compute, in nanoseconds, by their names."""
    found = {}
    for n in nodes:
        match = re.match(r"(gradients\w*/)?stage(\d+)/forward(\d+)/", n.name)
        if match and n.op not in ("_Send", "_Recv", "ReadVariableOp") and not n.is_copy:
            way = "backward" if match[1] else "forward"
            found.setdefault(int(match[2]), []).append((n.start_ns, n.start_ns + n.busy_ns, way, int(match[3])))
    return {s: sorted(found[s]) for s in sorted(found)}


def bubble(found):
    """Returns the part of the time, from the first work of any stage to the last, in which a stage has none; the mean of the stages."""
    first, last = min(f[0][0] for f in found.values()), max(end for f in found.values() for _, end, *_ in f)
    busy = 0
    for f in found.values():
        reached = first
        for begin, end, *_ in f:
            busy += max(end - max(begin, reached), 0)
            reached = max(reached, end)
    return 1 - busy / (len(found) * (last - first))


def drawn(found, columns=100):
    """Returns a line for each stage: the number of the part that it computes forward, or its letter (a for 0) backward; a dot: nothing."""
    first, last = min(f[0][0] for f in found.values()), max(end for f in found.values() for _, end, *_ in f)
    lines = []
    for s, f in found.items():
        line = ["."] * columns
        for begin, end, way, part in f:
            for c in range((begin - first) * columns // (last - first), max(-(-(end - first) * columns // (last - first)), 0)):
                line[c] = "0123456789"[part % 10] if way == "forward" else "abcdefghij"[part % 10]
        lines.append(f"stage {s} {''.join(line)}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--alone", action="store_true", help="all stages in this process")
    parser.add_argument("--stages", type=int, default=4)
    parser.add_argument("--parts", type=int, default=8, help=f"of a batch of {BATCH}; they have equal sizes")
    parser.add_argument("--width", type=int, default=512, help="of the layers between the stages")
    parser.add_argument("--schedule", choices=SCHEDULES, default="1f1b")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--trace", metavar="FILE", help="write the last step for ui.perfetto.dev")
    parser.add_argument("--plugin", action="append", default=[], help="a plugin to load, such as a transport")
    args = parser.parse_args()
    if args.parts < 1 or BATCH % args.parts:
        parser.error(f"--parts is {args.parts}; {BATCH} rows must be that many parts of equal size")
    if args.stages < 1:
        parser.error(f"--stages is {args.stages}; there is a stage or more")
    if not args.alone and "THALWEG_TARGET" not in os.environ:
        parser.error(f"there is no cluster; start it by `thalweg launch -n 1 --ps {args.stages} -- python3 pipeline.py ...`, or train "
                     "without one by --alone")
    for plugin in args.plugin:
        tw.load_plugin(plugin)
    devices = ["" if args.alone else f"/job:ps/task:{s}" for s in range(args.stages)]
    model = Pipeline(devices, args.parts, args.schedule, args.learning_rate, args.width)
    with contextlib.closing(tw.Session(model.graph, **({} if args.alone else {"target": os.environ["THALWEG_TARGET"]}))) as session:
        losses, stats = train(args, session, model)
    for i in range(0, len(losses), max(len(losses) // 10, 1)):
        print(f"step {i}: loss {losses[i]:.4f} ({float(losses[i]).hex()})")
    print(f"last: loss {losses[-1]:.4f} ({float(losses[-1]).hex()})")
    if args.trace:
        with open(args.trace, "w", encoding="utf-8") as file:
            file.write(stats.to_json())
    found = spans(stats.nodes)
    print("\n".join(drawn(found)))
    ideal = (args.stages - 1) / (args.parts + args.stages - 1)
    print(f"bubble {bubble(found):.3f} of the step; {ideal:.3f} if all stages took the same time and values none to cross")


if __name__ == "__main__":
    main()
