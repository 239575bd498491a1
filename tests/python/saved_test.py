"""tw.save: the file, read back field by field as a SavedModel, gives what the trainer predicts."""
import numpy as np
import pytest

import thalweg as tw

rng = np.random.default_rng(4)
X, Y = rng.normal(size=(40, 5)).astype(np.float32), rng.integers(0, 3, 40)


def fields(message):
    """(number, bytes or int) of each field of a message."""
    def number(at):
        value, shift = 0, 0
        while True:
            byte = message[at]
            value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
            if byte < 128:
                return value, at

    at = 0
    while at < len(message):
        key, at = number(at)
        if key & 7 == 0:
            value, at = number(at)
        else:
            size, at = number(at)
            value, at = message[at:at + size], at + size
        yield key >> 3, value


def loaded(path):
    """The graph of the file, and its signatures: {name: [inputs, outputs]}, each {name: name of a value}."""
    meta = next(value for number, value in fields(path.read_bytes()) if number == 2)
    graph = tw.Graph.from_bytes(next(value for number, value in fields(meta) if number == 2))
    signatures = {}
    for number, entry in fields(meta):
        if number == 5:
            name, signature = (dict(fields(entry))[k] for k in (1, 2))
            sides = [{}, {}, None]
            for side, value in fields(signature):
                if side in (1, 2):
                    key, info = (dict(fields(value))[k] for k in (1, 2))
                    sides[side - 1][key.decode()] = dict(fields(info))[1].decode()
            signatures[name.decode()] = sides[:2]
    return graph, signatures


def test_a_trainers_file_gives_its_predictions(tmp_path):
    net = tw.nn.Sequential(tw.nn.Dense(8, "relu", seed=1), tw.nn.BatchNorm(), tw.nn.Dropout(0.3, seed=2), tw.nn.Dense(3, seed=3))
    trainer = tw.train.Trainer(net, "sparse_softmax_cross_entropy", tw.train.Adam(0.05), metrics=["accuracy"], averages=0.5)
    trainer.fit((X, Y), 3)
    tw.save(trainer, tmp_path / "net.model")
    graph, signatures = loaded(tmp_path / "net.model")
    assert signatures["serving_default"][0] == {"input": "input:0"} and list(signatures["serving_default"][1]) == ["output"]
    assert not any(o.name.endswith(("/Adam", "/ExponentialMovingAverage")) or o.name.startswith(("accuracy", "trainer", "target"))
                   for o in graph.operations())
    with tw.Session(graph) as s:
        s.run(signatures["__saved_model_init_op"][1]["__saved_model_init_op"].split(":")[0])
        got = s.run(signatures["serving_default"][1]["output"], {"input:0": X})
    np.testing.assert_array_equal(got, trainer.predict(X))  # both are of the averages
    if hasattr(tw, "load"):
        np.testing.assert_array_equal(tw.load(tmp_path / "net.model")(input=X)["output"], trainer.predict(X))


def test_a_session_saves_the_signatures_that_it_is_given(tmp_path):
    with tw.Graph() as g:
        x, y = tw.placeholder("float32", [None], name="x"), tw.placeholder("float32", [None], name="y")
        w = tw.Variable([2.0, 3.0], name="w")
        product, start = x * w, g.initializer()
    with tw.Session(g) as s:
        with pytest.raises(tw.FailedPreconditionError, match="'w'"):
            tw.save(s, tmp_path / "m", {"multiply": ({"a": x}, {"b": product})})
        s.run(start)
        tw.save(s, tmp_path / "m", {"multiply": ({"a": x}, {"b": product}), "add": ({"x": x, "y": y}, {"sum": x + y})})
        with pytest.raises(tw.InvalidArgumentError, match="signature 'add': output 'sum' needs the placeholder 'y', which is no input"):
            tw.save(s, tmp_path / "m", {"add": ({"x": x}, {"sum": x + y})})
        with pytest.raises(ValueError, match="has no signatures of its own"):
            tw.save(s, tmp_path / "m")
        with pytest.raises(tw.NotFoundError, match="no/such"):
            tw.save(s, tmp_path / "no/such/m", {"multiply": ({"a": x}, {"b": product})})
    graph, signatures = loaded(tmp_path / "m")
    assert sorted(signatures) == ["__saved_model_init_op", "add", "multiply"]
    with tw.Session(graph) as again:
        again.run("saved/init")
        values = signatures["multiply"]
        assert again.run(values[1]["b"], {values[0]["a"]: [10, 100]}).tolist() == [20, 300]
    with pytest.raises(TypeError, match="neither a session nor a trainer"):
        tw.save(g, tmp_path / "m")
