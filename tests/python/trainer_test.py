import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import thalweg as tw

rng = np.random.default_rng(3)
X = rng.normal(size=(90, 4)).astype(np.float32)
Y = (X @ rng.normal(size=(4, 3))).argmax(1).astype(np.int32)


def classifier(**options):
    net = tw.nn.Sequential(tw.nn.Dense(8, "relu", seed=1), tw.nn.Dense(3, seed=2))
    options = {"optimizer": tw.train.Adam(0.05), "metrics": ["accuracy"], "threads": 1, **options}
    return tw.train.Trainer(net, "sparse_softmax_cross_entropy", **options)


def test_a_classifier_in_seven_lines():
    net = tw.nn.Sequential(tw.nn.Dense(16, "relu", seed=1), tw.nn.Dense(3, seed=2))
    trainer = tw.train.Trainer(net, "sparse_softmax_cross_entropy", tw.train.Adam(0.05), metrics=["accuracy"])
    history = trainer.fit((X, Y), epochs=20, validation=0.2)
    assert history["loss"][-1] < history["loss"][0] / 3 and len(history.validation["accuracy"]) == 20
    assert history.epochs == 20 and history.steps == 60 and history.why == "complete" and history.resumed_at is None
    assert trainer.evaluate((X, Y))["accuracy"] > 0.9
    assert (trainer.predict(X).argmax(1) == Y).mean() == pytest.approx(trainer.evaluate((X, Y))["accuracy"], abs=1e-12)
    assert "20 epochs, 60 steps, complete, loss" in repr(history)


def test_fit_does_what_a_loop_does():
    trainer = classifier()
    losses = []

    class Note:
        def after_step(self, at):
            losses.append(at.values["loss"])

    trainer.fit((X, Y), 2, [Note()], batch=20)
    with tw.Graph() as g:
        net = tw.nn.Sequential(tw.nn.Dense(8, "relu", seed=1), tw.nn.Dense(3, seed=2))
        x, y = tw.placeholder("float32", [None, 4]), tw.placeholder("int32", [None])
        loss = tw.ops.sparse_softmax_cross_entropy_with_logits(net(x), y).loss.mean()
        step = tw.train.Adam(0.05).minimize(loss)
        start = g.initializer()
    data, wanted = tw.Iterator.of_arrays(X, Y, batch=20, shuffle=True), []
    with tw.Session(g, threads=1) as s:
        s.run(start)
        for epoch in range(2):
            data.reset(epoch)
            wanted += [float(s.run([loss, step], {x: bx, y: by})[0]) for bx, by in data]
    assert losses == wanted and len(losses) == 10


def test_batch_norm_and_dropout_know_training_from_evaluation():
    net = tw.nn.Sequential(tw.nn.Dense(16, "relu", seed=1), tw.nn.BatchNorm(momentum=0.5), tw.nn.Dropout(0.5, seed=3), tw.nn.Dense(3, seed=2))
    trainer = tw.train.Trainer(net, "sparse_softmax_cross_entropy", tw.train.Adam(0.02), metrics=["accuracy"])
    trainer.fit((X, Y), 15)
    assert trainer.evaluate((X, Y)) == trainer.evaluate((X, Y)) and trainer.evaluate((X, Y))["accuracy"] > 0.8
    assert trainer.session.run(net.parts[1].mean).any()  # the averages have moved


class Lent:
    """An iterator of another class, as data sets of other modules have."""

    def __init__(self):
        self.made = tw.Iterator.of_arrays(X, Y, batch=30)
        self._handle = self.made._handle


@pytest.mark.parametrize("kind", ["callable", "function", "Batches", "Iterator", "dataset", "lent", "lent dataset"])
def test_data_of_every_kind(kind):
    class Dataset:
        def iterator(self):
            return tw.Iterator.of_arrays(X, Y, batch=30)

    def function(epoch):
        for at in range(0, 90, 30):
            yield X[at:at + 30].astype(np.float64), Y[at:at + 30]

    data = {"callable": function, "function": lambda epoch: [(X, Y)], "Batches": tw.train.Batches(X, Y, size=30), "dataset": Dataset(),
            "Iterator": tw.Iterator.of_arrays(X, Y, batch=30), "lent": Lent(), "lent dataset": type("D", (), {"iterator": lambda self: Lent()})()}[kind]
    trainer = classifier()
    history = trainer.fit(data, 2)
    assert history.steps == (2 if kind == "function" else 6)
    assert trainer.evaluate(data)["loss"] == pytest.approx(trainer.evaluate((X, Y))["loss"], rel=1e-5)


