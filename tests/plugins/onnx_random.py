"""The ten cases with random results: six of Bernoulli and four of Dropout in training. No implementation gets the expected numbers, so type,
shape, set of values and mean are compared. A mean may be five standard deviations from its expectation, which a sound generator exceeds
once in 1.7 million draws."""
import numpy as np

RATIO = 0.5  # of Dropout where no input gives another


def is_random(name):
    """Tells whether the results of a case are random."""
    case = name.split("/")[-1].removeprefix("test_")
    return case.startswith("bernoulli") or (case.startswith("training_dropout") and "zero_ratio" not in case)


def require(condition, message):
    if not condition:
        raise AssertionError(message)


def fits(count, chances, what):
    """Requires that `count` truths are what independent draws of those chances give, within five standard deviations."""
    expected, deviation = float(np.sum(chances)), float(np.sqrt(np.sum(chances * (1 - chances))))
    require(abs(count - expected) <= 5 * deviation, f"{what}: {count} of {chances.size}; expected {expected:g}, deviation {deviation:g}")


def check(name, fed, got, expected):
    """fed, got, expected: arrays by name. Raises AssertionError for results that are not a draw of the case's distribution."""
    for key, value in expected.items():
        found = got[key]
        require(found.dtype == value.dtype and found.shape == value.shape,
                f"output '{key}' is {found.dtype}{list(found.shape)}; expected {value.dtype}{list(value.shape)}")
    x = fed["x"]
    if "bernoulli" in name:
        y = got["y"]
        require(np.isin(y, (0, 1)).all(), "an element is neither 0 nor 1")
        # The body of ONNX 1.12's function, which the "expanded" cases hold, compares the wrong way round: ones come with chance 1 - x.
        chances = 1 - x.astype(np.float64) if name.endswith("_expanded") else x.astype(np.float64)
        fits(int(y.sum()), chances, "ones")
        return
    ratio = float(fed["r"]) if "r" in fed else RATIO
    y = got["y"]
    kept = y != 0
    require(np.allclose(y[kept], x[kept] / (1 - ratio), rtol=1e-3, atol=1e-5), "a kept element is not x / (1 - ratio)")
    fits(int(kept.sum()), np.full(x.shape, 1 - ratio), "kept elements")
    if "z" in got:
        require(np.array_equal(got["z"], kept), "the mask differs from the elements that are kept")
