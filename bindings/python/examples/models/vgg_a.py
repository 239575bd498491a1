"""Configuration A of "Very Deep Convolutional Networks for Large-Scale Image Recognition" (Simonyan and Zisserman,
arXiv:1409.1556), without dropout, as benchmarks of convolutions have it."""
import thalweg as tw
import training
from thalweg.nn import Conv2D, Dense, Flatten, MaxPool2D, Sequential

BLOCKS = ((64,), (128,), (256, 256), (512, 512), (512, 512))


def network(classes=1000, width=1.0):
    n, parts = training.scaled(width), []
    for block in BLOCKS:
        parts += [Conv2D(n(filters), 3, "relu", kernel="he_normal") for filters in block] + [MaxPool2D(2)]
    hidden = [Dense(n(4096), "relu", kernel="he_normal") for _ in range(2)]
    return Sequential(*parts, Flatten(), *hidden, Dense(classes), name="vgg_a")


def example(batch, side=224):
    return training.images(batch, side)


loss = "sparse_softmax_cross_entropy"


def optimizer():
    return tw.train.Momentum(0.01, 0.9, weight_decay=5e-4)


def main(arguments=None):
    return training.classify_digits("vgg_a", __doc__, network, loss, side=32, arguments=arguments)


if __name__ == "__main__":
    main()
