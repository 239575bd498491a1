"""A language model of the shape of GPT-2 small (Radford et al., 2019) that writes with a cache of keys and values.

    python3 gpt.py --data kjv.txt       # a small one learns a text by the character, and continues it"""
import numpy as np

import texts
import thalweg as tw
import training

NORMAL = ("normal", 0.02)


class Block(tw.nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm_1, self.norm_2 = tw.nn.LayerNorm(), tw.nn.LayerNorm()
        self.attention = tw.nn.MultiHeadAttention(heads, kernel=NORMAL)
        self.mlp = tw.nn.Sequential(tw.nn.Dense(4 * width, "gelu_tanh", kernel=NORMAL), tw.nn.Dense(width, kernel=NORMAL))
        self.dropout = tw.nn.Dropout(dropout)

    def forward(self, x, cache=None):
        y = self.attention(self.norm_1(x), causal=True, cache=cache)
        y, *cache = y if cache else (y,)
        x = x + self.dropout(y)
        return x + self.dropout(self.mlp(self.norm_2(x))), cache


class GPT(tw.nn.Module):
    def __init__(self, vocabulary=50257, length=1024, width=768, layers=12, heads=12, dropout=0.1):
        super().__init__()
        self.vocabulary, self.width, self.heads = vocabulary, width, heads
        self.tokens = tw.nn.Embedding(vocabulary, width, kernel=NORMAL)
        self.places = tw.nn.Embedding(length, width, kernel=NORMAL)
        self.dropout = tw.nn.Dropout(dropout)
        self.blocks = [Block(width, heads, dropout) for _ in range(layers)]
        self.norm = tw.nn.LayerNorm()

    def forward(self, tokens, caches=None, position=0):
        """The logits of the tokens after these [batch, n]. With caches, `tokens` begin at a position, and the new caches are a
        second result."""
        n, after = tokens.shape[1] or tw.ops.shape(tokens)[1], []
        x = self.dropout(self.tokens(tokens) + self.places(tw.ops.range(0, n) + position))
        for i, block in enumerate(self.blocks):
            x, cache = block(x, caches and (*caches[i], position))
            after.append(cache)
        x = self.norm(x).reshape(-1, self.width)
        logits = tw.ops.mat_mul(x, self.tokens.table, transpose_b=True).reshape(-1, n, self.vocabulary)  # the head is the table
        return (logits, after) if caches else logits

    def generate(self, prompt, length, **how):
        """`length` tokens behind each prompt [batch, n]. how: as in tw.generation.generate: temperature, k, end, seed."""
        n, batch = (prompt.shape[i] or tw.ops.shape(prompt)[i] for i in (1, 0))
        empty = tw.ops.fill([batch, self.heads, n + length, self.width // self.heads], np.float32(0))
        logits, caches = self(prompt, [(empty, empty) for _ in self.blocks], 0)

        def step(token, i, caches):
            logits, caches = self(token[:, None], caches, i + n)
            return logits[:, 0], caches

        return tw.generation.generate(step, logits[:, -1], caches, length, **how)


network = GPT


def example(batch, length=1024, vocabulary=50257):
    tokens = np.random.default_rng(0).integers(vocabulary, size=(batch, length + 1), dtype=np.int32)
    return (tokens[:, :-1],), (tokens[:, 1:],)


def loss(logits, targets):
    flat = logits.reshape(-1, logits.shape[-1])
    return tw.ops.sparse_softmax_cross_entropy_with_logits(flat, targets.reshape(-1)).loss


def perplexity(logits, targets):
    return tw.metrics.perplexity(loss(logits, targets))


def optimizer(rate=6e-4, steps=600_000):
    return tw.train.AdamW(tw.schedules.warm_up(tw.schedules.cosine(rate, steps), steps // 300), weight_decay=0.1, beta2=0.95)


def main(arguments=None):
    parser = training.options(__doc__, "kjv.txt", epochs=1)
    given = training.parsed(parser, arguments)
    letters, numbers = texts.characters(given.data, 1_000_000)
    net = GPT(len(letters), 512, width=128, layers=3, heads=4)
    trainer = tw.train.Trainer(net, loss, lambda: optimizer(2e-3, 600), {"perplexity": perplexity}, clip=1.0, threads=given.threads)
    learnt = texts.pieces(numbers[:-20_000], 64).shuffle(seed=given.seed).batch(given.batch).prefetch()
    trainer.fit(learnt, given.epochs, logdir=given.logdir)
    with trainer.graph:
        written = net.generate(tw.constant(letters.encode("In the beginning ")[None]), 200, temperature=0.8, k=10)
    print(letters.decode(trainer.session.run(written)[0]))
    reached = trainer.evaluate(texts.pieces(numbers[-20_000:], 64).batch(given.batch))["perplexity"]
    training.said("gpt", "held-out perplexity", reached, given.epochs)
    return reached


if __name__ == "__main__":
    main()
