"""LSTM-512-512, a language model of words (Jozefowicz et al., 2016, the size of the OSDI paper on TensorFlow): an LSTM of 512
cells with a projection to 512 numbers, 40,000 words, sampled softmax.

    python3 lstm.py --data kjv.txt          # learns Debian's documents and the King James Bible
    python3 lstm.py --small                 # a small one learns the Bible in a minute"""
import math

import numpy as np

import texts
import thalweg as tw
import training

STREAMS, PIECE = 128, 20  # of a training step: texts that it reads, and words of each


class LSTM(tw.nn.Module):
    def __init__(self, vocabulary=40_000, width=512, cells=512, projection=512, drawn=512, dropout=0.1):
        super().__init__()
        self.vocabulary, self.projection, self.drawn = vocabulary, projection, drawn
        self.table, self.dropout = tw.nn.Embedding(vocabulary, width), tw.nn.Dropout(dropout)
        self.lstm = tw.nn.LSTM(cells, sequences=True, projection=projection, with_state=True)

    def build(self, *_, **__):
        reach = self.projection ** -0.5
        drawn = tw.ops.random_uniform([self.vocabulary, self.projection], dtype="float32")
        self.weights = tw.Variable(drawn * (2 * reach) - reach, name="weights")
        self.biases = tw.Variable(np.zeros(self.vocabulary, np.float32), name="biases")

    def outputs(self, words, state=None):
        """A vector for each of the words [batch, steps], from which the next one follows, and the state of the LSTM."""
        outputs, state = self.lstm(self.dropout(self.table(words)), state=state)
        return self.dropout(outputs).reshape(-1, self.projection), state

    def forward(self, words, following, state=None):
        """The loss of each following word, over it and drawn words, more of them frequent; and the state of the LSTM."""
        outputs, state = self.outputs(words, state)
        return [tw.losses.sampled_softmax(self.weights, self.biases, following.reshape(-1, 1), outputs, self.drawn), *state]

    def full(self, words, following):
        """The loss of each following word, over all words."""
        logits = tw.ops.mat_mul(self.outputs(words)[0], self.weights, transpose_b=True) + self.biases
        return tw.ops.sparse_softmax_cross_entropy_with_logits(logits, following.reshape(-1)).loss

    def minimize(self, loss, optimizer, streams):
        """As in the experiments: gradients of the LSTM alone are clipped, and those of the table are multiplied by the streams."""
        of_lstm = self.lstm.parameters()
        variables = [*of_lstm, *(v for v in self.parameters() if all(v is not w for w in of_lstm))]
        found = tw.gradients(loss, variables)
        clipped, _ = tw.train.clip_by_global_norm(found[:len(of_lstm)], 10.0)
        rest = [tw.SparseGradient(g.values * streams, g.rows) if v is self.table.table else g
                for g, v in zip(found[len(of_lstm):], variables[len(of_lstm):])]
        return optimizer.apply([*clipped, *rest], variables)


network = LSTM


def example(batch, steps=PIECE, vocabulary=40_000):
    words = (np.random.default_rng(0).zipf(1.3, size=(batch, steps + 1)).clip(max=vocabulary) - 1).astype(np.int32)
    return (words[:, :-1], words[:, 1:]), ()


def loss(outputs):
    return outputs[0].mean()


def optimizer(rate=0.2):
    return tw.train.Adagrad(rate, initial_accumulator=1.0)


class Training:
    """A graph whose step goes on where the step before stopped: the LSTM's state stays in variables."""

    def __init__(self, net, streams, cells):
        with tw.Graph() as self.graph:
            self.x, self.y = (tw.placeholder("int32", [None, None], name=name) for name in ("words", "following"))
            state = [tw.Variable(np.zeros((streams, n), np.float32), trainable=False, name=name)
                     for n, name in ((cells, "c"), (net.projection, "h"))]
            outputs = net(self.x, self.y, state)
            self.loss = loss(outputs)
            self.averages = tw.averages.MovingAverages(net.lstm.parameters(), 0.999, updates=tw.schedules.global_step())
            step = self.averages.update(after=net.minimize(self.loss, optimizer(), streams))
            self.step = tw.group(step, *(v.assign(now) for v, now in zip(state, outputs[1:])))
            self.measured = net.full(self.x, self.y).mean()  # from a state of zeros
            self.start, self.flag = self.graph.initializer(), tw.nn.training()

    def perplexity(self, session, x, y):
        return math.exp(np.mean([session.run(self.measured, {self.x: x[i:i + 1], self.y: y[i:i + 1]}) for i in range(len(x))]))


def main(arguments=None):
    parser = training.options(__doc__, "kjv.txt", epochs=2, batch=STREAMS)
    parser.add_argument("--small", action="store_true", help="64 cells, 4,000 words, the file alone")
    given = training.parsed(parser, arguments)
    text = [texts.words_of(part) for part in (given.data.read_text(), *([] if given.small else texts.documents()))]
    words = texts.Words(text, 4_000 if given.small else 40_000)
    held = len(text[0]) // 20 // 640 * 640  # the end of the Bible
    learnt = words.encode([word for part in (text[0][:-held - 1], *text[1:]) for word in part])
    measured = tuple(side.T[:, :640] for side in texts.streams(words.encode(text[0][-held - 1:]), held // 640))
    net, cells = (LSTM(4_000, 64, 128, 64, 64), 128) if given.small else (LSTM(), 512)
    model = Training(net, given.batch, cells)
    x, y = texts.streams(learnt, given.batch)
    with tw.Session(model.graph, threads=given.threads) as session:
        session.run(model.start)
        for at in (bar := tw.train.progress([*range(0, len(x) - PIECE, PIECE)] * given.epochs)):
            feeds = {model.x: x[at:at + PIECE].T, model.y: y[at:at + PIECE].T, model.flag: True}
            bar.set_postfix(loss=session.run([model.loss, model.step], feeds)[0])
        with model.averages.swapped(session):
            reached = model.perplexity(session, *measured)
    training.said("lstm", "held-out word perplexity", reached, given.epochs)
    return reached


if __name__ == "__main__":
    main()
