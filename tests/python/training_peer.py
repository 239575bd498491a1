"""The cases of training_cases.py on TensorFlow's side, compared with ours and with training_golden.npz.

    tools/test -L peer                                                   compares
    tools/cmake/peer-python tests/python/training_peer.py --update       writes training_golden.npz anew"""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
sys.path += [str(pathlib.Path(os.environ.get("THALWEG_BINARY_DIR", ROOT / "build/release")) / "python"), str(pathlib.Path(__file__).parent)]
try:
    import numpy as np
    import tensorflow as tf
except ImportError as error:
    print(f"skipped: {error}; run tools/setup --peers")
    sys.exit(77)

import training_cases as cases

GOLDEN = pathlib.Path(__file__).with_name("training_golden.npz")
v1 = tf.compat.v1.train


class Raw:
    """An optimizer that TensorFlow has as ops only: apply_gradients as v1's have it, on one variable. Slots by their number."""

    def __init__(self, slots, dense, rows):
        self.initial, self.dense, self.rows, self.slots = slots, dense, rows, None

    def apply_gradients(self, pairs):
        (gradient, w), = pairs
        if self.slots is None:
            self.slots = [tf.Variable(tf.fill(w.shape, tf.cast(x, w.dtype))) for x in self.initial]
        if not isinstance(gradient, tf.IndexedSlices):
            return self.dense(w, self.slots, gradient)
        rows, place = tf.unique(gradient.indices)
        return self.rows(w, self.slots, tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows)), rows)


def adagrad_epsilon(_):
    def factors(w):
        return {"lr": tf.constant(0.25, w.dtype), "epsilon": tf.constant(2.0 ** -10, w.dtype)}

    def dense(w, slots, g):
        tf.raw_ops.ResourceApplyAdagradV2(var=w.handle, accum=slots[0].handle, grad=g, **factors(w))

    def sparse(w, slots, g, rows):
        tf.raw_ops.ResourceSparseApplyAdagradV2(var=w.handle, accum=slots[0].handle, grad=g, indices=rows, **factors(w))

    return Raw([0.0], dense, sparse)


def adamax(dtype):
    power = tf.Variable(tf.constant(0.875, dtype))

    def dense(w, slots, g):
        number = lambda x: tf.constant(x, w.dtype)
        tf.raw_ops.ResourceApplyAdaMax(var=w.handle, m=slots[0].handle, v=slots[1].handle, beta1_power=tf.cast(power, w.dtype),
                                       lr=number(0.0625), beta1=number(0.875), beta2=number(0.9375), epsilon=number(2.0 ** -20), grad=g)
        power.assign(power * 0.875)

    def sparse(w, slots, g, rows):
        """As AdaMaxOptimizer of tf.contrib wrote it."""
        m, v = slots
        m_rows = 0.875 * tf.gather(m, rows) + (1 - 0.875) * g
        v_rows = tf.maximum(0.9375 * tf.gather(v, rows), tf.abs(g))
        m.assign(tf.tensor_scatter_nd_update(m, rows[:, None], m_rows))
        v.assign(tf.tensor_scatter_nd_update(v, rows[:, None], v_rows))
        rate = 0.0625 / (1 - tf.cast(power, w.dtype))
        w.assign(tf.tensor_scatter_nd_sub(w, rows[:, None], rate * m_rows / (v_rows + 2.0 ** -20)))
        power.assign(power * 0.875)

    return Raw([0.0, 0.0], dense, sparse)


def adam(dtype):
    """With powers of the variable's type, as Keras has them; of numbers, v1 keeps powers in float."""
    return v1.AdamOptimizer(0.0625, tf.constant(0.875, dtype), tf.constant(0.9375, dtype), 2.0 ** -20)


class AdamW:
    """Keras's order: the gradient is known, the weights decay, Adam steps."""

    def __init__(self, dtype):
        self.adam = adam(dtype)
        self.get_slot = self.adam.get_slot

    def apply_gradients(self, pairs):
        (_, w), = pairs
        w.assign_sub(w * 0.125 * 0.0625)
        self.adam.apply_gradients(pairs)


# name: (theirs, names of its slots in our order)
OPTIMIZERS = {
    "sgd": (lambda _: v1.GradientDescentOptimizer(0.0625), []),
    "momentum": (lambda _: v1.MomentumOptimizer(0.0625, 0.75), ["momentum"]),
    "nesterov": (lambda _: v1.MomentumOptimizer(0.0625, 0.75, use_nesterov=True), ["momentum"]),
    "adagrad": (lambda _: v1.AdagradOptimizer(0.25, 0.125), ["accumulator"]),
    "adagrad_epsilon": (adagrad_epsilon, [0]),
    "adadelta": (lambda _: v1.AdadeltaOptimizer(0.5, 0.875, 2.0 ** -10), ["accum", "accum_update"]),
    "rmsprop": (lambda _: v1.RMSPropOptimizer(0.0625, 0.875, 0.5, 2.0 ** -10), ["rms", "momentum"]),
    "rmsprop_centered": (lambda _: v1.RMSPropOptimizer(0.0625, 0.875, 0.5, 2.0 ** -4, centered=True), ["rms", "mg", "momentum"]),
    "adam": (adam, ["m", "v"]),
    "adamw": (AdamW, ["m", "v"]),
    "adamax": (adamax, [0, 1]),
    "ftrl": (lambda _: v1.FtrlOptimizer(0.25, -0.5, 0.125, 0.125, 0.0625), ["accum", "linear"]),
    "ftrl_power": (lambda _: v1.FtrlOptimizer(0.25, -0.25, 0.125, 0.0625), ["accum", "linear"]),
    "ftrl_shrinkage": (lambda _: v1.FtrlOptimizer(0.25, -0.5, 0.125, 0.0625, 0.0625, l2_shrinkage_regularization_strength=0.125),
                       ["accum", "linear"]),
}


