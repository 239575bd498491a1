"""Layers, modules and activations.

    net = tw.nn.Sequential(tw.nn.Conv2D(16, 3, "relu"), tw.nn.MaxPool2D(), tw.nn.Flatten(), tw.nn.Dropout(0.2), tw.nn.Dense(10))
    with tw.Graph() as g:
        x, y = tw.placeholder("float32", [None, 8, 8, 1]), tw.placeholder("int32", [None])
        loss = tw.ops.sparse_softmax_cross_entropy_with_logits(net(x), y).loss.mean()
        step = tw.train.Adam(0.001).minimize(loss)
    print(net.summary())
    with tw.Session(g) as s:
        s.run(g.initializer())
        s.run(step, {x: images, y: labels, tw.nn.training(g): True})

The formulas are in c_api/include/thalweg/layer.h."""
from typing import TYPE_CHECKING, Any

from .at_once import in_training
from .layers import (ACTIVATIONS, INITIALIZERS, AvgPool1D, AvgPool2D, BatchNorm, Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D,
                     Conv3DTranspose, Dense, Dropout, Embedding, Flatten, GlobalAvgPool, GlobalMaxPool, GroupNorm, LayerNorm, MaxPool1D,
                     MaxPool2D, MultiHeadAttention, RMSNorm, activation, rotary, training, updates)
from .module import Concat, Module, Residual, Sequential
from .output import Output
from .sequences import GRU, LSTM, Bidirectional

__all__ = ["ACTIVATIONS", "AvgPool1D", "AvgPool2D", "BatchNorm", "Bidirectional", "Concat", "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose",
           "Conv3D", "Conv3DTranspose", "Dense", "Dropout", "Embedding", "Flatten", "GRU", "GlobalAvgPool", "GlobalMaxPool", "GroupNorm",
           "INITIALIZERS", "LSTM", "LayerNorm", "MaxPool1D", "MaxPool2D", "Module", "MultiHeadAttention", "RMSNorm", "Residual",
           "Sequential", "activation", "elu", "gelu", "gelu_tanh", "hard_sigmoid", "hard_swish", "in_training", "leaky_relu", "log_softmax", "mish",
           "relu", "relu6", "rotary", "selu", "sigmoid", "silu", "softmax", "softplus", "softsign", "tanh", "training", "updates"]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a type checker would conclude from it that every name exists
    def __getattr__(name):
        from .op_functions import unknown
        raise AttributeError(unknown("nn", name, __all__))


def relu(x: Any) -> Output:
    """max(x, 0)."""
    return activation("relu", x)


def relu6(x: Any) -> Output:
    """min(max(x, 0), 6)."""
    return activation("relu6", x)


def leaky_relu(x: Any) -> Output:
    """x, or 0.2 x if x < 0."""
    return activation("leaky_relu", x)


def elu(x: Any) -> Output:
    """x, or exp(x) - 1 if x < 0."""
    return activation("elu", x)


def selu(x: Any) -> Output:
    """1.0507 x, or 1.7581 (exp(x) - 1) if x < 0 (Klambauer et al., arXiv:1706.02515)."""
    return activation("selu", x)


def gelu(x: Any) -> Output:
    """x (1 + erf(x / sqrt 2)) / 2."""
    return activation("gelu", x)


def gelu_tanh(x: Any) -> Output:
    """The approximation of gelu by tanh, as in GPT-2."""
    return activation("gelu_tanh", x)


def silu(x: Any) -> Output:
    """x sigmoid(x), also called swish."""
    return activation("silu", x)


def mish(x: Any) -> Output:
    """x tanh(softplus(x))."""
    return activation("mish", x)


def sigmoid(x: Any) -> Output:
    """1 / (1 + exp(-x))."""
    return activation("sigmoid", x)


def hard_sigmoid(x: Any) -> Output:
    """relu6(x + 3) / 6."""
    return activation("hard_sigmoid", x)


def hard_swish(x: Any) -> Output:
    """x relu6(x + 3) / 6."""
    return activation("hard_swish", x)


def tanh(x: Any) -> Output:
    """The hyperbolic tangent."""
    return activation("tanh", x)


def softplus(x: Any) -> Output:
    """log(1 + exp(x))."""
    return activation("softplus", x)


def softsign(x: Any) -> Output:
    """x / (1 + |x|)."""
    return activation("softsign", x)


def softmax(x: Any) -> Output:
    """exp(x) over its sum along the last axis."""
    return activation("softmax", x)


def log_softmax(x: Any) -> Output:
    """The logarithm of softmax."""
    return activation("log_softmax", x)
