"""ResNet-50, of "Deep Residual Learning for Image Recognition" (He et al., arXiv:1512.03385). The stride of a stage is in its
first 3x3 convolution, as in most implementations, not in the 1x1 convolution before it."""
import thalweg as tw
import training
from thalweg.nn import BatchNorm, Conv2D, Dense, GlobalAvgPool, MaxPool2D, Module, Sequential, relu

BLOCKS = (3, 4, 6, 3)


def conv(filters, window, strides=1, activation=relu):
    """A convolution that keeps the size of the image, up to the stride, and batch normalisation."""
    parts = [Conv2D(filters, window, strides=strides, padding=window // 2, use_bias=False, kernel="he_normal"),
             BatchNorm(momentum=0.9, epsilon=1e-5)]
    return Sequential(*parts, *([activation] if activation else []))


class Bottleneck(Module):
    def __init__(self, filters, strides, projects):
        super().__init__()
        self.body = Sequential(conv(filters, 1), conv(filters, 3, strides), conv(4 * filters, 1, activation=None))
        self.shortcut = conv(4 * filters, 1, strides, activation=None) if projects else None

    def forward(self, x):
        return relu(self.body(x) + (x if self.shortcut is None else self.shortcut(x)))


def network(classes=1000, width=1.0):
    n, parts = training.scaled(width), []
    for stage, blocks in enumerate(BLOCKS):
        parts += [Bottleneck(n(64) << stage, 2 if stage and not i else 1, projects=not i) for i in range(blocks)]
    return Sequential(conv(n(64), 7, 2), MaxPool2D(3, 2, padding=1), *parts, GlobalAvgPool(), Dense(classes), name="resnet50")


def example(batch, side=224):
    return training.images(batch, side)


loss = "sparse_softmax_cross_entropy"


def optimizer():
    """A rate that falls to a tenth every 30 epochs, of 5,004 batches of 256."""
    rate = tw.schedules.piecewise([epochs * 5_004 for epochs in (30, 60, 90)], [0.1, 0.01, 0.001, 0.0001])
    return tw.train.Momentum(rate, 0.9, weight_decay=1e-4)


def main(arguments=None):
    return training.classify_digits("resnet50", __doc__, network, loss, side=32, arguments=arguments)


if __name__ == "__main__":
    main()
