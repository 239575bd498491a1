"""Sequence to sequence: an encoder and a decoder of LSTMs with attention (Luong et al., 2015), and beam search.

    python3 seq2seq.py --data kjv.txt       # learns to spell the words of a text backwards"""
import numpy as np

import texts
import thalweg as tw
import training

PAD, START, END = 0, 1, 2  # tokens behind a sequence, before its first one and at its end


class Seq2Seq(tw.nn.Module):
    def __init__(self, vocabulary=32, width=64, cells=128):
        super().__init__()
        self.tokens = tw.nn.Embedding(vocabulary, width)
        self.encoder, self.decoder = (tw.nn.LSTM(cells, sequences=True, with_state=True) for _ in range(2))
        self.query, self.mixed, self.head = tw.nn.Dense(cells, use_bias=False), tw.nn.Dense(cells, "tanh"), tw.nn.Dense(vocabulary)

    def encoded(self, source):
        """What attention reads: the outputs of the encoder [batch, n, cells], and numbers that hide those behind a sequence; and the
        state of the decoder."""
        there = (source != PAD).astype("int32")
        outputs, state = self.encoder(self.tokens(source), there.sum(1))
        return (outputs, (there.astype("float32")[:, None] - 1) * 1e9), state

    def read(self, outputs, memory):
        """Logits of the tokens behind outputs of the decoder [batch, m, cells]."""
        scores = tw.ops.batch_mat_mul_v2(self.query(outputs), memory[0], adj_y=True) + memory[1]
        found = tw.ops.batch_mat_mul_v2(tw.nn.softmax(scores), memory[0])
        return self.head(self.mixed(tw.ops.concat_v2([outputs, found], -1)))

    def forward(self, source, target):
        """Logits of the target's tokens [batch, m, vocabulary], each from the true ones before it."""
        memory, state = self.encoded(source)
        before = tw.ops.concat_v2([tw.ops.zeros_like(target[:, :1]) + START, target[:, :-1]], 1)
        outputs, _ = self.decoder(self.tokens(before), state=state)
        return self.read(outputs, memory)

    def search(self, source, length, beams=4, alpha=0.0):
        """The likeliest targets [batch, beams, length], which END fills up, and their scores, as tw.generation.beam_search has them."""
        def step(token, _, state):
            memory, state = state
            output, state = self.decoder.cell.step(self.tokens(token), state)
            return self.read(output[:, None], memory)[:, 0], (memory, state)

        logits, state = step(tw.ops.zeros_like(source[:, 0]) + START, 0, self.encoded(source))
        return tw.generation.beam_search(step, logits, state, length, beams, end=END, alpha=alpha)


network = Seq2Seq


def example(batch, length=16, vocabulary=32):
    source, target = np.random.default_rng(0).integers(3, vocabulary, size=(2, batch, length), dtype=np.int32)
    return (source, target), (target,)


def loss(logits, target):
    """The mean over the tokens that are no padding."""
    losses = tw.ops.sparse_softmax_cross_entropy_with_logits(logits.reshape(-1, logits.shape[-1]), target.reshape(-1)).loss
    there = (target.reshape(-1) != PAD).astype("float32")
    return (losses * there).sum() / there.sum()


def optimizer():
    return tw.train.Adam(3e-3)


def backwards(words, length=12):
    """Words and the same backwards with END, as rows of tokens: letters count from 3."""
    source, target = np.zeros((len(words), length), np.int32), np.zeros((len(words), length + 1), np.int32)
    for i, word in enumerate(words):
        tokens = [ord(letter) - ord("a") + 3 for letter in word]
        source[i, :len(word)], target[i, :len(word) + 1] = tokens, [*tokens[::-1], END]
    return source, target


def right(found, target):
    """The share of rows that equal the target up to its end."""
    return float(((found == target) | (target == PAD)).all(1).mean())


def main(arguments=None):
    parser = training.options(__doc__, "kjv.txt", epochs=5, batch=64)
    given = training.parsed(parser, arguments)
    words = sorted({word for word in texts.words_of(given.data.read_text()) if word.isalpha() and 3 <= len(word) <= 12})
    (source, target), (new, wanted) = training.split(*backwards(words))
    net = Seq2Seq()
    trainer = tw.train.Trainer(net, loss, optimizer(), n_inputs=2, clip=5.0, threads=given.threads)
    trainer.fit((source, target, target), given.epochs, batch=given.batch, seed=given.seed, logdir=given.logdir)
    with trainer.graph:
        found, _ = net.search(tw.constant(new), wanted.shape[1])
    reached = right(trainer.session.run(found)[:, 0], wanted)
    training.said("seq2seq", "held-out share of right words", reached, given.epochs)
    return reached


if __name__ == "__main__":
    main()
