"""MobileNetV2, of "MobileNetV2: Inverted Residuals and Linear Bottlenecks" (Sandler et al., arXiv:1801.04381)."""
import thalweg as tw
import training
from thalweg.nn import BatchNorm, Conv2D, Dense, Dropout, GlobalAvgPool, Residual, Sequential, relu6

# Factor of the hidden channels, channels of the result, blocks, stride of the first block.
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def conv(filters, window=1, strides=1, groups=1, activation=relu6):
    parts = [Conv2D(filters, window, strides=strides, padding=window // 2, groups=groups, use_bias=False, kernel="he_normal"),
             BatchNorm(momentum=0.9, epsilon=1e-5)]
    return Sequential(*parts, *([activation] if activation else []))


def block(channels, filters, factor, strides):
    """Widens the channels, convolves each alone, and narrows them without an activation."""
    hidden = channels * factor
    widening = [conv(hidden)] if factor > 1 else []
    body = Sequential(*widening, conv(hidden, 3, strides, groups=hidden), conv(filters, activation=None))
    return Residual(body) if strides == 1 and channels == filters else body


def eighths(channels):
    """The nearest multiple of 8 that is not below nine tenths of the number."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * channels else nearest + 8


def network(classes=1000, width=1.0, dropout=0.2):
    channels = eighths(32 * width)
    parts = [conv(channels, 3, 2)]
    for factor, filters, blocks, strides in STAGES:
        for i in range(blocks):
            parts.append(block(channels, eighths(filters * width), factor, 1 if i else strides))
            channels = eighths(filters * width)
    head = [conv(eighths(1280 * max(1.0, width))), GlobalAvgPool(), Dropout(dropout), Dense(classes)]
    return Sequential(*parts, *head, name="mobilenet_v2")


def example(batch, side=224):
    return training.images(batch, side)


loss = "sparse_softmax_cross_entropy"


def optimizer():
    """The paper's: the rate falls by 2 % an epoch, of 13,345 batches of 96."""
    rate = tw.schedules.exponential(0.045, 13_345, 0.98, staircase=True)
    return tw.train.RMSProp(rate, rho=0.9, momentum=0.9, epsilon=1.0, weight_decay=4e-5)


def main(arguments=None):
    return training.classify_digits("mobilenet_v2", __doc__, network, loss, side=32, width=0.5, arguments=arguments)


if __name__ == "__main__":
    main()
