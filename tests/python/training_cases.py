"""What the comparison with TensorFlow runs on our side: optimizers, clipping, moving averages and schedules, each for a few steps.

Every case is a name and a function that answers {name: array}. training_peer.py runs the same cases on TensorFlow's side and writes
training_golden.npz; training_golden_test.py compares ours with that file. All factors are numbers that float holds exactly, because
TensorFlow rounds them to float whatever the variables are."""
import itertools

import numpy as np

import thalweg as tw

STEPS, ROWS, COLUMNS = 20, 4, 2
DTYPES = ("float32", "float64")
TOLERANCE = {"float32": 5e-6, "float64": 1e-12}
_containers = map("training_case{}".format, itertools.count())


def _numbers(*shape, phase):
    """Numbers between -1 and 1 that float holds exactly."""
    return np.round(64 * np.sin(1.7 * np.arange(np.prod(shape)) + phase)).reshape(shape) / 64


START = _numbers(ROWS, COLUMNS, phase=0.3)
DENSE = [_numbers(ROWS, COLUMNS, phase=1.1 * t + 1) for t in range(STEPS)]
# Every third step names one row twice.
SPARSE = [(_numbers(3, COLUMNS, phase=0.9 * t + 2), np.array([t % ROWS, (t * t + 1) % ROWS, (t if t % 3 == 0 else t + 2) % ROWS], np.int32))
          for t in range(STEPS)]

# name: (ours, names of the slots)
OPTIMIZERS = {
    "sgd": (lambda: tw.train.SGD(0.0625), []),
    "momentum": (lambda: tw.train.Momentum(0.0625, 0.75), ["Momentum"]),
    "nesterov": (lambda: tw.train.Momentum(0.0625, 0.75, nesterov=True), ["Momentum"]),
    "adagrad": (lambda: tw.train.Adagrad(0.25, initial_accumulator=0.125), ["Adagrad"]),
    "adagrad_epsilon": (lambda: tw.train.Adagrad(0.25, initial_accumulator=0.0, epsilon=2.0 ** -10), ["Adagrad"]),
    "adadelta": (lambda: tw.train.Adadelta(0.5, 0.875, 2.0 ** -10), ["Adadelta", "Adadelta_1"]),
    "rmsprop": (lambda: tw.train.RMSProp(0.0625, 0.875, 0.5, 2.0 ** -10), ["RMSProp", "RMSProp_1"]),
    "rmsprop_centered": (lambda: tw.train.RMSProp(0.0625, 0.875, 0.5, 2.0 ** -4, centered=True), ["RMSProp", "RMSProp_1", "RMSProp_2"]),
    "adam": (lambda: tw.train.Adam(0.0625, 0.875, 0.9375, 2.0 ** -20), ["Adam", "Adam_1"]),
    "adamw": (lambda: tw.train.AdamW(0.0625, 0.125, 0.875, 0.9375, 2.0 ** -20), ["Adam", "Adam_1"]),
    "adamax": (lambda: tw.train.AdaMax(0.0625, 0.875, 0.9375, 2.0 ** -20), ["AdaMax", "AdaMax_1"]),
    "ftrl": (lambda: tw.train.Ftrl(0.25, -0.5, 0.125, l1=0.125, l2=0.0625), ["Ftrl", "Ftrl_1"]),
    "ftrl_power": (lambda: tw.train.Ftrl(0.25, -0.25, 0.125, l1=0.0625), ["Ftrl", "Ftrl_1"]),
    "ftrl_shrinkage": (lambda: tw.train.Ftrl(0.25, -0.5, 0.125, l1=0.0625, l2=0.0625, l2_shrinkage=0.125), ["Ftrl", "Ftrl_1"]),
}


def optimizer(name, dtype, sparse):
    """The variable after each step, and the slots at the end."""
    make, slots = OPTIMIZERS[name]
    with tw.Graph() as g:
        w = tw.Variable(START.astype(dtype), name="w")
        values, rows = tw.placeholder(dtype, [None, COLUMNS]), tw.placeholder("int32", [None])
        step = make().apply([tw.SparseGradient(values, rows) if sparse else values], [w])
        every = {v.name: v for v in g.variables()}
        init = g.initializer()
    with tw.Session(g, container=next(_containers)) as s:
        s.run(init)
        path = []
        for t in range(STEPS):
            s.run(step, {values: SPARSE[t][0], rows: SPARSE[t][1]} if sparse else {values: DENSE[t]})
            path.append(np.array(s.run(w)))
        return {"w": np.stack(path)} | {f"slot{i}": s.run(every["w/" + slot]) for i, slot in enumerate(slots)}


