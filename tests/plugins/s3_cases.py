"""What plugins/s3 must do at every store, through the Python binding: s3_test.py runs it at s3_stub.py, tests/engines/s3_test.py at
moto. Each case gets a folder `root` of its own, "s3://bucket/name"."""
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import thalweg as tw

PART = 5 << 20  # the setting part_bytes


def options(**more):
    """Runtime options of the plugin for tests: short pauses, small parts."""
    chosen = {"backoff_ms": 1, "longest_backoff_ms": 20, "patience_ms": 30_000, "part_bytes": PART, **more}
    return {f"plugin.org.thalweg.s3.{key}": value for key, value in chosen.items()}


def use(url, key, secret, region):
    """Names the store in the environment. Must be called before the default runtime is made."""
    for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION", "AWS_CA_BUNDLE",
                 "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
        os.environ.pop(name, None)
    os.environ.update(AWS_ENDPOINT_URL=url, AWS_ACCESS_KEY_ID=key, AWS_SECRET_ACCESS_KEY=secret, AWS_REGION=region,
                      AWS_CONFIG_FILE="/nonexistent/config", AWS_SHARED_CREDENTIALS_FILE="/nonexistent/credentials")
    given = [os.environ.get("THALWEG_OPTIONS"), *(f"{k}={v}" for k, v in options().items())]
    os.environ["THALWEG_OPTIONS"] = ";".join(filter(None, given))


def op(name, *texts):
    """Runs an op of files on constants."""
    with tw.Graph() as graph:
        made = getattr(tw.ops, name)(*(tw.constant(t, "string") for t in texts))
        return np.asarray(tw.Session(graph).run(made), object)


def bytes_of(elements):
    return [e if isinstance(e, bytes) else bytes(e) for e in (x.item() if hasattr(x, "item") else x for x in elements)]


containers = itertools.count()


class Model:
    """A variable of `bytes` bytes that changes with each step."""

    def __init__(self, bytes=64):
        with tw.Graph() as self.graph:
            self.w = tw.Variable(np.arange(bytes // 4, dtype=np.float32), name="w")
            self.add = self.w.assign(self.w + 1.0)
            self.saver = tw.Saver()
            self.session = tw.Session(self.graph, container=f"s3-{next(containers)}")
            self.session.run(self.graph.initializer())

    def value(self):
        return np.array(self.session.run(self.w))


def a_checkpoint_is_saved_and_restored(root):
    model = Model(2 * PART + 4)  # three parts
    model.saver.save(model.session, f"{root}/model")
    saved = model.value()
    model.session.run(model.add)
    model.saver.restore(model.session, f"{root}/model")
    np.testing.assert_array_equal(model.value(), saved)
    model.session.run(model.add)
    model.saver.save(model.session, f"{root}/model")  # over the old one
    with tw.Checkpoint(f"{root}/model") as c:
        np.testing.assert_array_equal(c["w"], saved + 1)
        c.verify()


def a_checkpointer_keeps_the_newest(root):
    model = Model()
    with tw.Checkpointer(model.session, root, model.saver, keep_last=2, every_steps=1) as c:
        assert c.restore() == 0
        for step in range(1, 5):
            model.session.run(model.add)
            c.step(step)
    assert tw.latest_checkpoint(root) == f"{root}/model.ckpt-4"
    found = sorted(name.decode().rsplit("/", 1)[1] for name in op("matching_files", f"{root}/*").tolist())
    assert found == ["checkpoint", *(f"model.ckpt-{n}.{end}" for n in (3, 4) for end in ("data-00000-of-00001", "index"))]
    other = Model()
    with tw.Checkpointer(other.session, root, other.saver) as c:
        assert c.restore() == 4
    np.testing.assert_array_equal(other.value(), model.value())


def records_are_written_and_read(root):
    written = [b"", b"x", *(bytes([i]) * (100_000 + i) for i in range(120))]  # 12 MB: parts, and windows
    with tw.data.RecordWriter(f"{root}/a.tfrecord") as w:
        for record in written:
            w.write(record)
    for _ in range(2):
        assert bytes_of(tw.data.records([f"{root}/a.tfrecord"])) == written


def a_writer_that_raises_leaves_nothing(root):
    with pytest.raises(ZeroDivisionError), tw.data.RecordWriter(f"{root}/b.tfrecord") as w:
        w.write(bytes(PART + 1))
        1 / 0
    with pytest.raises(tw.NotFoundError):
        list(tw.data.records([f"{root}/b.tfrecord"]))


def files_have_any_bytes_and_names(root):
    for name in ("empty", "a b+c%d&e=f;g", "ü€", "deep/er/name", "deeper"):
        contents = b"" if name == "empty" else name.encode() * 3
        op("write_file", f"{root}/{name}".encode(), contents)
        assert op("read_file", f"{root}/{name}".encode()).item() == contents
    assert sorted(op("matching_files", f"{root}/deep*/*/*".encode()).tolist()) == [f"{root}/deep/er/name".encode()]
    assert op("read_file", f"{root}//deep///er/name".encode()).item() == b"deep/er/name" * 3


def missing_things_are_not_found(root):
    with pytest.raises(tw.NotFoundError, match="there is no such object"):
        op("read_file", f"{root}/nothing")
    with pytest.raises(tw.NotFoundError, match="no bucket 'no-such-bucket-here'"):
        op("read_file", "s3://no-such-bucket-here/x")
    assert tw.latest_checkpoint(f"{root}/empty") is None


def a_model_is_saved_and_loaded(root):
    with tw.Graph() as graph:
        x = tw.placeholder("float32", [None], name="x")
        w = tw.Variable(np.float32(3), name="w")
        y = x * w
        session = tw.Session(graph, container=f"s3-{next(containers)}")
        session.run(graph.initializer())
        tw.save(session, f"{root}/net.model", {"serving_default": ({"x": x}, {"y": y})})
    np.testing.assert_array_equal(tw.load(f"{root}/net.model")(x=np.float32([1, 2]))["y"], [3, 6])


def summaries_are_seen_at_a_flush(root):
    with tw.SummaryWriter(f"{root}/run", flush_seconds=1000) as w:
        w.scalar("loss", 1.5, 0)
        w.flush()
        first = op("read_file", w.path).item()
        w.scalar("loss", 2.5, 1)
    whole = op("read_file", w.path).item()
    assert b"loss" in first and whole.startswith(first) and len(whole) > len(first)


KILLED = """
import sys
import numpy as np
import s3_cases
model = s3_cases.Model(4 * s3_cases.PART)
model.session.run(model.add)
with s3_cases.tw.Checkpointer(model.session, sys.argv[1], model.saver) as c:
    print("begins", flush=True)
    c.save(2)
"""


def start_a_save(root):
    """Starts a process that saves step 2 of a model of several parts."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen([sys.executable, "-B", "-c", KILLED, root], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True)


CASES = [a_checkpoint_is_saved_and_restored, a_checkpointer_keeps_the_newest, records_are_written_and_read,
         a_writer_that_raises_leaves_nothing, files_have_any_bytes_and_names, missing_things_are_not_found, a_model_is_saved_and_loaded,
         summaries_are_seen_at_a_flush]
