"""The fast model of "OverFeat: Integrated Recognition, Localization and Detection using Convolutional Networks" (Sermanet et
al., arXiv:1312.6229), without dropout, as benchmarks of convolutions have it."""
import thalweg as tw
import training
from thalweg.nn import Conv2D, Dense, Flatten, MaxPool2D, Sequential


def network(classes=1000, width=1.0):
    n = training.scaled(width)
    return Sequential(
        Conv2D(n(96), 11, "relu", strides=4, padding="valid"), MaxPool2D(2),
        Conv2D(n(256), 5, "relu", padding="valid"), MaxPool2D(2),
        Conv2D(n(512), 3, "relu"), Conv2D(n(1024), 3, "relu"), Conv2D(n(1024), 3, "relu"), MaxPool2D(2),
        Flatten(), Dense(n(3072), "relu"), Dense(n(4096), "relu"), Dense(classes), name="overfeat")


def example(batch, side=231):
    return training.images(batch, side)


loss = "sparse_softmax_cross_entropy"


def optimizer():
    return tw.train.Momentum(0.005, 0.6, weight_decay=1e-5)


def main(arguments=None):
    return training.classify_digits("overfeat", __doc__, network, loss, side=103, arguments=arguments)


if __name__ == "__main__":
    main()
