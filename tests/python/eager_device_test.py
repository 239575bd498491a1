"""Without a graph on a device with memory of its own, the accelerator in software: values stay where they are made."""
import os

import numpy as np
import pytest

import thalweg as tw

FAKE = os.environ["THALWEG_BINARY_DIR"] + "/tests/devices/libfake.so"


@pytest.fixture
def runtime():
    return tw.Runtime(plugin_path=FAKE, threads=2, **{"plugin.org.thalweg.fake.delay_us": 200})


def copies(runtime):
    found = next(d for d in runtime.devices() if d.name.endswith("FAKE:0")).statistics
    return found["copies_in"], found["copies_out"]


def on_device(value):
    return value.device is not None and value.device.endswith("FAKE:0")


def test_what_is_on_a_device_is_computed_with_there(runtime):
    with tw.Eager(runtime):
        with tw.device("FAKE:0"):
            x = tw.constant([2.0, 3.0]) * [1.0, 1.0]
        before = copies(runtime)
        y = x * x
        z = y * y
        assert on_device(x) and on_device(z) and copies(runtime) == before
        assert z.numpy().tolist() == [16, 81] and "FAKE:0" in repr(z) and "16, 81" in repr(z)
        assert (z * [1.0, 2.0]).numpy().tolist() == [16, 162]


def test_a_context_has_a_device(runtime):
    with tw.Eager(runtime, device="FAKE:0"):
        x = tw.ops.mul([2.0, 3.0], [4.0, 5.0])
    assert on_device(x) and x.numpy().tolist() == [8, 15]


def test_gradients_stay_there(runtime):
    with tw.Eager(runtime, device="FAKE:0"):
        x = tw.ops.mul([2.0, 3.0], [1.0, 1.0])
        with tw.Tape() as outer:
            outer.watch(x)
            with tw.Tape() as inner:
                inner.watch(x)
                y = tw.ops.square(x)
            g = inner.gradient(y, x)
        second = outer.gradient(g, x)
    assert on_device(y) and on_device(g) and g.numpy().tolist() == [4, 6] and second.numpy().tolist() == [2, 2]


def test_what_a_device_has_no_kernel_for_is_computed_elsewhere(runtime):
    with tw.Eager(runtime):
        with tw.device("FAKE:0"):
            x = tw.ops.mul([0.0, 1.0], [1.0, 1.0])
        y = tw.ops.exp(x)
        assert y.device is None and y.numpy().tolist() == pytest.approx([1, np.e])
        with tw.device("FAKE:0"), pytest.raises(tw.Error, match="Exp.*FAKE"):
            tw.ops.exp(x)


def test_a_variable_is_read_and_updated_where_it_lives(runtime):
    with tw.Eager(runtime):
        with tw.device("FAKE:0"):
            w = tw.Variable([1.0, 2.0])
        w.assign_add([1.0, 1.0])
        y = w * w
        assert on_device(w.read()) and on_device(y) and y.numpy().tolist() == [4, 9]
