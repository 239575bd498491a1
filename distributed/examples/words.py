"""Word vectors: skip-gram over a real text, with two tables that are sharded over parameter servers.

    mkdir -p /tmp/words
    thalweg launch -n 2 --ps 4 --allow /tmp/words -- python3 words.py --data kjv.txt --folder /tmp/words

For each word of the text, the model learns to tell the words around it from sampled ones. Both tables, of the words and of the words that
are predicted, have a row for each word of the vocabulary. Row i is on server i % 4, because words are numbered by falling frequency. A
step looks up the rows of its words on the servers of their shards and sends rows back as gradients, so its cost does not depend on the
size of the vocabulary. Each worker reads its own part of the text and does not wait for the others."""
import argparse
import collections
import json
import os
import pathlib
import re

import numpy as np

import thalweg as tw

BATCH, WINDOW = 1024, 4
OFTEN = 1e-3  # a word with a larger share of the text is left out at random, so that other words become neighbours
ASKED = ["lord", "king", "water", "father", "bread", "seven"]


class Text:
    """The words of a file as numbers; 0 stands for every rare word."""

    def __init__(self, path, vocabulary):
        words = re.findall(r"[a-z]+", pathlib.Path(path).read_text().lower())
        self.words = ["?", *(word for word, _ in collections.Counter(words).most_common(vocabulary - 1))]
        number = {word: i for i, word in enumerate(self.words)}
        numbers = np.array([number.get(word, 0) for word in words], np.int32)
        share = np.bincount(numbers, minlength=len(self.words)) / len(numbers)
        kept = np.random.default_rng(0).random(len(numbers)) < np.sqrt(OFTEN / np.maximum(share, OFTEN))[numbers]
        self.numbers = numbers[kept & (numbers > 0)]

    def pairs(self, step, worker, workers):
        """Returns words and, for each word, one of those around it, from this worker's part of the text."""
        random = np.random.default_rng([worker, step])
        part = len(self.numbers) // workers
        at = worker * part + random.integers(WINDOW, part - WINDOW, size=BATCH)
        away = random.integers(1, WINDOW + 1, size=BATCH) * random.choice([-1, 1], size=BATCH)
        return self.numbers[at], self.numbers[at + away].reshape(-1, 1)


class Model:
    def __init__(self, args, rows, servers, worker):
        devices = [f"/job:ps/task:{k}" for k in range(servers)]
        with tw.Graph() as self.graph:
            tables = dict(shards=servers, devices=devices)
            self.vectors = tw.ShardedTable(rows, args.width, name="vectors", initial=evenly, **tables)
            weights = tw.ShardedTable(rows, args.width, name="weights", initial=zeros, **tables)
            biases = tw.ShardedTable(rows, (), name="biases", initial=zeros, **tables)
            with tw.device(f"/job:worker/task:{worker}"):
                self.word, self.near = tw.placeholder("int32", [None], name="word"), tw.placeholder("int32", [None, 1], name="near")
                self.looked_up = self.vectors.lookup(self.word)
                losses = tw.sharded_sampled_softmax(weights, biases, self.near, self.looked_up, args.sampled)
                self.loss, total = tw.ops.mean(losses, 0), tw.ops.sum(losses, 0)
            with tw.device("/job:ps/task:0"):
                self.count = tw.schedules.global_step()
                self.step = tw.train.Adagrad(args.learning_rate).minimize(total)


def evenly(shape, rows):
    return np.stack([np.random.default_rng(i).uniform(-0.5, 0.5, shape[1:]) / shape[1] for i in rows]).astype(np.float32)


def zeros(shape, rows):
    return np.zeros(shape, np.float32)


def nearest(vectors, text, word, n=5):
    """Returns the n words whose vectors have the most similar direction."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    order = np.argsort(-units @ units[text.words.index(word)])
    return [text.words[i] for i in order if text.words[i] not in (word, "?")][:n]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--folder", required=True, help="checkpoints; the servers must be allowed to write there")
    parser.add_argument("--plugin", action="append", default=[], help="a plugin to load, such as a transport")
    parser.add_argument("--steps", type=int, default=3000, help="of each worker")
    parser.add_argument("--vocabulary", type=int, default=4000)
    parser.add_argument("--width", type=int, default=64, help="numbers in a vector")
    parser.add_argument("--sampled", type=int, default=64, help="words that are drawn for a step")
    parser.add_argument("--learning-rate", type=float, default=0.1)
    args = parser.parse_args()
    for plugin in args.plugin:
        tw.load_plugin(plugin)
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if "ps" not in config.get("cluster", {}):
        parser.error("there is no cluster with parameter servers; start it by `thalweg launch -n 2 --ps 2 --allow FOLDER -- python3 ...`")
    worker, workers, servers = config["task"]["index"], len(config["cluster"]["worker"]), len(config["cluster"]["ps"])
    text = Text(args.data, args.vocabulary)
    model = Model(args, len(text.words), servers, worker)
    with tw.Session(model.graph, target=os.environ["THALWEG_TARGET"]) as session:
        training = tw.AsyncTraining(session, model.step, model.count, args.folder, chief=worker == 0, every_steps=1000)
        losses = []

        def feeds(step):
            word, near = text.pairs(step, worker, workers)
            return {model.word: word, model.near: near}

        for step, loss in training.run(args.steps * workers, model.loss, feeds):
            losses.append(loss)
            if len(losses) % max(args.steps // 5, 1) == 0:
                print(f"step {step}: loss {np.mean(losses[-200:]):.3f}", flush=True)
        if worker == 0:
            vectors = session.run(model.looked_up, {model.word: np.arange(len(text.words), dtype=np.int32)})
            print(f"loss {np.mean(losses[:50]):.3f} at first, {np.mean(losses[-50:]):.3f} in the end", flush=True)
            for word in ASKED:
                if word in text.words:
                    print(f"near '{word}': {' '.join(nearest(vectors, text, word))}", flush=True)


if __name__ == "__main__":
    main()