def optimizer(name, dtype, sparse):
    make, slots = OPTIMIZERS[name]
    w, step, path = tf.Variable(cases.START.astype(dtype)), make(dtype), []
    for t in range(cases.STEPS):
        if sparse:
            values, rows = cases.SPARSE[t]
            gradient = tf.IndexedSlices(tf.constant(values.astype(dtype)), tf.constant(rows), w.shape)
        else:
            gradient = tf.constant(cases.DENSE[t].astype(dtype))
        step.apply_gradients([(gradient, w)])
        path.append(w.numpy())
    found = [step.slots[s] if isinstance(s, int) else step.get_slot(w, s) for s in slots]
    return {"w": np.stack(path)} | {f"slot{i}": s.numpy() for i, s in enumerate(found)}


def clipping(dtype, scale):
    dense, other, values = (tf.constant((x * scale).astype(dtype)) for x in (cases.DENSE[0], cases.DENSE[1][:2], cases.SPARSE[0][0]))
    rows, place = tf.unique(tf.constant(cases.SPARSE[0][1]))  # TensorFlow itself bounds the values as they stand
    given = [dense, other, tf.IndexedSlices(tf.math.unsorted_segment_sum(values, place, tf.size(rows)), rows, dense.shape)]
    by_global, norm = tf.clip_by_global_norm(given, 2.5)
    found = {"global_norm": norm.numpy()}
    for how, changed in (("value", [tf.clip_by_value(g, -0.25, 0.5) for g in given]), ("norm", [tf.clip_by_norm(g, 1.5) for g in given]),
                         ("global", by_global)):
        found |= {f"{how}{i}": tf.convert_to_tensor(g.values if isinstance(g, tf.IndexedSlices) else g).numpy()
                  for i, g in enumerate(changed)}
    return found


def average(dtype, counted):
    w, path, updates = tf.Variable(cases.START.astype(dtype)), [], tf.Variable(0)
    averages = tf.train.ExponentialMovingAverage(0.75, updates if counted else None)
    averages.apply([w])  # makes the shadow; w is still where it starts, so that this is no step
    for t in range(cases.STEPS):
        w.assign(cases.DENSE[t])
        updates.assign(t)
        averages.apply([w])
        path.append(averages.average(w).numpy())
    return {"average": np.stack(path)}


def number(x):
    return tf.constant(x, tf.float64)


SCHEDULES = {
    "piecewise": lambda t: v1.piecewise_constant(t, [5, 12, 30], [number(x) for x in (1.0, 0.5, 0.25, 0.125)]),
    "exponential": lambda t: v1.exponential_decay(number(0.5), t, 10, 0.75),
    "exponential_stairs": lambda t: v1.exponential_decay(number(0.5), t, 10, 0.75, staircase=True),
    "polynomial": lambda t: v1.polynomial_decay(number(0.5), t, 16, 0.0625, 2.0),
    "polynomial_linear": lambda t: v1.polynomial_decay(number(0.5), t, 16, 0.0625),
    "polynomial_cycle": lambda t: v1.polynomial_decay(number(0.5), t, 16, 0.0625, 0.5, cycle=True),
    "cosine": lambda t: v1.cosine_decay(0.5, t, 24, 0.0625),
    "cosine_restarts": lambda t: v1.cosine_decay_restarts(0.5, t, 8, 2.0, 0.75, 0.0625),
    "cosine_restarts_even": lambda t: v1.cosine_decay_restarts(0.5, t, 8, 1.0, 0.5, 0.0),
    "warm_up": lambda t: lambda: tf.keras.optimizers.schedules.CosineDecay(0.125, 24, 0.0625, warmup_target=0.5, warmup_steps=8)(t),
}


def schedule(name):
    rates = [SCHEDULES[name](tf.constant(t)) for t in cases.SCHEDULE_STEPS]
    return {"rate": np.array([float(r() if callable(r) else r) for r in rates])}


def theirs(case):
    function, *arguments = cases.CASES[case][1]
    return globals()[function.__name__](*arguments)


def main():
    found = {case: theirs(case) for case in cases.CASES}
    flat = {f"{case}|{part}": array for case, parts in found.items() for part, array in parts.items()}
    if "--update" in sys.argv:
        np.savez_compressed(GOLDEN, **flat)
        print(f"{GOLDEN}: {len(flat)} arrays, {GOLDEN.stat().st_size} bytes")
        return 0
    golden, failures = np.load(GOLDEN), 0
    for case, wanted in found.items():
        kept = {name.split("|")[1]: golden[name] for name in golden.files if name.split("|")[0] == case}
        for who, got in (("ours", cases.ours(case)), ("training_golden.npz", kept)):
            try:
                cases.compare(case, got, wanted)
            except AssertionError as error:
                failures += 1
                print(f"FAILED {who}: {error}")
    print(f"{len(found)} cases, {failures} comparisons failed")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
