"""Draws positions in a tensor, indices [..., depth], and returns the slices there, for tensors and for variables."""
import numpy as np


def places(d, shape):
    """Draws positions in a tensor of that shape."""
    depth = d.integer(0, len(shape))
    outer = d.pick((), (1,), (5,), (2, 3), (0, 2)) if np.prod(shape[:depth]) else (0,)
    return np.stack([d.rng.integers(0, max(1, size), outer) for size in shape[:depth]], -1) if depth else np.zeros(outer + (0,), int)


def gather_nd(x, at):
    depth = at.shape[-1]
    return x[tuple(at[..., k] for k in range(depth))] if depth else np.broadcast_to(x, at.shape[:-1] + x.shape)
