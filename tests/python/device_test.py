"""Tensors that live on devices: the accelerator in software."""
import ctypes
import gc
import os
import threading
import time

import numpy as np
import pytest

import thalweg as tw

FAKE = os.environ["THALWEG_BINARY_DIR"] + "/tests/devices/libfake.so"
work = ctypes.c_uint32()  # of another library; for as long as any device may look


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


def test_a_variable_that_a_loop_of_functions_reads_stays_on_its_device(runtime):
    with tw.Graph(runtime) as graph:
        x = tw.placeholder("float32", [None, 2], name="x")
        with tw.device("FAKE:0"):
            w = tw.Variable(np.array([[0, 1], [2, 0]], np.float32), name="w")
            y = tw.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, tw.ops.mat_mul(a, w)], [0, x])[1]
        train = tw.train.SGD(0.5).minimize(y.sum())
    with tw.Session(graph, fallback="allow") as session:
        session.run(graph.initializer())
        for fetch, feeds in ((graph.initializer(), []), (train, [x])):
            (place,) = (p for p in session.plan([fetch], feeds)["places"] if p["node"] == "w")
            assert place["device"].endswith("FAKE:0") and place["why"] == "asked"
        np.testing.assert_array_equal(session.run(y, {x: np.ones((1, 2), np.float32)}), [[4, 2]])


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


class OfAnotherLibrary:
    """An array on a device: somebody else's, which says what it was asked for."""

    def __init__(self, tensor):
        self.tensor, self.asked = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append((stream, max_version))
        return self.tensor.__dlpack__(max_version=max_version)


def test_memory_of_a_device_is_shared_by_dlpack(runtime):
    there = tw.Tensor(np.arange(4, dtype=np.float32)).to_device("FAKE:1", runtime)
    assert there.__dlpack_device__() == (12, 1)
    source = OfAnotherLibrary(there)
    with tw.Graph(runtime) as graph:
        x = tw.placeholder("float32", [None])
        with tw.device("FAKE:1"):
            y = x * x
    before = counters(runtime, 1)
    taken = tw.from_dlpack(source, runtime=runtime)
    assert source.asked == [(None, (1, 0))] and taken.device.endswith("FAKE:1") and taken.shape == (4,)
    with tw.Session(graph) as session:
        out = session.callable(y, [x], feed_devices=["FAKE:1"], fetch_devices=["FAKE:1"])(taken)
    after = counters(runtime, 1)
    assert after["copies_in"] == before["copies_in"] and after["copies_out"] == before["copies_out"]
    np.testing.assert_array_equal(out.numpy(), [0, 1, 4, 9])
    del there, source
    np.testing.assert_array_equal(taken.numpy(), [0, 1, 2, 3])


def test_the_queue_of_another_library_is_waited_for(runtime):
    there = tw.Tensor(np.arange(4, dtype=np.float32)).to_device("FAKE:0", runtime)
    source = OfAnotherLibrary(there)
    work.value = 0
    taken = tw.from_dlpack(source, ctypes.addressof(work), runtime)
    assert source.asked == [(ctypes.addressof(work), (1, 0))]
    begun = time.monotonic()
    threading.Timer(0.1, setattr, (work, "value", 1)).start()
    np.testing.assert_array_equal(taken.numpy(), [0, 1, 2, 3])
    assert time.monotonic() - begun > 0.09


def test_consumers_that_want_host_memory_get_a_copy(runtime):
    there = tw.Tensor(np.arange(4, dtype=np.float32)).to_device("FAKE:0", runtime)
    here = tw.from_dlpack(type("Here", (), {"__dlpack__": lambda self, **_: there.__dlpack__(dl_device=(1, 0))})())
    assert here.device is None
    np.testing.assert_array_equal(here.numpy(), [0, 1, 2, 3])
    with pytest.raises(BufferError, match="FAKE:0.*device \\(1, 0\\)"):
        there.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="the host.*device \\(2, 0\\)"):
        here.__dlpack__(dl_device=(2, 0))
    assert here.__dlpack_device__() == (1, 0)


def test_devices_that_are_not_there_share_nothing(runtime):
    there = tw.Tensor(np.arange(4, dtype=np.float32)).to_device("FAKE:0", runtime)
    with pytest.raises(tw.NotFoundError, match="device 0 of DLPack type 12; devices that share memory"):
        tw.from_dlpack(there)  # the default runtime has no such device
    with pytest.raises(TypeError, match="integer"):
        tw.from_dlpack(there, "a queue", runtime)


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


def test_memory_in_use_is_counted(runtime):
    def used(kind):
        device = next(d for d in runtime.devices() if d.kind == kind)
        return device.pool_used, device.pool_peak

    host, _ = used("CPU")
    x = tw.Tensor(np.ones(1 << 20, np.float32))  # a copy
    assert used("CPU")[0] >= host + (4 << 20) and used("CPU")[1] >= host + (4 << 20)
    assert used("FAKE")[0] == 0
    there = x.to_device("FAKE:0", runtime)
    assert used("FAKE")[0] >= 4 << 20 and used("FAKE")[1] >= used("FAKE")[0]
    del x, there
    gc.collect()
    assert used("CPU")[0] < host + (4 << 20) <= used("CPU")[1] and used("FAKE")[0] == 0


def test_devices_say_what_they_can_do(runtime):
    by_kind = {d.kind: d.capabilities for d in runtime.devices()}
    assert "host memory" in by_kind["CPU"] and {"streams", "pinned", "peer"} <= set(by_kind["FAKE"])