def test_patience_and_the_best_weights():
    trainer = classifier(optimizer=tw.train.Adam(0.5))
    labels = rng.permutation(Y[:40])
    history = trainer.fit((X[40:], Y[40:]), 100, validation=(X[:40], labels), patience=4, keep_best=True)
    assert history.why == "patience" and history.epochs == history.best_epoch + 5 < 100
    assert history.best == min(history.validation["loss"]) == trainer.evaluate((X[:40], labels))["loss"]
    history = classifier().fit((X, Y), 3, watch="accuracy", keep_best=True)
    assert history.best == max(history["accuracy"])


PROGRAM = """
import os, signal, sys
import numpy as np
import thalweg as tw
rng = np.random.default_rng(3)
X = rng.normal(size=(90, 4)).astype(np.float32)
Y = (X @ rng.normal(size=(4, 3))).argmax(1).astype(np.int32)
folder, kill = sys.argv[1] or None, int(sys.argv[2])

class Note:
    def after_step(self, at):
        print(at.step, at.values["loss"].hex(), flush=True)
        if at.step == kill:
            os.kill(os.getpid(), signal.SIGKILL)

net = tw.nn.Sequential(tw.nn.Dense(8, "relu", seed=1), tw.nn.BatchNorm(), tw.nn.Dropout(0.2, seed=5), tw.nn.Dense(3, seed=2))
trainer = tw.train.Trainer(net, "sparse_softmax_cross_entropy", tw.train.Adam(0.05), metrics=["accuracy"], averages=0.9, threads=1)
history = trainer.fit((X, Y), 4, Note(), batch=20, folder=folder, every_steps=3 * bool(folder))
print("end", history["loss"][-1].hex(), history["accuracy"][-1].hex())
"""


def test_a_killed_training_goes_on_with_the_same_losses(tmp_path):
    def lines(folder, kill):
        done = subprocess.run([sys.executable, "-c", PROGRAM, folder, str(kill)], stdout=subprocess.PIPE, text=True, check=False, timeout=300)
        assert done.returncode == (-signal.SIGKILL if kill else 0)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines())

    whole = lines("", 0)
    parts = lines(str(tmp_path / "run"), 8)
    assert len(whole) == 21 and len(parts) == 8
    rest = lines(str(tmp_path / "run"), 0)
    assert list(rest)[0] == "7"  # the checkpoint is of step 6, in the middle of the second epoch
    assert {**parts, **rest} == whole


def test_sub_batches_are_one_step():
    one, four = classifier(optimizer=tw.train.SGD(0.5)), classifier(optimizer=tw.train.SGD(0.5), sub_batches=3)
    one.fit((X, Y), 5, batch=90, shuffle=False)
    history = four.fit((X, Y), 5, batch=30, shuffle=False)
    assert history.steps == 5
    for a, b in zip(one.module.parameters(), four.module.parameters()):
        np.testing.assert_allclose(one.session.run(a), four.session.run(b), rtol=1e-4, atol=1e-6)


def test_groups_have_an_optimizer_each():
    net = tw.nn.Sequential(tw.nn.Dense(8, "relu", seed=1), tw.nn.Dense(3, seed=2))
    groups = tw.train.Groups((tw.train.SGD(0.0), net.parts[0]), (tw.train.Adam(0.05), net.parts[1]))
    trainer = tw.train.Trainer(net, "sparse_softmax_cross_entropy", groups)
    trainer.build(X, Y)
    before = trainer.session.run(net.parameters())
    trainer.fit((X, Y), 1)
    after = trainer.session.run(net.parameters())
    assert [np.array_equal(a, b) for a, b in zip(before, after)] == [True, True, False, False]
    with pytest.raises(ValueError, match="'sequential/dense_1/kernel' is in no group"):
        net = tw.nn.Sequential(tw.nn.Dense(8, "relu"), tw.nn.Dense(3))
        tw.train.Trainer(net, "sparse_softmax_cross_entropy", tw.train.Groups((tw.train.SGD(0.1), net.parts[0]))).fit((X, Y))


