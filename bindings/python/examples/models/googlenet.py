"""GoogLeNet, of "Going Deeper with Convolutions" (Szegedy et al., arXiv:1409.4842), without auxiliary heads, dropout and local
response normalisation, as benchmarks of convolutions have it."""
import functools

import thalweg as tw
import training
from thalweg.nn import Concat, Conv2D, Dense, GlobalAvgPool, MaxPool2D, Sequential

# Channels of each block: 1x1; 1x1 before 3x3; 1x1 before 5x5; after the pool.
STAGES = (((64, (96, 128), (16, 32), 32), (128, (128, 192), (32, 96), 64)),
          ((192, (96, 208), (16, 48), 64), (160, (112, 224), (24, 64), 64), (128, (128, 256), (24, 64), 64),
           (112, (144, 288), (32, 64), 64), (256, (160, 320), (32, 128), 128)),
          ((256, (160, 320), (32, 128), 128), (384, (192, 384), (48, 128), 128)))


def network(classes=1000, width=1.0):
    n, conv = training.scaled(width), functools.partial(Conv2D, activation="relu", kernel="he_normal")

    def inception(one, three, five, pooled):
        return Concat(
            conv(n(one), 1),
            Sequential(conv(n(three[0]), 1), conv(n(three[1]), 3)),
            Sequential(conv(n(five[0]), 1), conv(n(five[1]), 5)),
            Sequential(MaxPool2D(3, 1, padding=1), conv(n(pooled), 1)), name="inception")

    stem = [conv(n(64), 7, strides=2, padding=3), MaxPool2D(3, 2, padding=1), conv(n(64), 1), conv(n(192), 3)]
    stages = [Sequential(MaxPool2D(3, 2, padding=1), *(inception(*block) for block in blocks)) for blocks in STAGES]
    return Sequential(*stem, *stages, GlobalAvgPool(), Dense(classes), name="googlenet")


def example(batch, side=224):
    return training.images(batch, side)


loss = "sparse_softmax_cross_entropy"


def optimizer():
    """A rate that falls by 4 % every 8 epochs, as in the paper, of 10,009 batches of 128."""
    return tw.train.Momentum(tw.schedules.exponential(0.01, 8 * 10_009, 0.96, staircase=True), 0.9)


def main(arguments=None):
    return training.classify_digits("googlenet", __doc__, network, loss, side=64, arguments=arguments)


if __name__ == "__main__":
    main()
