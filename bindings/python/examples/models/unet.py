"""U-Net, of "U-Net: Convolutional Networks for Biomedical Image Segmentation" (Ronneberger et al., arXiv:1505.04597), with
"same" padding, so that the result has a row of scores for each pixel. main() finds the strokes of digits in noise."""
import numpy as np

import thalweg as tw
import training
from thalweg.nn import Conv2D, Conv2DTranspose, MaxPool2D, Module, Sequential


def block(filters):
    return Sequential(*(Conv2D(filters, 3, "relu", kernel="he_normal") for _ in range(2)))


class UNet(Module):
    def __init__(self, classes, filters, depth):
        super().__init__()
        levels = [filters << level for level in range(depth)]
        self.down, self.pool, self.bottom = [block(n) for n in levels], MaxPool2D(2), block(filters << depth)
        self.up = [(Conv2DTranspose(n, 2, strides=2), block(n)) for n in reversed(levels)]
        self.head = Conv2D(classes, 1)

    def forward(self, x):
        kept = []
        for down in self.down:
            kept.append(down(x))
            x = self.pool(kept[-1])
        x = self.bottom(x)
        for enlarge, up in self.up:
            x = up(tw.ops.concat_v2([kept.pop(), enlarge(x)], 3))
        return self.head(x)


def network(classes=2, filters=64, depth=4):
    """filters: of the first level; each deeper level has twice as many. Sides of images are multiples of 2^depth."""
    return UNet(classes, filters, depth)


def example(batch, side=512, classes=2):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, side, side, 1), np.float32)
    return (x,), (rng.integers(0, classes, (batch, side, side)).astype(np.int32),)


def loss(scores, masks):
    return tw.ops.sparse_softmax_cross_entropy_with_logits(scores.reshape(-1, scores.shape[-1]), masks.reshape(-1)).loss


def optimizer():
    return tw.train.Momentum(0.001, 0.99)


def strokes(digits, rng):
    """Canvases of 32 x 32 with a digit somewhere, under noise as strong as its ink, and the pixels of its strokes."""
    clean = np.zeros((len(digits), 32, 32, 1), np.float32)
    for canvas, digit, (y, x) in zip(clean, digits, rng.integers(0, 17, (len(digits), 2))):
        canvas[y:y + 16, x:x + 16] = digit.repeat(2, 0).repeat(2, 1)
    noisy = clean + rng.normal(0, 0.5, clean.shape).astype(np.float32)
    return noisy, (clean[..., 0] > 0.5).astype(np.int32)


def main(arguments=None):
    given = training.parsed(training.options(__doc__, epochs=4), arguments)
    train, test = training.split(*strokes(training.digits(given.data)[0], np.random.default_rng(given.seed)))
    trainer = tw.train.Trainer(network(filters=8, depth=3), loss, tw.train.Adam(2e-3), threads=given.threads)
    trainer.fit(train, given.epochs, batch=given.batch, seed=given.seed, validation=test, logdir=given.logdir)
    found, wanted = trainer.predict(test[0]).argmax(-1) == 1, test[1] == 1
    overlap = (found & wanted).sum() / (found | wanted).sum()
    training.said("unet", "intersection over union", overlap, given.epochs)
    return overlap


if __name__ == "__main__":
    main()