def test_schedules_and_clipping():
    trainer = classifier(optimizer=lambda: tw.train.SGD(tw.schedules.piecewise([1], [0.1, 0.0])), clip=0.01)
    trainer.build(X, Y)
    weights = [trainer.session.run(trainer.module.parts[1].kernel)]
    trainer.fit((X, Y), 3, lambda at: weights.append(trainer.session.run(trainer.module.parts[1].kernel)) and None, batch=90)
    changes = [np.abs(b - a).max() for a, b in zip(weights, weights[1:])]
    assert 0 < changes[0] <= 0.001 and changes[2] == 0  # the rate 0.1 and the norm 0.01; then the rate is 0
    assert trainer.session.run(tw.schedules.global_step(trainer.graph)) == 3


def test_a_loss_scale_is_an_optimizer():
    trainer = classifier(optimizer=tw.train.LossScale(tw.train.Adam(0.05)))
    history = trainer.fit((X, Y), 5)
    assert history["loss"][-1] < history["loss"][0]


def test_callbacks_see_and_stop():
    seen = []

    class Watch:
        def before_step(self, at):
            seen.append(("before", at.epoch, at.step, at.values))

        def epoch_end(self, at):
            seen.append(("end", at.epoch, at.step, sorted(at.values), at.validation, at.n_batches))
            return at.epoch == 1

    history = classifier().fit((X, Y), 9, Watch(), batch=90)
    assert history.why == "stopped" and history.epochs == 2
    assert seen[0] == ("before", 0, 0, {}) and ("end", 1, 2, ["accuracy", "loss"], None, 1) in seen

    def fails(at):
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        classifier().fit((X, Y), 2, fails)
    with pytest.raises(TypeError, match="is no callback"):
        classifier().fit((X, Y), 2, [3])


def test_a_graph_of_the_program_is_trained():
    with tw.Graph() as g:
        x, y = tw.placeholder("float32", [None, 4]), tw.placeholder("int32", [None])
        z = tw.nn.Dense(3, seed=1)(x)
        loss = tw.ops.sparse_softmax_cross_entropy_with_logits(z, y).loss.mean()
        averages = tw.averages.MovingAverages(decay=0.5)
        step = averages.update(after=tw.train.Adam(0.05).minimize(loss))
        error = tw.metrics.mean(z.argmax(-1, dtype="int32") != y)
        start = g.initializer()
    session = tw.Session(g)
    session.run(start)
    trainer = tw.train.Trainer.of_graph(session, [x, y], loss, step, predictions=z, metrics={"error": error}, averages=averages)
    history = tw.train.fit(trainer, (X, Y), 10, larger_is_better=False, watch="error", keep_best=True)
    assert history["error"][-1] < 0.3 and trainer.predict(X).shape == (90, 3)
    with pytest.raises(ValueError, match="larger_is_better"):
        trainer.fit((X, Y), 1, watch="error", patience=1)


def test_progress_is_told_when_asked(capfd):
    classifier().fit((X, Y), 2, validation=0.1)
    assert capfd.readouterr().err == ""  # no terminal
    classifier().fit((X, Y), 2, validation=0.1, progress=True)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2 and lines[1].startswith("epoch 2/2  step 6  loss ") and "  validation accuracy " in lines[1]


def test_control_c_ends_a_training():
    trainer, begun = classifier(), threading.Event()

    class Begin:
        def after_step(self, at):
            if not begun.is_set():
                begun.set()
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trainer.fit((X, Y), 10**9, Begin())
    assert trainer.fit((X, Y), 1).epochs >= 1  # usable


def test_mistakes_are_told():
    with pytest.raises(ValueError, match="no loss 'mse'; there are: sparse_softmax"):
        tw.train.Trainer(tw.nn.Dense(1), "mse")
    with pytest.raises(ValueError, match="no metric 'confusion' of a number"):
        tw.train.Trainer(tw.nn.Dense(1), "mean_squared_error", metrics=["confusion"])
    with pytest.raises(TypeError, match="neither a module"):
        tw.train.Trainer(tw.nn.Dense, "mean_squared_error")
    with pytest.raises(ValueError, match="no optimizer"):
        tw.train.Trainer(tw.nn.Dense(3), "sparse_softmax_cross_entropy").fit((X, Y))
    with pytest.raises(tw.FailedPreconditionError, match=r"the loss is nan at step 0 \(epoch 0, batch 0\)"):
        classifier().fit((np.full_like(X, np.nan), Y))
    with pytest.raises(tw.InvalidArgumentError, match="gives 3 tensors a batch; the model is fed 2"):
        trainer = classifier()
        trainer.build(X, Y)
        trainer.fit(tw.Iterator.of_arrays(X, Y, Y))
    with pytest.raises(TypeError, match="is no data"):
        classifier().fit(3)

