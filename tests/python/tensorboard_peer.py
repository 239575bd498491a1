"""TensorBoard's own readers load a run that SummaryWriter wrote, and give the values that were written: its event accumulator, and the data
provider behind its pages. Runs under tools/cmake/peer-python, whose TensorFlow brings TensorBoard along."""
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import wave

import numpy as np

WRITE = r"""
import sys, numpy as np, thalweg as tw
run, rng = sys.argv[1], np.random.default_rng(0)
with tw.SummaryWriter(run + "/a") as w:
    w.hparams({"rate": 0.5, "fast": True, "optimizer": "adam"}, metrics=["loss"])
    for step in range(5):
        w.scalar("loss", 2 * 0.75 ** step, step)
    w.histogram("weights", np.arange(10, dtype=np.float32), 3)
    w.images("pictures", np.arange(2 * 4 * 3 * 3, dtype=np.uint8).reshape(2, 4, 3, 3), 1)
    w.audio("tone", np.float32([0, 0.5, -0.5, 1]), 2, rate=8000)
    w.text("note", "**bold** größer", 4)
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None, 3], name="x")
        y = tw.ops.mat_mul(x, np.ones((3, 2), np.float32), name="product")
    with tw.Session(g) as s:
        s.run(y, {x: np.ones((4, 3))}, stats=(stats := tw.StepStats()))
    w.graph(g)
    w.step_stats("step 1", stats, 1)
x = rng.normal(size=(60, 4)).astype(np.float32)
trainer = tw.train.Trainer(tw.nn.Dense(2), "sparse_softmax_cross_entropy", tw.train.SGD(0.1), metrics=["accuracy"])
history = trainer.fit((x, (x[:, 0] > 0).astype(np.int32)), epochs=2, batch=30, validation=0.5, logdir=run + "/fit")
print(*history["loss"], *history.validation["accuracy"])
"""


def write(folder):
    """Writes the run with the library, in the distribution's Python."""
    environment = {**os.environ, "PYTHONPATH": os.environ["THALWEG_BINARY_DIR"] + "/python"}
    done = subprocess.run(["/usr/bin/python3", "-B", "-c", WRITE, folder], check=True, capture_output=True, text=True, env=environment)
    return [float(np.float32(x)) for x in done.stdout.split()]


def accumulated(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    run = EventAccumulator(folder, size_guidance={})
    run.Reload()
    assert [(s.step, s.value) for s in run.Scalars("loss")] == [(i, float(np.float32(2 * 0.75 ** i))) for i in range(5)]
    h, = run.Histograms("weights")
    v = h.histogram_value
    assert (h.step, v.min, v.max, v.num, v.sum, v.sum_squares, sum(v.bucket)) == (3, 0, 9, 10, 45, 285, 10)
    from PIL import Image
    want = np.arange(2 * 4 * 3 * 3, dtype=np.uint8).reshape(2, 4, 3, 3)
    for i in range(2):
        image, = run.Images(f"pictures/image/{i}")
        assert (image.step, image.height, image.width) == (1, 4, 3)
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(image.encoded_image_string))), want[i])
    sound, = run.Audio("tone/audio")
    assert (sound.step, sound.sample_rate, sound.length_frames, sound.content_type) == (2, 8000, 4, "audio/wav")
    with wave.open(io.BytesIO(sound.encoded_audio_string)) as w:
        assert np.frombuffer(w.readframes(4), "<i2").tolist() == [0, 16384, -16384, 32767]
    note, = run.Tensors("note")
    assert note.tensor_proto.string_val[0].decode() == "**bold** größer"
    assert {"x", "product"} <= {node.name for node in run.Graph().node}
    devices = run.RunMetadata("step 1").step_stats.dev_stats
    assert any(node.node_name == "product" for device in devices for node in device.node_stats)


def provided(folder, told):
    """What the pages ask for."""
    from tensorboard import context
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard.data import provider
    from tensorboard.plugins.hparams import plugin_data_pb2
    multiplexer = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(folder)
    multiplexer.Reload()
    data, ctx = data_provider.MultiplexerDataProvider(multiplexer, folder), context.RequestContext()
    assert {r.run_name for r in data.list_runs(ctx, experiment_id="")} == {"a", "fit/train", "fit/validation"}
    read = lambda kind, plugin: getattr(data, f"read_{kind}")(
        ctx, experiment_id="", plugin_name=plugin, downsample=100, run_tag_filter=provider.RunTagFilter())
    scalars = {run: {tag: [(p.step, p.value) for p in points] for tag, points in tags.items()}
               for run, tags in read("scalars", "scalars").items()}
    assert scalars["a"]["loss"] == [(i, float(np.float32(2 * 0.75 ** i))) for i in range(5)]
    assert scalars["fit/train"]["epoch/loss"] == [(1, told[0]), (2, told[1])]
    assert [s for s, _ in scalars["fit/train"]["step/loss"]] == [1, 2]
    assert scalars["fit/validation"]["epoch/accuracy"] == [(1, told[2]), (2, told[3])]
    assert read("tensors", "histograms")["a"]["weights"][0].numpy[:, 2].sum() == 10
    assert read("tensors", "text")["a"]["note"][0].numpy.item().decode() == "**bold** größer"
    assert {"pictures/image/0", "pictures/image/1"} == set(read("blob_sequences", "images")["a"])
    assert "tone/audio" in read("blob_sequences", "audio")["a"]
    assert any("graph" in tag for tag in data.list_blob_sequences(ctx, experiment_id="", plugin_name="graphs")["a"])
    found = data.list_tensors(ctx, experiment_id="", plugin_name="hparams")["a"]
    message = plugin_data_pb2.HParamsPluginData.FromString(found["_hparams_/session_start_info"].plugin_content)
    values = {k: getattr(v, v.WhichOneof("kind")) for k, v in message.session_start_info.hparams.items()}
    assert values == {"rate": 0.5, "fast": True, "optimizer": "adam"}
    end = plugin_data_pb2.HParamsPluginData.FromString(found["_hparams_/session_end_info"].plugin_content)
    assert end.session_end_info.status == 1
    experiment = plugin_data_pb2.HParamsPluginData.FromString(found["_hparams_/experiment"].plugin_content).experiment
    assert [i.name for i in experiment.hparam_infos] == ["rate", "fast", "optimizer"] and experiment.metric_infos[0].name.tag == "loss"


if __name__ == "__main__":
    if importlib.util.find_spec("tensorboard") is None:
        print("skipped: this Python has no TensorBoard")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as root:
        values = write(root)
        accumulated(root + "/a")
        provided(root, values)
    print("TensorBoard reads what was written")
