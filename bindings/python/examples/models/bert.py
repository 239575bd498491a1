"""An encoder of the shape of BERT-base (Devlin et al., 2018), with the heads of its first training: masked words and next sentence.

    python3 bert.py --data kjv.txt      # a small one learns to fill gaps in a text, by the character"""
import numpy as np

import texts
import thalweg as tw
import training


def initial(width):
    """Of kernels and tables: a deviation of 0.02 at the width of 768, and the same sums at others."""
    return dict(kernel=("truncated_normal", 0.02 * (768 / width) ** 0.5))


class Block(tw.nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        how = initial(width)
        self.attention, self.norm_1 = tw.nn.MultiHeadAttention(heads, **how), tw.nn.LayerNorm(1e-12)
        self.mlp = tw.nn.Sequential(tw.nn.Dense(4 * width, "gelu", **how), tw.nn.Dense(width, **how))
        self.norm_2, self.dropout = tw.nn.LayerNorm(1e-12), tw.nn.Dropout(dropout)

    def forward(self, x, bias=None):
        x = self.norm_1(x + self.dropout(self.attention(x, mask=bias)))
        return self.norm_2(x + self.dropout(self.mlp(x)))


class BERT(tw.nn.Module):
    def __init__(self, vocabulary=30522, length=512, width=768, layers=12, heads=12, types=2, dropout=0.1):
        super().__init__()
        self.tokens, self.places, self.types = (tw.nn.Embedding(rows, width, **initial(width)) for rows in (vocabulary, length, types))
        self.norm, self.dropout = tw.nn.LayerNorm(1e-12), tw.nn.Dropout(dropout)
        self.blocks = [Block(width, heads, dropout) for _ in range(layers)]
        self.pooler = tw.nn.Dense(width, "tanh", **initial(width))

    def forward(self, tokens, types=None, mask=None):
        """Returns a vector for each token [batch, n, width], and one for the text. types: the sentence of each token, 0 or 1.
        mask: 1 for tokens, 0 for padding [batch, n]; None: there is no padding."""
        n = tokens.shape[1] or tw.ops.shape(tokens)[1]
        sentence = self.types(tw.constant(np.int32([[0]])) if types is None else types)
        x = self.dropout(self.norm(self.tokens(tokens) + self.places(tw.ops.range(0, n)) + sentence))
        bias = None if mask is None else (mask.astype("float32")[:, None, None] - 1) * 1e9
        for block in self.blocks:
            x = block(x, bias)
        return x, self.pooler(x[:, 0])


class Pretraining(tw.nn.Module):
    """Logits of the word at each place, whose output weights are the table of the words, and of the next sentence."""

    def __init__(self, vocabulary=30522, length=512, width=768, layers=12, heads=12, dropout=0.1):
        super().__init__()
        self.bert = BERT(vocabulary, length, width, layers, heads, dropout=dropout)
        self.vocabulary, self.width = vocabulary, width
        self.hidden, self.norm = tw.nn.Dense(width, "gelu", **initial(width)), tw.nn.LayerNorm(1e-12)
        self.follows = tw.nn.Dense(2, **initial(width))

    def build(self, *_, **__):
        self.bias = tw.Variable(np.zeros(self.vocabulary, np.float32), name="bias")

    def forward(self, tokens, types=None, mask=None):
        x, pooled = self.bert(tokens, types, mask)
        h = self.norm(self.hidden(x)).reshape(-1, self.width)
        words = tw.ops.bias_add(tw.ops.mat_mul(h, self.bert.tokens.table, transpose_b=True), self.bias)
        return [words.reshape(-1, x.shape[1] or tw.ops.shape(x)[1], self.vocabulary), self.follows(pooled)]


network = Pretraining


def example(batch, length=512, vocabulary=30522):
    random = np.random.default_rng(0)
    tokens, words = (random.integers(vocabulary, size=(batch, length), dtype=np.int32) for _ in range(2))
    types = np.repeat(np.int32([[0] * (length // 2) + [1] * (length - length // 2)]), batch, 0)
    mask = np.ones((batch, length), np.int32)
    asked, follows = (random.random((batch, length)) < 0.15).astype(np.float32), random.integers(2, size=batch, dtype=np.int32)
    return (tokens, types, mask), (words, asked, follows)


def words_loss(logits, words, asked):
    """The mean loss of the words that are asked for, which have a 1 in `asked`."""
    losses = tw.ops.sparse_softmax_cross_entropy_with_logits(logits.reshape(-1, logits.shape[-1]), words.reshape(-1)).loss
    asked = asked.reshape(-1)
    return (losses * asked).sum() / tw.ops.maximum(asked.sum(), 1.0)


def loss(outputs, words, asked, follows):
    return words_loss(outputs[0], words, asked) + tw.ops.sparse_softmax_cross_entropy_with_logits(outputs[1], follows).loss.mean()


def optimizer(rate=1e-4, steps=1_000_000):
    return tw.train.AdamW(tw.schedules.warm_up(tw.schedules.polynomial(rate, steps, 0.0), steps // 100), weight_decay=0.01, epsilon=1e-6)


def gaps(rows, letters, seed):
    """Pieces of a text with gaps in 15 % of the places: tokens, words and places, and whether the second half follows the first."""
    random = np.random.default_rng(seed)
    follows, half = random.integers(2, size=len(rows), dtype=np.int32), rows.shape[1] // 2
    rows = np.where((follows == 0)[:, None] & (np.arange(rows.shape[1]) >= half), rows[random.permutation(len(rows))], rows)
    asked = random.random(rows.shape) < 0.15
    return np.where(asked, letters, rows).astype(np.int32), rows, asked.astype(np.float32), follows


def accuracy(outputs, words, asked, follows):
    return tw.metrics.accuracy(outputs[0], words, asked)


def main(arguments=None):
    parser = training.options(__doc__, "kjv.txt", epochs=2)
    given = training.parsed(parser, arguments)
    letters, numbers = texts.characters(given.data, 1_000_000)
    rows = numbers[:len(numbers) // 16 * 16].reshape(-1, 16)
    net = Pretraining(len(letters) + 1, 16, 64, layers=3, heads=4)
    trainer = tw.train.Trainer(net, loss, lambda: optimizer(2e-3, 4000), {"accuracy": accuracy}, n_inputs=1, clip=1.0,
                               threads=given.threads)
    learnt = tw.Iterator.of_batches(
        lambda epoch: tw.train.Batches(*gaps(rows[:-1000], len(letters), epoch), size=given.batch, seed=epoch), 4)
    trainer.fit(learnt, given.epochs, logdir=given.logdir)
    reached = trainer.evaluate(gaps(rows[-1000:], len(letters), 10**6))["accuracy"]
    training.said("bert", "held-out accuracy of masked characters", reached, given.epochs)
    return reached


if __name__ == "__main__":
    main()
