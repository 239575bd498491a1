"""Tensors that live on devices: the accelerator in software."""
import os

import numpy as np
import pytest

import thalweg as tw

FAKE = os.environ["THALWEG_BINARY_DIR"] + "/tests/devices/libfake.so"


@pytest.fixture
def runtime():
    return tw.Runtime(plugin_path=FAKE, threads=2, **{"plugin.org.thalweg.fake.delay_us": 200})


def counters(runtime, index=0):
    return next(d for d in runtime.devices() if d.name.endswith(f"FAKE:{index}")).statistics


def test_what_is_left_on_a_device_may_be_fed_again(runtime):
    with tw.Graph(runtime) as graph:
        x = tw.placeholder("float32", [None], name="x")
        with tw.device("FAKE:0"):
            y = x * x
    with tw.Session(graph) as session:
        step = session.callable(y, [x], feed_devices=["FAKE:0"], fetch_devices=["FAKE:0"])
        value = step(np.array([2, 3], np.float32))
        assert isinstance(value, tw.Tensor) and value.device.endswith("FAKE:0") and value.shape == (2,)
        before = counters(runtime)
        for _ in range(2):
            value = step(value)
        after = counters(runtime)
        assert after["copies_in"] == before["copies_in"] and after["copies_out"] == before["copies_out"]
        np.testing.assert_array_equal(value.numpy(), [256, 6561])
        # Fed to a step that wants it from the host.
        np.testing.assert_array_equal(session.run(y, {x: value}), np.square(np.array([256, 6561], np.float32)))


def test_tensors_move_between_memories(runtime):
    here = tw.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    there = here.to_device("FAKE:1", runtime)
    assert here.device is None and there.device.endswith("FAKE:1") and there.to_device("FAKE:1", runtime).device == there.device
    np.testing.assert_array_equal(there.to_device("FAKE:0", runtime).to_host().numpy(), here.numpy())
    np.testing.assert_array_equal(np.asarray(there), here.numpy())
    with pytest.raises(tw.NotFoundError, match="'FAKE:9' not found; registered: CPU:0.*FAKE:1"):
        here.to_device("FAKE:9", runtime)
    with pytest.raises(tw.InvalidArgumentError, match="string"):
        tw.Tensor(["a"]).to_device("FAKE:0", runtime)


def test_what_needs_the_elements_says_that_they_are_elsewhere(runtime):
    there = tw.Tensor(np.ones(3, np.float32)).to_device("FAKE:0", runtime)
    assert "..." in repr(there)
    with pytest.raises((BufferError, tw.InvalidArgumentError), match="FAKE:0"):
        there.__dlpack__()


def test_names_of_devices_are_checked(runtime):
    with tw.Graph(runtime) as graph:
        x = tw.placeholder("float32", [None])
    with tw.Session(graph) as session:
        with pytest.raises(tw.NotFoundError, match="'FAKE:5' not found; registered"):
            session.callable(x, [x], fetch_devices=["FAKE:5"])
        with pytest.raises(ValueError, match="one each"):
            session.callable(x, [x], feed_devices="FAKE:0")


def test_memory_is_given_back_when_asked(runtime):
    tw.Tensor(np.ones(1000, np.float32)).to_device("FAKE:0", runtime)
    assert counters(runtime)["memory_used"] > 0
    runtime.give_memory_back()
    assert counters(runtime)["memory_used"] == 0


def test_devices_say_what_they_can_do(runtime):
    by_kind = {d.kind: d.capabilities for d in runtime.devices()}
    assert "host memory" in by_kind["CPU"] and {"streams", "pinned", "peer"} <= set(by_kind["FAKE"])
