"""The networks of the bench, written once over a backend: `conv(x, out, size, stride, padding)`, `pool(x, size, stride, padding)`, `relu`,
`dense(x, out)`, `flat`, `concat`, `add`, `norm`, `mean` (over the image). Images have their channels last. Sizes are those of the papers.

bindings/python/examples/models has the same networks as users write them, with the layers of tw.nn. The bench needs them in PyTorch and JAX
too, from one definition and with equal weights, and on a machine that has only the files of tools/gpu-tree, so it has its own.
tests/python/models_test.py checks that both have the same products."""


def alexnet(b, x):
    """One tower, as in "One weird trick for parallelizing convolutional neural networks" (2014)."""
    x = b.pool(b.relu(b.conv(x, 64, 11, 4, 2)), 3, 2, 0)
    x = b.pool(b.relu(b.conv(x, 192, 5, 1, 2)), 3, 2, 0)
    for out in (384, 256, 256):
        x = b.relu(b.conv(x, out, 3, 1, 1))
    return head(b, b.pool(x, 3, 2, 0), 4096, 4096)


def overfeat(b, x):
    """The fast model of Overfeat."""
    x = b.pool(b.relu(b.conv(x, 96, 11, 4, 0)), 2, 2, 0)
    x = b.pool(b.relu(b.conv(x, 256, 5, 1, 0)), 2, 2, 0)
    for out in (512, 1024, 1024):
        x = b.relu(b.conv(x, out, 3, 1, 1))
    return head(b, b.pool(x, 2, 2, 0), 3072, 4096)


def vgg_a(b, x):
    for block in ((64,), (128,), (256, 256), (512, 512), (512, 512)):
        for out in block:
            x = b.relu(b.conv(x, out, 3, 1, 1))
        x = b.pool(x, 2, 2, 0)
    return head(b, x, 4096, 4096)


def head(b, x, *wide):
    x = b.flat(x)
    for out in wide:
        x = b.relu(b.dense(x, out))
    return b.dense(x, 1000)


def inception(b, x, one, three_in, three, five_in, five, pooled):
    conv = lambda y, out, size: b.relu(b.conv(y, out, size, 1, size // 2))
    return b.concat([conv(x, one, 1), conv(conv(x, three_in, 1), three, 3), conv(conv(x, five_in, 1), five, 5),
                     conv(b.pool(x, 3, 1, 1), pooled, 1)])


def googlenet(b, x):
    """GoogLeNet without its auxiliary classifiers."""
    x = b.pool(b.relu(b.conv(x, 64, 7, 2, 3)), 3, 2, 1)
    x = b.relu(b.conv(b.relu(b.conv(x, 64, 1, 1, 0)), 192, 3, 1, 1))
    x = b.pool(x, 3, 2, 1)
    for sizes in ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)):
        x = inception(b, x, *sizes)
    x = b.pool(x, 3, 2, 1)
    for sizes in ((192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
                  (256, 160, 320, 32, 128, 128)):
        x = inception(b, x, *sizes)
    x = b.pool(x, 3, 2, 1)
    for sizes in ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)):
        x = inception(b, x, *sizes)
    return b.dense(b.mean(x), 1000)


def resnet50(b, x):
    x = b.pool(b.relu(b.norm(b.conv(x, 64, 7, 2, 3))), 3, 2, 1)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            wide, stride = 64 << stage, 2 if stage and block == 0 else 1
            y = b.relu(b.norm(b.conv(x, wide, 1, 1, 0)))
            y = b.relu(b.norm(b.conv(y, wide, 3, stride, 1)))
            y = b.norm(b.conv(y, 4 * wide, 1, 1, 0))
            x = b.relu(b.add(y, b.norm(b.conv(x, 4 * wide, 1, stride, 0)) if block == 0 else x))
    return b.dense(b.mean(x), 1000)


# Network, batch and side of the images. The first four are from the convnet benchmarks that the paper of 2016 quotes.
NETWORKS = {"AlexNet": (alexnet, 128, 224), "Overfeat": (overfeat, 128, 231), "VGG-A": (vgg_a, 64, 224), "GoogLeNet": (googlenet, 128, 224),
            "ResNet-50": (resnet50, 64, 224)}
# Sides for dry runs, which use a batch of one and layers with a sixteenth of the channels.
SMALL_SIDES = {"AlexNet": 67, "Overfeat": 75, "VGG-A": 32, "GoogLeNet": 32, "ResNet-50": 32}

# Effective FLOP/s over the card's peak of 6.6 TFLOP/s (Titan X of 2015, float), from the times per step in Table 1 of that paper.
PAPER = {"AlexNet": {"TensorFlow": 0.99, "Neon": 0.92, "Torch": 0.99, "Caffe": 0.25},
         "Overfeat": {"TensorFlow": 1.15, "Neon": 1.52, "Torch": 1.20, "Caffe": 0.39},
         "VGG-A": {"TensorFlow": 0.82, "Neon": 1.38, "Torch": 0.83, "Caffe": 0.41},
         "GoogLeNet": {"TensorFlow": 0.40, "Neon": 0.67, "Torch": 0.38, "Caffe": 0.09}}


class Thin:
    """A backend with narrower layers, except the last, which has all classes."""

    def __init__(self, backend, by=16):
        self.backend, self.by = backend, by

    def __getattr__(self, name):
        return getattr(self.backend, name)

    def conv(self, x, out, *how):
        return self.backend.conv(x, max(1, out // self.by), *how)

    def dense(self, x, out):
        return self.backend.dense(x, out if out == 1000 else max(1, out // self.by))


class Counting:
    """A backend whose values are shapes. It counts the multiplications and additions of a forward pass."""

    def __init__(self):
        self.flop = self.first = 0  # `first`: of the first convolution

    def conv(self, x, out, size, stride, padding):
        n, h, w, c = x
        h, w = ((side + 2 * padding - size) // stride + 1 for side in (h, w))
        its = 2 * n * h * w * out * size * size * c
        self.first = self.first or its
        self.flop += its
        return n, h, w, out

    def pool(self, x, size, stride, padding):
        n, h, w, c = x
        return n, (h + 2 * padding - size) // stride + 1, (w + 2 * padding - size) // stride + 1, c

    def dense(self, x, out):
        self.flop += 2 * x[0] * x[1] * out
        return x[0], out

    def flat(self, x):
        return x[0], x[1] * x[2] * x[3]

    def concat(self, parts):
        return *parts[0][:3], sum(p[3] for p in parts)

    def mean(self, x):
        return x[0], x[3]

    def relu(self, x):
        return x

    def norm(self, x):
        return x

    def add(self, x, y):
        assert x == y
        return x


def flop_of_step(network, batch, side):
    """Returns the FLOP of a training step. The gradients of images and of weights each cost as much as the forward pass; the gradient of
    the input images is not computed."""
    counting = Counting()
    assert network(counting, (batch, side, side, 3)) == (batch, 1000)
    return 3 * counting.flop - counting.first
