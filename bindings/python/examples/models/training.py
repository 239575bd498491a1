"""What the programs of this folder share: the command line, the data, and the loop."""
import argparse
import os
import pathlib

import numpy as np

import thalweg as tw


def options(description, data="digits.csv", epochs=10, batch=32):
    """Returns a parser with the options that all programs have; a program adds its own. data: None: the program reads no file."""
    parser = argparse.ArgumentParser(description=description)
    folder = pathlib.Path(os.environ.get("THALWEG_DATA_PATH") or pathlib.Path.home() / ".cache/thalweg/data")
    if data is not None:
        parser.add_argument("--data", type=pathlib.Path, default=folder / data,
                            help=f"{data}; tools/setup --print-data prints its folder")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as there are processors")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--logdir", type=pathlib.Path, help="folder for TensorBoard and `thalweg plot`")
    return parser


def parsed(parser, arguments=None):
    """Reads the command line, and seeds what the program draws."""
    given = parser.parse_args(arguments)
    for name in ("epochs", "batch"):
        if getattr(given, name) < 1:
            parser.error(f"--{name} takes a number of 1 or more, not {getattr(given, name)}")
    if hasattr(given, "data") and not given.data.is_file():
        parser.exit(1, f"{parser.prog}: '{given.data}' is no file; tools/setup fetches it, --data says where it is\n")
    tw.random.seed(given.seed)
    return given


def scaled(width):
    """Returns a function of a number of channels, which multiplies it by a factor and rounds it, but never to 0."""
    if not width > 0:
        raise ValueError(f"width is {width}; it is the factor for the numbers of channels and must be above 0")
    return lambda channels: max(1, round(channels * width))


def images(batch, side, classes=1000, channels=3):
    """Inputs and targets of a batch of random images."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, side, side, channels), np.float32)
    return (x,), (rng.integers(0, classes, batch).astype(np.int32),)


def digits(path):
    """Returns 1,797 handwritten digits, [rows, 8, 8, 1] from 0 to 1, and their labels."""
    rows = np.loadtxt(path, delimiter=",", dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != 65:
        raise ValueError(f"'{path}' has rows of {rows.shape[-1]} numbers; digits have 64 pixels and a label")
    return rows[:, :64].reshape(-1, 8, 8, 1) / 16, rows[:, 64].astype(np.int32)


def split(*arrays, every=5):
    """Returns the arrays without each fifth row, and these rows."""
    held = np.arange(len(arrays[0])) % every == 0
    return tuple(a[~held] for a in arrays), tuple(a[held] for a in arrays)


class Enlarged(tw.nn.Module):
    """A network for small grey images, which are enlarged and get three equal channels."""

    def __init__(self, net, side):
        super().__init__()
        self.net, self.side = net, side

    def forward(self, x):
        x = tw.ops.resize_nearest_neighbor(x, np.array([self.side, self.side], np.int32))
        return self.net(tw.ops.tile(x, np.array([1, 1, 1, 3], np.int32)))


def last(outputs):
    """The scores of the classes, where a network in training also has those of auxiliary heads."""
    return outputs[0] if isinstance(outputs, (list, tuple)) else outputs


def classify_digits(name, description, network, loss, side, width=0.25, epochs=10, arguments=None):
    """Trains a network of images on enlarged digits, by default with fewer channels than the paper's, and prints
    its accuracy on those that were held out, which it also returns."""
    parser = options(description, epochs=epochs)
    parser.add_argument("--side", type=int, default=side, help="of the enlarged digits, in pixels")
    parser.add_argument("--width", type=float, default=width, help="factor for the numbers of channels")
    given = parsed(parser, arguments)
    train, test = split(*digits(given.data))
    trainer = tw.train.Trainer(
        Enlarged(network(classes=10, width=given.width), given.side), loss, tw.train.Adam(1e-3),
        {"accuracy": lambda z, y: tw.metrics.accuracy(last(z), y)}, threads=given.threads)
    trainer.fit(train, given.epochs, batch=given.batch, seed=given.seed, validation=test, logdir=given.logdir)
    accuracy = trainer.evaluate(test)["accuracy"]
    said(name, "held-out accuracy", accuracy, given.epochs)
    return accuracy


def said(name, measure, value, epochs):
    """Prints the last line of a program."""
    print(f"{name}: {measure} {value:.4f} after {epochs} epoch{'s' if epochs > 1 else ''}", flush=True)
