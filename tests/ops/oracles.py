"""The results of oracles for uses."""
import numpy as np

import tw
import ulps


def wanted(declaration, use):
    """Returns the oracle's results as a list."""
    inputs = [[ulps.widened(x) for x in group] if isinstance(group, list) else ulps.widened(group) for group in use.inputs]
    known = {a: told(use.attrs.get(a, default(use.op, a))) for a in declaration.asks}
    with np.errstate(all="ignore"):
        found = declaration.oracle(*inputs, **known)
    return after(use, list(found) if isinstance(found, (list, tuple)) else [found])


def after(use, found):
    """Completes the oracle's results: outputs that refer to the first variable have its value; variables without a result keep their
    value."""
    variables = [x for x in use.flat if isinstance(x, tw.Variable)]
    if not variables:
        return found
    outputs = len(tw.ops()[use.op]["outputs"])
    if tw.refers_to_its_variable(use.op):
        found = found[:1] + found
    if len(found) == outputs and all(x.set for x in variables):
        found = found + [ulps.widened(x.array) for x in variables]
    return found


def told(value):
    """Returns an attribute for an oracle: types as NumPy's, numbers rounded as they are stored."""
    if isinstance(value, list):
        return [told(v) for v in value]
    if isinstance(value, tw.thalweg.DType):
        return tw.numpy_of(value)
    return float(np.float32(value)) if isinstance(value, float) else value


def default(op, attr):
    return next(a.get("default") for a in tw.ops()[op]["attrs"] if a["name"] == attr)
