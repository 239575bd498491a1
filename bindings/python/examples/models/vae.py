"""A variational autoencoder (Kingma and Welling, 2013): it learns to draw digits, and how to describe one in a few numbers.

    python3 vae.py --data digits.csv"""
import numpy as np

import texts
import thalweg as tw
import training


class VAE(tw.nn.Module):
    def __init__(self, pixels=64, hidden=256, latent=8):
        super().__init__()
        self.latent, self.encoder = latent, tw.nn.Sequential(tw.nn.Dense(hidden, "relu"), tw.nn.Dense(2 * latent))
        self.decoder = tw.nn.Sequential(tw.nn.Dense(hidden, "relu"), tw.nn.Dense(pixels))

    def forward(self, x):
        """Logits of the pixels, and mean and logarithm of the variance of the latent numbers."""
        mean, log_variance = tw.ops.split(1, self.encoder(x), num_split=2)
        noise = tw.ops.random_standard_normal(tw.ops.shape(mean), dtype="float32")
        return [self.decoder(mean + tw.ops.exp(log_variance / 2) * noise), mean, log_variance]

    def drawn(self, n):
        """n new images [n, pixels], from 0 to 1."""
        return tw.nn.sigmoid(self.decoder(tw.ops.random_standard_normal([n, self.latent], dtype="float32")))


network = VAE


def example(batch, pixels=64):
    x = np.random.default_rng(0).random((batch, pixels), np.float32)
    return (x,), (x,)


def rebuilding(logits, x):
    return (tw.nn.softplus(logits) - logits * x).sum(1)


def divergence(mean, log_variance):
    """Of the distribution of the latent numbers from a normal one with mean 0 and variance 1."""
    return (mean * mean + tw.ops.exp(log_variance) - log_variance - 1).sum(1) / 2


def loss(outputs, x):
    logits, mean, log_variance = outputs
    return (rebuilding(logits, x) + divergence(mean, log_variance)).mean()


def optimizer():
    return tw.train.Adam(2e-3)


def main(arguments=None):
    parser = training.options(__doc__, epochs=30, batch=64)
    given = training.parsed(parser, arguments)
    (learnt,), (held,) = training.split(training.digits(given.data)[0].reshape(-1, 64))
    net = VAE()
    trainer = tw.train.Trainer(net, loss, optimizer(), threads=given.threads)
    trainer.fit((learnt, learnt), given.epochs, batch=given.batch, seed=given.seed, logdir=given.logdir)
    with trainer.graph:
        new = net.drawn(8)
    print(texts.drawn(trainer.session.run(new).reshape(-1, 8, 8)))
    reached = trainer.evaluate((held, held))["loss"]
    training.said("vae", "held-out loss", reached, given.epochs)
    return reached


if __name__ == "__main__":
    main()
