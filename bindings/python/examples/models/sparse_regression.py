"""Logistic regression on a million sparse features with the optimizer FTRL, as of "Ad Click Prediction: a View from the
Trenches" (McMahan et al., 2013). main() tells verses of the New Testament from those of the Old one by words and pairs of words."""
import re
import zlib

import numpy as np

import thalweg as tw
import training
from thalweg.nn import Embedding, Module

FEATURES, LONGEST = 1 << 20, 192  # numbers of features; most features of an example


class SparseRegression(Module):
    """Takes the numbers of the features that an example has, [batch, n], filled up with 0."""

    def __init__(self, features):
        super().__init__()
        self.weights = Embedding(features, 1, kernel=("constant", 0.0))

    def build(self, ids):
        self.bias = tw.Variable(np.float32(0), name="bias")

    def forward(self, ids):
        present = (ids != 0).astype("float32")
        return (self.weights(ids)[:, :, 0] * present).sum(1) + self.bias


def network(features=FEATURES):
    return SparseRegression(features)


def example(batch, features=FEATURES):
    rng = np.random.default_rng(0)
    ids = rng.integers(1, features, (batch, LONGEST)).astype(np.int32)
    return (ids * (rng.random(ids.shape) < 0.25),), (rng.integers(0, 2, batch).astype(np.float32),)


loss = "sigmoid_cross_entropy"


def optimizer():
    return tw.train.Ftrl(0.1, initial_accumulator=0.1, l1=0.001)


def numbered(text):
    """The numbers of the words and the pairs of words of a text, in no order; a word twice counts once."""
    words = re.findall(r"[a-z]+", text.lower())
    found = {1 + zlib.crc32(" ".join(part).encode()) % (FEATURES - 1) for n in (1, 2) for part in zip(*(words[i:] for i in range(n)))}
    return sorted(found)[:LONGEST]


def verses(path):
    """The features of each verse [verses, LONGEST], and whether it is in the New Testament."""
    lines = path.read_text().splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("The book of the generation of Jesus Christ")), None)
    if first is None:
        raise ValueError(f"'{path}' lacks the first verse of the New Testament; main() needs kjv.txt")
    ids = np.zeros((len(lines), LONGEST), np.int32)
    for row, line in zip(ids, lines):
        numbers = numbered(line)
        row[:len(numbers)] = numbers
    return ids, (np.arange(len(lines)) >= first).astype(np.float32)


def main(arguments=None):
    given = training.parsed(training.options(__doc__, "kjv.txt", epochs=3, batch=64), arguments)
    train, test = training.split(*verses(given.data))
    measures = {"auc": lambda z, y: tw.metrics.auc(tw.nn.sigmoid(z), y)}
    trainer = tw.train.Trainer(network(), loss, optimizer, measures, threads=given.threads)
    trainer.fit(train, given.epochs, batch=given.batch, seed=given.seed, validation=test, logdir=given.logdir)
    area = trainer.evaluate(test)["auc"]
    training.said("sparse_regression", "area under the curve", area, given.epochs)
    return area


if __name__ == "__main__":
    main()
