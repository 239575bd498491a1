"""A character-level language model whose softmax runs on the parameter servers: the output weights never leave them.

    mkdir -p /tmp/chars
    thalweg launch -n 2 --ps 2 --allow /tmp/chars -- python3 char_lm.py --data kjv.txt --folder /tmp/chars --softmax full

full:    each server computes the logits of its characters and their gradients. The worker sends its hidden state; the servers send it the
         largest logit, the sum and the true logit of each example, and then the gradient of the hidden state.
sampled: the servers send the worker the weights of the true characters and of a few sampled ones, and it sends back rows of gradients.

A GRU reads pieces of text; its weights are on the servers, too. Workers train synchronously, each on streams of its own, so the losses have
the same bits in every run. Perplexity is measured over all characters in both cases."""
import argparse
import json
import math
import os
import pathlib

import numpy as np

import thalweg as tw

STREAMS, PIECE, HELD_OUT = 16, 24, 32  # streams per batch, characters of each stream per batch, held-out streams of that length


class Text:
    def __init__(self, path, limit):
        data = np.frombuffer(pathlib.Path(path).read_bytes()[:limit], np.uint8)
        letters, numbers = np.unique(data, return_inverse=True)
        self.letters, numbers = len(letters), numbers.astype(np.int32)
        held = HELD_OUT * (PIECE + 1)
        self.training, self.held_out = numbers[:-held], numbers[-held:].reshape(HELD_OUT, -1)

    def batch(self, step, worker):
        """Returns characters and the characters that follow them, [PIECE, STREAMS] each."""
        at = np.random.default_rng([worker, step]).integers(len(self.training) - PIECE - 1, size=STREAMS)
        return sides(np.stack([self.training[a:a + PIECE + 1] for a in at]))


def sides(rows):
    return np.ascontiguousarray(rows[:, :-1].T), np.ascontiguousarray(rows[:, 1:].T)


class Model:
    def __init__(self, args, letters, servers, worker):
        devices, spread = [f"/job:ps/task:{k}" for k in range(servers)], tw.Spread("ps", servers)
        random, cells = np.random.default_rng(1), args.cells

        def uniform(shape, rows):
            return (random.uniform(-1, 1, shape) * cells ** -0.5).astype(np.float32)

        def zeros(shape, rows):
            return np.zeros(shape, np.float32)

        with tw.Graph() as self.graph:
            self.x, self.y = (tw.placeholder("int32", [PIECE, None], name=name) for name in ("characters", "next"))
            with spread.device():
                embedding = tw.Variable(uniform([letters, cells // 2], None), name="embedding")
            with spread.device():
                cell = tw.recurrent.GRUCell(cells // 2, cells, seed=2)
            weights = tw.ShardedTable(letters, cells, servers, name="weights", devices=devices, initial=uniform)
            biases = tw.ShardedTable(letters, (), servers, name="biases", devices=devices, initial=zeros)
            with tw.device(f"/job:worker/task:{worker}"):
                inputs = tw.ops.unpack(tw.ops.gather_v2(embedding, self.x, 0), num=PIECE)
                outputs, _ = cell.unroll(list(inputs))
                hidden, labels = tw.ops.concat_v2(outputs, 0), self.y.reshape(-1)
                self.full = tw.ops.mean(tw.sharded_softmax(weights, biases, labels, hidden), 0)
                self.loss = self.full
                if args.softmax == "sampled":
                    losses = tw.sharded_sampled_softmax(weights, biases, labels.reshape(-1, 1), hidden, args.sampled, seed=5)
                    self.loss = tw.ops.mean(losses, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--folder", required=True, help="checkpoints; the servers must be allowed to write there")
    parser.add_argument("--softmax", choices=["full", "sampled"], default="full")
    parser.add_argument("--plugin", action="append", default=[], help="a plugin to load, such as a transport")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--cells", type=int, default=64)
    parser.add_argument("--sampled", type=int, default=12, help="characters that are drawn for a step")
    parser.add_argument("--limit", type=int, default=2_000_000, help="bytes of the text to read")
    args = parser.parse_args()
    for plugin in args.plugin:
        tw.load_plugin(plugin)
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if "ps" not in config.get("cluster", {}):
        parser.error("there is no cluster with parameter servers; start it by `thalweg launch -n 2 --ps 2 --allow FOLDER -- python3 ...`")
    worker, workers, servers = config["task"]["index"], len(config["cluster"]["worker"]), len(config["cluster"]["ps"])
    text = Text(args.data, args.limit)
    model = Model(args, text.letters, servers, worker)
    with tw.Session(model.graph, target=os.environ["THALWEG_TARGET"]) as session:
        with model.graph:
            sync = tw.SyncReplicas(tw.train.Adam(0.005), workers, worker, device="/job:ps/task:0").minimize(model.loss)
        training = tw.SyncTraining(session, sync, pathlib.Path(args.folder) / args.softmax, chief=worker == 0, every_steps=200)

        def feeds(step):
            x, y = text.batch(step, worker)
            return {model.x: x, model.y: y}

        losses = []
        for step, loss in training.run(args.steps, model.loss, feeds):
            losses.append(loss)
            if len(losses) % max(args.steps // 5, 1) == 0:
                print(f"step {step + 1}: loss {np.mean(losses[-50:]):.3f}", flush=True)
        x, y = sides(text.held_out)
        loss = session.run(model.full, {model.x: x, model.y: y})
        print(f"held-out perplexity {math.exp(loss):.2f} of {text.letters} characters", flush=True)


if __name__ == "__main__":
    main()
