"""A generative adversarial network (Goodfellow et al., 2014): one net draws digits, another one judges whether they are real.

    python3 gan.py --data digits.csv"""
import numpy as np

import texts
import thalweg as tw
import training


class GAN(tw.nn.Module):
    def __init__(self, pixels=64, hidden=256, latent=16):
        super().__init__()
        self.latent = latent
        dense = tw.nn.Dense
        self.generator = tw.nn.Sequential(dense(hidden, "relu"), tw.nn.BatchNorm(0.9), dense(hidden, "relu"), dense(pixels, "sigmoid"))
        self.judge = tw.nn.Sequential(dense(hidden, "leaky_relu"), tw.nn.Dropout(0.3), dense(hidden, "leaky_relu"), dense(1))

    def drawn(self, n):
        """n new images [n, pixels], from 0 to 1."""
        noise = tw.ops.random_standard_normal([n, self.latent], dtype="float32")
        return self.generator(noise.reshape(-1, self.latent))

    def forward(self, real):
        """How real the judge thinks the real images are, and as many drawn ones."""
        return [self.judge(real), self.judge(self.drawn(tw.ops.shape(real)[0]))]


network = GAN


def losses(real, drawn):
    """Of the judge, whose labels for real images are 0.9 (Salimans et al., 2016), and of the generator, whose images should be
    judged as real."""
    return (tw.nn.softplus(real) - 0.9 * real + tw.nn.softplus(drawn)).mean(), tw.nn.softplus(-drawn).mean()


def optimizer():
    return tw.train.Adam(1e-3, beta1=0.5)


def train(net, x, epochs, batch=64, seed=1, threads=0):
    """Trains both nets in turn, and returns the session."""
    with tw.Graph() as graph:
        real, flag = tw.placeholder("float32", [None, x.shape[1]]), tw.nn.training()
        judging, fooling = losses(*net(real))
        steps = [(judging, optimizer().minimize(judging, net.judge.parameters(trainable=True))),
                 (fooling, optimizer().minimize(fooling, net.generator.parameters(trainable=True)))]
        start = graph.initializer()
    session = tw.Session(graph, threads=threads)
    session.run(start)
    for rows in (bar := tw.train.progress(tw.train.Batches(x, size=batch, epochs=epochs, seed=seed))):
        values = [session.run(step, {real: rows, flag: True})[0] for step in steps]
        bar.set_postfix(judging=values[0], fooling=values[1])
    return session


def nearest(new, x, labels):
    """The mean distance of images to the nearest of x, and how many classes these nearest ones have."""
    distances = ((new[:, None] - x[None]) ** 2).sum(-1)
    return float(np.sqrt(distances.min(1)).mean()), len(set(labels[distances.argmin(1)]))


def main(arguments=None):
    parser = training.options(__doc__, epochs=100, batch=64)
    given = training.parsed(parser, arguments)
    x, labels = training.digits(given.data)
    x, net = x.reshape(-1, 64), GAN()
    session = train(net, x, given.epochs, given.batch, given.seed, given.threads)
    with session.graph:
        new = net.drawn(200)
    new = session.run(new)
    print(texts.drawn(new[:8].reshape(-1, 8, 8)))
    distance, classes = nearest(new, x, labels)
    print(f"the nearest digits are of {classes} classes")
    training.said("gan", "distance to the nearest digit", distance, given.epochs)
    return distance, classes


if __name__ == "__main__":
    main()
