"""AlexNet in one tower, of "One weird trick for parallelizing convolutional neural networks" (Krizhevsky, arXiv:1404.5997),
without dropout and local response normalisation, as benchmarks of convolutions have it."""
import thalweg as tw
import training
from thalweg.nn import Conv2D, Dense, Flatten, MaxPool2D, Sequential


def network(classes=1000, width=1.0):
    n = training.scaled(width)
    return Sequential(
        Conv2D(n(64), 11, "relu", strides=4, padding=2), MaxPool2D(3, 2),
        Conv2D(n(192), 5, "relu"), MaxPool2D(3, 2),
        Conv2D(n(384), 3, "relu"), Conv2D(n(256), 3, "relu"), Conv2D(n(256), 3, "relu"), MaxPool2D(3, 2),
        Flatten(), Dense(n(4096), "relu"), Dense(n(4096), "relu"), Dense(classes), name="alexnet")


def example(batch, side=224):
    return training.images(batch, side)


loss = "sparse_softmax_cross_entropy"


def optimizer():
    return tw.train.Momentum(0.01, 0.9, weight_decay=5e-4)


def main(arguments=None):
    return training.classify_digits("alexnet", __doc__, network, loss, side=67, arguments=arguments)


if __name__ == "__main__":
    main()
