import os
import subprocess
import sys

import pytest

import thalweg as tw


def test_devices_and_plugins_are_listed():
    kinds = {d.kind for d in tw.devices()}
    assert "CPU" in kinds and all(d.name.startswith("/job:") and d.plugin for d in tw.devices())
    cpu = next(p for p in tw.plugins() if p.id == "org.thalweg.cpu")
    assert (cpu.state, cpu.device_kinds, cpu.reason, cpu.fix) == ("loaded", ("CPU",), "", "") and cpu.kernels > 100
    assert any("MatMul" in p.ops for p in tw.plugins())


def test_a_runtime_of_ones_own():
    runtime = tw.Runtime(threads=1, load_plugins=False)
    assert [p for p in runtime.plugins() if p.state == "loaded" and p.device_kinds] == [] and runtime.devices() == []
    with tw.Graph(runtime) as g:
        tw.constant(1) + 1
    with pytest.raises(tw.FailedPreconditionError):
        tw.Session(g)
    threads = tw.Runtime.options()["threads"]
    assert (threads.kind, threads.min, threads.max) == ("int", 0, 4096)
    with pytest.raises(tw.InvalidArgumentError, match="'thread'"):
        tw.Runtime(thread=1)


def test_plugins_are_loaded_by_path():
    runtime = tw.Runtime(load_plugins=False)
    cpu = next(p for p in tw.plugins() if p.id == "org.thalweg.cpu")
    runtime.load_plugin(cpu.path)
    assert [d.kind for d in runtime.devices()] == ["CPU"]
    with tw.Graph(runtime) as g:
        x = tw.placeholder(tw.float32, [])
        y = x + 1
    session = tw.Session(g)
    assert session.run(y, {x: 1}) == 2
    with pytest.raises(tw.FailedPreconditionError, match="have its kernels or devices"):
        runtime.unload_plugin("org.thalweg.cpu")
    with pytest.raises(tw.NotFoundError):
        tw.load_plugin("/nowhere/libnothing.so", runtime)
    with pytest.raises(tw.NotFoundError):
        runtime.unload_plugin("org.nobody")
    other = tw.Runtime(load_plugins=False)
    other.load_plugin(cpu.path)
    other.unload_plugin("org.thalweg.cpu")
    assert [p.state for p in other.plugins() if p.id == "org.thalweg.cpu"] == ["disabled"] and other.devices() == []


def test_runtimes_share_nothing():
    values = []
    for start in (1.0, 2.0):
        with tw.Graph(tw.Runtime(threads=1)) as g:
            v = tw.Variable(start, name="v")
        s = tw.Session(g)
        s.run(g.initializer())
        values.append((s, v))
    assert [s.run(v) for s, v in values] == [1, 2]


def test_versions():
    assert tw.version() == tw.__version__ and tw.version().count(".") == 2


def test_a_library_that_is_not_there_is_told():
    done = subprocess.run([sys.executable, "-c", "import thalweg"], capture_output=True, text=True, check=False,
                          env={**os.environ, "THALWEG_LIBRARY": "/nowhere/libthalweg.so"})
    assert done.returncode != 0
    assert "cannot load Thalweg's library '/nowhere/libthalweg.so'" in done.stderr and "set THALWEG_LIBRARY" in done.stderr
