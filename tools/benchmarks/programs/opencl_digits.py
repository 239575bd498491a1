"""Trains a small convolutional net on pictures of digits, on any device. usage: opencl_digits.py THREADS. The command `step DEVICE`
answers the nanoseconds of a step at batch 256, including its feeds and the wait for its end."""
import sys

import numpy as np

import thalweg as tw
import worker

BATCH = 256
draw = np.random.default_rng(7)
pictures, labels = draw.random((BATCH, 64), np.float32), np.arange(BATCH) % 10


def variable(shape, reach):
    return tw.Variable((draw.standard_normal(shape) * reach).astype(np.float32))


def block(y, filters, bias):
    y = tw.ops.relu(tw.ops.bias_add(tw.ops.conv2d(y, filters, strides=[1, 1, 1, 1], padding="SAME"), bias))
    return tw.ops.max_pool(y, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")


def layer(y, weights, bias):
    return tw.ops.bias_add(tw.ops.mat_mul(y, weights), bias)


class Digits:
    """Two convolutions and two layers, trained by Adam."""

    def __init__(self, device):
        with tw.Graph(tw.Runtime(threads=int(sys.argv[1]))) as graph:
            self.x, self.label = tw.placeholder("float32", [None, 64]), tw.placeholder("int64", [None])
            biases = [variable(n, 0) for n in (16, 32, 64, 10)]
            y = block(tw.ops.reshape(self.x, [-1, 8, 8, 1]), variable((3, 3, 1, 16), .47), biases[0])
            y = block(y, variable((3, 3, 16, 32), .12), biases[1])
            y = tw.ops.relu(layer(tw.ops.reshape(y, [-1, 128]), variable((128, 64), .12), biases[2]))
            y = layer(y, variable((64, 10), .12), biases[3])
            losses, _ = tw.ops.sparse_softmax_cross_entropy_with_logits(y, self.label)
            self.update, init = tw.train.Adam(0.004).minimize(tw.ops.mean(losses, [0])), tw.initializer()
        self.session = tw.Session(graph, device=device, fallback="fail" if device.startswith("OPENCL") else "allow")
        self.session.run(init)

    def step(self):
        self.session.run([self.update], {self.x: pictures, self.label: labels})


made = {}


def step(device):
    if device not in made:
        made[device] = Digits(device)
    return worker.times(made[device].step, 15)


worker.serve({"step": step})
