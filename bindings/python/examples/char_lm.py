"""A character-level language model: an LSTM learns from real English text which character comes next, and then writes some of its own.

    python3 char_lm.py --data kjv.txt --out char_lm

Each training step reads the next piece of several streams of text and goes on from the LSTM's state after the last piece, but gradients
reach back to the beginning of the piece only (truncated back-propagation). All that a step leaves to the next is in variables, and so in
the checkpoints: a run that was stopped goes on as if it had not been. Read it in this order: Model, train, write, main.
c_api/examples/char_lm.c is the same program; either goes on from the other's checkpoints."""
import argparse
import math
import pathlib
import time

import numpy as np

import thalweg as tw

STREAMS, PIECE = 32, 64     # characters that a training step reads: PIECE of each stream
HELD_OUT = 128, 128         # pieces at the end of the text that are never trained on, and their length
EVERY = 25                  # steps between two looks at them


class Text:
    """The characters of a file, numbered in their order: streams to train on, and pieces that are held out."""

    def __init__(self, path):
        data = np.frombuffer(pathlib.Path(path).read_bytes(), np.uint8)
        if len(data) < HELD_OUT[0] * HELD_OUT[1] + STREAMS * PIECE + 2:
            raise ValueError(f"{path}: {len(data)} characters are too few")
        self.letters, numbers = np.unique(data, return_inverse=True)
        count, length = HELD_OUT
        held = count * length + 1
        self.held_out = pieces(numbers[-held:], count)
        self.streams = pieces(numbers[:(len(numbers) - held - 1) // STREAMS * STREAMS + 1], STREAMS)

    def piece(self, step):
        """Characters of all streams and those that follow them: [PIECE, STREAMS] each. After the last piece comes the first again."""
        at = step % (len(self.streams[0]) // PIECE) * PIECE
        return tuple(side[at:at + PIECE] for side in self.streams)


def pieces(numbers, count):
    """`count` parts of one length as columns, and the same one character later."""
    numbers = numbers.astype(np.int32)
    return tuple(np.ascontiguousarray(part.reshape(count, -1).T) for part in (numbers[:-1], numbers[1:]))


# ---- The model ----

class Model:
    def __init__(self, letters, cells, seed):
        with tw.Graph() as self.graph:
            self.x, self.y = (tw.placeholder("int32", [None, None], name=name) for name in ("characters", "next"))
            self.embedding = tw.Variable(uniform([letters, cells // 4], 0.1, seed + 1), name="embedding")
            self.cell = tw.recurrent.LSTMCell(cells // 4, cells, seed=seed + 2)
            self.weights = tw.Variable(uniform([cells, letters], cells ** -0.5, seed + 3), name="output/weights")
            self.bias = tw.Variable(np.zeros(letters, np.float32), name="output/bias")
            self.state = [tw.Variable(np.zeros((STREAMS, cells), np.float32), name=f"state/{part}", trainable=False) for part in "ch"]

            loss, last = self.loss_from([part.read() for part in self.state])
            self.held_out_loss, _ = self.loss_from(None)
            rate = tw.schedules.exponential(0.005, steps=500, factor=0.5)
            update = tw.train.Adam(rate).minimize(loss, clip=1.0)
            self.smoothed = tw.Variable(np.float32(math.log(letters)), name="smoothed_loss", trainable=False)
            smooth = self.smoothed.assign_add((loss - self.smoothed) * 0.05)
            self.step = tw.group(update, smooth, *(part.assign(now) for part, now in zip(self.state, last)), name="step")
            self.seed, self.cells = seed, cells
            self.begin, self.length = tw.placeholder("int32", [], name="begin"), tw.placeholder("int32", [], name="length")
            self.text = self.written()
            self.init = tw.initializer(name="init")

    def loss_from(self, state):
        """The mean loss of a piece, and the state behind it."""
        outputs, state = self.cell.loop(tw.ops.gather_v2(self.embedding, self.x, 0), state=state)
        logits = self.logits(outputs.reshape(-1, self.cell_size()))
        losses = tw.ops.sparse_softmax_cross_entropy_with_logits(logits, self.y.reshape(-1)).loss
        return losses.mean(), state

    def cell_size(self):
        return self.weights.shape[0]

    def logits(self, outputs):
        return outputs @ self.weights + self.bias

    def written(self):
        """`length` characters after `begin`, each drawn by what the model thinks comes next: a loop in the graph."""
        zeros = np.zeros((1, self.cell_size()), np.float32)

        def more(i, *_):
            return i < self.length

        def write(i, character, c, h, text):
            output, (c, h) = self.cell.step(tw.ops.gather_v2(self.embedding, character, 0), (c, h))
            drawn = tw.ops.multinomial(self.logits(output), 1, seed=self.seed + 4, seed2=5, output_dtype="int32")[0]
            return [i + 1, drawn, c, h, tw.ops.tensor_scatter_update(text, i.reshape(1, 1), drawn)]

        text = tw.ops.fill(self.length.reshape(1), np.int32(0))
        return tw.while_loop(more, write, [0, self.begin.reshape(1), zeros, zeros, text])[-1]


def uniform(shape, reach, seed):
    return tw.ops.random_uniform(shape, dtype="float32", seed=seed, seed2=seed) * (2 * reach) - reach


# ---- Training ----

def train(session, model, text, out, steps, quiet, log=None):
    """Goes on from the newest checkpoint up to that step. Answers the curve: (step, perplexity in training, perplexity held out)."""
    begun = time.monotonic()
    with tw.Checkpointer(session, out / "checkpoints", every_steps=EVERY, keep_last=2) as checkpoints:
        first = checkpoints.restore()
        curve = [row for row in read_curve(out / "curve.csv") if row[0] <= first]
        for step in range(first, steps):
            x, y = text.piece(step)
            session.run(model.step, {model.x: x, model.y: y})
            if (step + 1) % EVERY == 0:
                x, y = text.held_out
                losses = session.run([model.smoothed, model.held_out_loss], {model.x: x, model.y: y})
                curve.append((step + 1, *(float(f"{math.exp(loss):.6g}") for loss in losses)))
                write_curve(out / "curve.csv", curve)
                if log:
                    log.scalars({"perplexity/training": curve[-1][1], "perplexity/held out": curve[-1][2]}, step + 1)
                rate = (step + 1 - first) / (time.monotonic() - begun)
                if not quiet:
                    print(f"step {step + 1}/{steps}  perplexity {curve[-1][1]:.2f} in training, {curve[-1][2]:.2f} held out  "
                          f"{rate * STREAMS * PIECE:.0f} characters/s  {(steps - step - 1) / rate:.0f} s left", flush=True)
            checkpoints.step(step + 1)
    return curve


def read_curve(path):
    lines = path.read_text().splitlines()[1:] if path.exists() else []
    return [(int(step), float(a), float(b)) for step, a, b in (line.split(",") for line in lines)]


def write_curve(path, curve):
    path.write_text("step,training,held out\n" + "".join(f"{step},{a:.6g},{b:.6g}\n" for step, a, b in curve))


# ---- What is left behind ----

def plot(path, curve):
    """The perplexities over the steps, on a logarithmic axis, as SVG."""
    left, top, width, height = 60, 60, 620, 320
    low, high = (f(p for _, *row in curve for p in row) for f in (min, max))
    low, high = math.log(low) - 0.05, math.log(high) + 0.05

    def y(perplexity):
        return top + height * (high - math.log(perplexity)) / (high - low)

    def text(x, y, words, anchor="start", fill="#7b8794", size=13):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}">{words}</text>'

    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 440" font-family="system-ui, sans-serif">',
             '<rect width="760" height="440" fill="#ffffff"/>',
             text(left, 30, f"Perplexity of text that was held out: {curve[-1][2]:.2f} after {curve[-1][0]} steps", "start", "#1f2933", 18)]
    for tick in (2, 3, 4, 5, 7, 10, 15, 20, 30, 50):
        if low < math.log(tick) < high:
            parts += [f'<path d="M{left} {y(tick):.1f}h{width}" stroke="#e4e7eb"/>', text(left - 8, y(tick) + 4, tick, "end")]
    for i in range(6):
        parts.append(text(left + width * i / 5, top + height + 22, round(curve[-1][0] * i / 5), "middle"))
    for column, colour, name in ((1, "#b9d0f2", "training"), (2, "#2467c8", "held out")):
        points = " ".join(f"{left + width * row[0] / curve[-1][0]:.1f},{y(row[column]):.1f}" for row in curve)
        parts += [f'<polyline fill="none" stroke="{colour}" stroke-width="2.2" points="{points}"/>',
                  text(left + width - 120 + 70 * (column - 1), top - 8, name, fill=colour)]
    path.write_text("\n".join([*parts, text(left + width / 2, top + height + 46, "step", "middle"), "</svg>\n"]))


def write(session, model, text, length):
    """What the model writes after the end of a line."""
    begin = int(np.searchsorted(text.letters, ord("\n")))
    numbers = session.run(model.text, {model.begin: begin, model.length: length})
    return text.letters[numbers].tobytes().decode("utf-8", "replace")


# ---- The command line ----

def main():
    parser = argparse.ArgumentParser(description="An LSTM learns which character comes next, and writes.")
    parser.add_argument("--data", default="kjv.txt", help="a text; tools/setup --print-data says where kjv.txt is")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("char_lm"), help="folder for checkpoints, curve.csv, "
                        "perplexity.svg, text.txt; a run that finds checkpoints there goes on from the newest")
    parser.add_argument("--steps", type=int, default=1000, help="training steps in all, runs before this one included")
    parser.add_argument("--cells", type=int, default=128, help="of the LSTM")
    parser.add_argument("--length", type=int, default=500, help="characters to write at the end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--logdir", type=pathlib.Path, help="folder for TensorBoard and thalweg plot: perplexities, the graph, the text")
    parser.add_argument("--threads", type=int, default=0, help="0: as many as there are processors")
    parser.add_argument("--quiet", action="store_true", help="only the last line")
    options = parser.parse_args()
    if options.steps < EVERY:
        parser.error(f"--steps takes a number of at least {EVERY}, not {options.steps}")

    try:
        text = Text(options.data)
        options.out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as e:
        parser.exit(1, f"char_lm: {e}; --data says where the text is, --out where results go\n")
    model = Model(len(text.letters), options.cells, options.seed)
    with tw.Session(model.graph, threads=options.threads) as session:
        session.run(model.init)
        log = options.logdir and tw.SummaryWriter(options.logdir)
        if log:
            log.graph(model.graph)
        curve = train(session, model, text, options.out, options.steps, options.quiet, log)
        written = write(session, model, text, options.length)
        if log:
            log.text("written", written, options.steps)
            log.close()
    (options.out / "text.txt").write_text(written)
    plot(options.out / "perplexity.svg", curve)
    if not options.quiet:
        print(f"\n{written}\n")
    print(f"char_lm: held-out perplexity {curve[-1][2]:.2f} after {curve[-1][0]} steps")


if __name__ == "__main__":
    main()