def clipping(dtype, scale):
    """Two dense gradients and a sparse one, a row of which stands twice and counts as its sum."""
    gradients = [DENSE[0] * scale, DENSE[1][:2] * scale, SPARSE[0][0] * scale]
    with tw.Graph() as g:
        dense, other, values = (tw.constant(x.astype(dtype)) for x in gradients)
        given = [dense, None, other, tw.SparseGradient(values, tw.constant(SPARSE[0][1]))]
        by_value, by_norm = tw.train.clip_by_value(given, -0.25, 0.5), tw.train.clip_by_norm(given, 1.5)
        by_global, norm = tw.train.clip_by_global_norm(given, 2.5)
        found = {"global_norm": norm.astype(dtype)}
        for how, changed in (("value", by_value), ("norm", by_norm), ("global", by_global)):
            assert changed[1] is None and isinstance(changed[3], tw.SparseGradient)
            found |= {f"{how}{i}": changed[k].values if k == 3 else changed[k] for i, k in enumerate((0, 2, 3))}
    with tw.Session(g) as s:
        return s.run(found)


def average(dtype, counted):
    """A variable that follows a path, and its average."""
    with tw.Graph() as g:
        w, count = tw.Variable(START.astype(dtype), name="w"), tw.placeholder("int64", [])
        value = tw.placeholder(dtype, [ROWS, COLUMNS])
        averages = tw.averages.MovingAverages([w], 0.75, count if counted else None)
        step = averages.update(after=w.assign(value))
        init = g.initializer()
    with tw.Session(g, container=next(_containers)) as s:
        s.run(init)
        path = []
        for t in range(STEPS):
            s.run(step, {value: DENSE[t]} | ({count: t} if counted else {}))
            path.append(np.array(s.run(averages.averages[0])))
        return {"average": np.stack(path)}


SCHEDULE_STEPS = list(range(0, 36)) + [100, 1000]
SCHEDULES = {
    "piecewise": lambda step: tw.schedules.piecewise([5, 12, 30], [1.0, 0.5, 0.25, 0.125], step),
    "exponential": lambda step: tw.schedules.exponential(0.5, 10, 0.75, step=step),
    "exponential_stairs": lambda step: tw.schedules.exponential(0.5, 10, 0.75, True, step),
    "polynomial": lambda step: tw.schedules.polynomial(0.5, 16, 0.0625, 2.0, step=step),
    "polynomial_linear": lambda step: tw.schedules.polynomial(0.5, 16, 0.0625, step=step),
    "polynomial_cycle": lambda step: tw.schedules.polynomial(0.5, 16, 0.0625, 0.5, True, step),
    "cosine": lambda step: tw.schedules.cosine(0.5, 24, 0.0625, step),
    "cosine_restarts": lambda step: tw.schedules.cosine_restarts(0.5, 8, 2.0, 0.75, 0.0625, step),
    "cosine_restarts_even": lambda step: tw.schedules.cosine_restarts(0.5, 8, 1.0, 0.5, 0.0, step),
    "warm_up": lambda step: tw.schedules.warm_up(tw.schedules.cosine(0.5, 24, 0.0625, step - 8), 8, 0.25, step),
}


FLOAT_SCHEDULES = {"cosine", "cosine_restarts", "cosine_restarts_even", "warm_up"}  # which TensorFlow computes in float only


def schedule(name):
    with tw.Graph() as g:
        step = tw.placeholder("int64", [], name="step")
        rate = SCHEDULES[name](step)
    with tw.Session(g) as s:
        return {"rate": np.array([s.run(rate, {step: t}) for t in SCHEDULE_STEPS])}


# name of the case: (whose rounding it may differ by, how to run it)
CASES = {}
for _name, _dtype, _sparse in itertools.product(OPTIMIZERS, DTYPES, (False, True)):
    CASES[f"{_name}/{_dtype}/{'sparse' if _sparse else 'dense'}"] = _dtype, (optimizer, _name, _dtype, _sparse)
for _dtype, _scale in itertools.product(DTYPES, (0.25, 4.0)):
    CASES[f"clipping/{_dtype}/{_scale}"] = _dtype, (clipping, _dtype, _scale)
for _dtype, _counted in itertools.product(DTYPES, (False, True)):
    # TensorFlow computes a decay that depends on the count in float.
    CASES[f"average/{_dtype}/{'counted' if _counted else 'plain'}"] = "float32" if _counted else _dtype, (average, _dtype, _counted)
for _name in SCHEDULES:
    CASES[f"schedule/{_name}"] = "float32" if _name in FLOAT_SCHEDULES else "float64", (schedule, _name)


def ours(case):
    function, *arguments = CASES[case][1]
    return function(*arguments)


def compare(case, got, wanted):
    """Raises AssertionError, naming the part, where the two differ by more than rounding."""
    assert sorted(got) == sorted(wanted), f"{case}: {sorted(got)} instead of {sorted(wanted)}"
    tolerance = TOLERANCE[CASES[case][0]]
    for part in wanted:
        np.testing.assert_allclose(got[part], wanted[part], rtol=tolerance, atol=tolerance, err_msg=f"{case} {part}")
