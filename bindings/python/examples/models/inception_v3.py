"""Inception-v3 with its auxiliary head, of "Rethinking the Inception Architecture for Computer Vision" (Szegedy et al.,
arXiv:1512.00567). Its result is the scores of the classes and, with the head, a pair of these and the head's."""
import thalweg as tw
import training
from thalweg.nn import AvgPool2D, BatchNorm, Concat, Conv2D, Dense, Dropout, Flatten, GlobalAvgPool, MaxPool2D, Module, Sequential, relu


class InceptionV3(Module):
    def __init__(self, classes, width, auxiliary, dropout):
        super().__init__()
        n = training.scaled(width)

        def conv(filters, window=1, strides=1, padding="same"):
            plain = Conv2D(n(filters), window, strides=strides, padding=padding, use_bias=False, kernel="he_normal")
            return Sequential(plain, BatchNorm(), relu)

        def pooled(filters):
            return Sequential(AvgPool2D(3, 1, "same"), conv(filters))

        def sevenths(filters, *windows):
            """A 1x1 convolution, and convolutions along one axis, of which the last has 192 filters."""
            return Sequential(conv(filters), *(conv(192 if i == len(windows) - 1 else filters, w) for i, w in enumerate(windows)))

        def both(*before):
            return Sequential(*before, Concat(conv(384, (1, 3)), conv(384, (3, 1))))

        stem = [conv(32, 3, 2, "valid"), conv(32, 3, 1, "valid"), conv(64, 3), MaxPool2D(3, 2),
                conv(80), conv(192, 3, 1, "valid"), MaxPool2D(3, 2)]
        fifth = [Concat(conv(64), Sequential(conv(48), conv(64, 5)), Sequential(conv(64), conv(96, 3), conv(96, 3)), pooled(f))
                 for f in (32, 64, 64)]
        to_sixth = Concat(conv(384, 3, 2, "valid"), Sequential(conv(64), conv(96, 3), conv(96, 3, 2, "valid")), MaxPool2D(3, 2))
        across, along = (1, 7), (7, 1)
        sixth = [Concat(conv(192), sevenths(f, across, along), sevenths(f, along, across, along, across), pooled(192))
                 for f in (128, 160, 160, 192)]
        to_seventh = Concat(Sequential(conv(192), conv(320, 3, 2, "valid")),
                            Sequential(sevenths(192, across, along), conv(192, 3, 2, "valid")), MaxPool2D(3, 2))
        seventh = [Concat(conv(320), both(conv(384)), both(conv(448), conv(384, 3)), pooled(192)) for _ in range(2)]
        self.body = Sequential(*stem, *fifth, to_sixth, *sixth)
        self.head = Sequential(to_seventh, *seventh, GlobalAvgPool(), Dropout(dropout), Dense(classes))
        self.auxiliary = Sequential(AvgPool2D(5, 3), conv(128), conv(768, 5, 1, "valid"), Flatten(), Dense(classes)) if auxiliary else None

    def forward(self, x):
        x = self.body(x)
        return self.head(x) if self.auxiliary is None else (self.head(x), self.auxiliary(x))


def network(classes=1000, width=1.0, auxiliary=True, dropout=0.2):
    return InceptionV3(classes, width, auxiliary, dropout)


def example(batch, side=299):
    return training.images(batch, side)


def loss(outputs, labels):
    """Smoothed labels, and 0.4 times the loss of the auxiliary head."""
    losses = [tw.losses.smoothed_softmax(z, labels, 0.1) for z in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]
    return losses[0] if len(losses) == 1 else losses[0] + 0.4 * losses[1]


def optimizer():
    """The rate falls by 6 % every two epochs, of 40,037 batches of 32."""
    rate = tw.schedules.exponential(0.045, 2 * 40_037, 0.94, staircase=True)
    return tw.train.RMSProp(rate, rho=0.9, momentum=0.9, epsilon=1.0)


def main(arguments=None):
    """Digits are smaller than the images that the auxiliary head needs."""
    def small(classes, width):
        return network(classes, width, auxiliary=False)
    return training.classify_digits("inception_v3", __doc__, small, loss, side=75, width=0.125, arguments=arguments)


if __name__ == "__main__":
    main()
