"""The networks of sequences, the generative ones and the games in bindings/python/examples/models: their sizes, their parts, and what
they learn from small data."""
import inspect
import math
import os
import pathlib
import re

import numpy as np
import pytest

import thalweg as tw
from models_cases import FOLDER, models

import bert
import counts
import dqn
import gan
import gpt
import lstm
import seq2seq
import texts
import training
import vae

NIGHTLY = pytest.mark.skipif(not os.environ.get("THALWEG_TEST_NIGHTLY"), reason="takes minutes; the nightly entry runs it")
DATA = pathlib.Path(os.environ.get("THALWEG_DATA_PATH") or pathlib.Path.home() / ".cache/thalweg/data")
with_digits = pytest.mark.skipif(not (DATA / "digits.csv").is_file(), reason=f"{DATA}/digits.csv is not there; run tools/setup")
with_text = pytest.mark.skipif(not (DATA / "kjv.txt").is_file(), reason=f"{DATA}/kjv.txt is not there; run tools/setup")
rng = np.random.default_rng(2)


@pytest.fixture(autouse=True)
def seeded():
    tw.random.seed(1)
    yield
    tw.random.seed(None)


@pytest.fixture(scope="module")
def text():
    """400,000 characters of the Bible."""
    return texts.characters(DATA / "kjv.txt", 400_000)


def started(graph):
    session = tw.Session(graph)
    session.run(graph.initializer())
    return session


@pytest.mark.parametrize("parts", [[lstm.LSTM], [bert.Block, bert.BERT, bert.Pretraining], [gpt.Block, gpt.GPT], [seq2seq.Seq2Seq],
                                   [vae.VAE], [gan.GAN], [dqn.network, dqn.physics, dqn.DQN]])
def test_a_network_takes_at_most_60_lines(parts):
    assert sum(bool(line.strip()) for part in parts for line in inspect.getsource(part).splitlines()) <= 60


# ---- Sizes ----

def test_lstm_512_512_has_the_published_size():
    with tw.Graph():
        net, (words, following) = lstm.network(), lstm.example(2)[0]
        net(tw.constant(words), tw.constant(following))
    sizes = {v.name.split("/", 1)[1]: math.prod(v.shape) for v in net.parameters()}
    assert sizes == {"embedding/table": 40_000 * 512, "lstm/cell/kernel": 1024 * 2048, "lstm/cell/bias": 2048,
                     "lstm/cell/projection": 512 * 512, "weights": 40_000 * 512, "biases": 40_000}
    assert counts.parameters(net) == 43_361_344  # 43.4 M; the LSTM and its projection are the published 2.4 M
    assert counts.parameters(net.lstm) == 2_361_344


def test_bert_base_has_the_published_size():
    with tw.Graph():
        net = bert.network()
        words, follows = net(*(tw.constant(x) for x in bert.example(1, length=8)[0]))
    assert words.shape == (1, 8, 30522) and follows.shape == (1, 2)
    assert counts.parameters(net.bert) == 109_482_240  # with the pooler, without heads
    # The head of masked words: a dense layer, its norm and a bias for each word; the head of the next sentence.
    assert counts.parameters(net) == 109_482_240 + 768 * 768 + 768 + 2 * 768 + 30522 + 2 * 768 + 2 == 110_106_428
    assert counts.parameters(net.bert.blocks[0]) == 7_087_872


def test_gpt_2_small_has_the_published_size():
    with tw.Graph():
        net = gpt.network()
        logits = net(tw.constant(gpt.example(1, length=8)[0][0]))
    assert logits.shape == (1, 8, 50257)
    assert counts.parameters(net) == 124_439_808  # the head is the table of the tokens
    assert counts.parameters(net.blocks[0]) == 7_087_872


@pytest.mark.parametrize("name", ["lstm", "bert", "gpt", "seq2seq", "vae"])
def test_batches_fit_their_networks(name):
    """One step of a small one, on a batch from `example`."""
    module, small = models.load(name), {"lstm": dict(vocabulary=50, width=8, cells=8, projection=4, drawn=5),
                                        "bert": dict(vocabulary=50, length=16, width=8, layers=1, heads=2),
                                        "gpt": dict(vocabulary=50, length=16, width=8, layers=1, heads=2),
                                        "seq2seq": dict(vocabulary=20, width=8, cells=8), "vae": dict(pixels=20, hidden=8, latent=2)}[name]
    taken = inspect.signature(module.example).parameters
    inputs, targets = module.example(3, **{k: v for k, v in small.items() if k in taken})
    with tw.Graph() as graph:
        places = [[tw.placeholder(x.dtype.name, x.shape) for x in part] for part in (inputs, targets)]
        net = module.network(**small)
        loss = module.loss(net(*places[0]), *places[1])
        loss = loss if loss.shape == () else loss.mean()
        step = module.optimizer().minimize(loss)
    session = started(graph)
    feeds = {p: x for part, given in zip(places, (inputs, targets)) for p, x in zip(part, given)}
    before = session.run(loss, feeds)
    for _ in range(3):
        session.run(step, feeds)
    assert np.isfinite(before) and np.isfinite(session.run(loss, feeds))


# ---- Parts ----

@pytest.mark.parametrize("batch", [1, 3])
def test_a_cache_writes_what_the_whole_text_writes(batch):
    """Greedy tokens are equal; logits differ by rounding alone."""
    prompt = rng.integers(30, size=(batch, 5), dtype=np.int32)
    with tw.Graph() as graph:
        net = gpt.GPT(30, 32, width=16, layers=2, heads=2)
        fed = tw.placeholder("int32", [batch, None])
        logits = net(fed)
        written = net.generate(graph.constant(prompt), 12, temperature=0)
        step = tw.placeholder("int32", [batch, 1])
        caches = [tuple(tw.placeholder("float32", [batch, 2, 17, 8]) for _ in range(2)) for _ in range(2)]
        at = tw.placeholder("int32", [])
        by_cache, after = net(step, caches, at)
    session = started(graph)
    for v in net.parameters():  # small initial weights leave the tokens nearly alike
        session.run(v.assign(rng.normal(0, 0.4, v.shape).astype(np.float32)))
    tokens, held = prompt, [np.zeros((batch, 2, 17, 8), np.float32)] * 4
    for n in range(17):
        whole = session.run(logits, {fed: tokens[:, :n + 1] if n < 5 else tokens})
        flat = [c for pair in caches for c in pair]
        feeds = {step: tokens[:, n:n + 1], at: n, **dict(zip(flat, held))}
        one, *held = session.run([by_cache, *(c for pair in after for c in pair)], feeds)
        np.testing.assert_allclose(one[:, 0], whole[:, n], rtol=1e-5, atol=1e-5)
        if n >= 4:
            tokens = np.concatenate([tokens, whole[:, -1:].argmax(-1).astype(np.int32)], 1)
    assert np.array_equal(session.run(written), tokens[:, 5:17])


def test_bert_does_not_see_padding():
    with tw.Graph() as graph:
        net = bert.BERT(30, 16, width=16, layers=2, heads=2)
        tokens, mask = tw.placeholder("int32", [2, None]), tw.placeholder("int32", [2, None])
        hidden, pooled = net(tokens, mask=mask)
    session = started(graph)
    x = rng.integers(30, size=(2, 9), dtype=np.int32)
    short, one = session.run([hidden, pooled], {tokens: x[:, :6], mask: np.ones((2, 6), np.int32)})
    for filler in (0, 7):
        filled = np.where(np.arange(9) < 6, x, filler).astype(np.int32)
        found, other = session.run([hidden, pooled], {tokens: filled, mask: np.int32([[1] * 6 + [0] * 3] * 2)})
        np.testing.assert_allclose(found[:, :6], short, atol=1e-5)
        np.testing.assert_allclose(other, one, atol=1e-5)


def test_the_spelling_of_a_word_does_not_depend_on_padding():
    source, target = seq2seq.backwards(["sheep", "shepherds", "ox"])
    assert source[2, :3].tolist() == [17, 26, 0] and target[2, :4].tolist() == [26, 17, seq2seq.END, 0]
    with tw.Graph() as graph:
        net, fed, into = seq2seq.Seq2Seq(cells=12), tw.placeholder("int32", [None, None]), tw.placeholder("int32", [None, None])
        logits = net(fed, into)
        found, scores = net.search(fed, 13, beams=3)
    session = started(graph)
    all_, short = session.run(logits, {fed: source, into: target}), session.run(logits, {fed: source[2:, :2], into: target[2:, :3]})
    np.testing.assert_allclose(all_[2:, :3], short, atol=1e-5)
    tokens, score = session.run([found, scores], {fed: source})
    assert tokens.shape == (3, 3, 13) and (np.diff(score) <= 0).all()
    assert seq2seq.right(np.int32([[5, 2, 2, 2], [5, 6, 2, 2]]), np.int32([[5, 2, 0, 0], [5, 7, 2, 0]])) == 0.5


def cart_pole(state, right):
    """One move of one game, after the equations of the paper, in float64."""
    g, cart, pole, half, time = 9.8, 1.0, 0.1, 0.5, 0.02
    x, speed, angle, turn = map(float, state)
    force, sin, cos = (10.0 if right else -10.0), math.sin(angle), math.cos(angle)
    inner = (-force - pole * half * turn ** 2 * sin) / (cart + pole)
    turning = (g * sin + cos * inner) / (half * (4 / 3 - pole * cos ** 2 / (cart + pole)))
    pushing = (force + pole * half * (turn ** 2 * sin - turning * cos)) / (cart + pole)
    after = [x + time * speed, speed + time * pushing, angle + time * turn, turn + time * turning]
    return after, abs(after[0]) > 2.4 or abs(after[2]) > 12 * math.pi / 180


def test_the_physics_are_those_of_the_paper_in_numpy_and_in_the_graph(graph):
    state = rng.uniform(-1, 1, (200, 4)).astype(np.float32) * np.float32([3, 2, 0.3, 2])
    right = rng.integers(2, size=200, dtype=np.int32)
    wanted = [cart_pole(s, r) for s, r in zip(state, right)]
    after, lost = tw.Session(graph).run(list(dqn.physics(dqn.InGraph, graph.constant(state), graph.constant(right.astype(np.float32)))))
    for found, end in (dqn.physics(np, state, right), (after, lost)):
        np.testing.assert_allclose(found, [s for s, _ in wanted], rtol=1e-4, atol=1e-5)
        assert end.tolist() == [e for _, e in wanted]
    assert 20 < lost.sum() < 180


# ---- What they learn ----

@with_text
def test_gpt_learns_a_text(text):
    letters, numbers = text
    net = gpt.GPT(len(letters), 64, width=32, layers=2, heads=4, dropout=0.0)
    trainer = tw.train.Trainer(net, gpt.loss, lambda: gpt.optimizer(5e-3, 300), {"perplexity": gpt.perplexity}, clip=1.0, threads=1)
    trainer.fit(texts.pieces(numbers[:120_000], 32).shuffle(seed=1).batch(32), 1)
    reached = trainer.evaluate(texts.pieces(numbers[-5000:], 32).batch(32))["perplexity"]
    assert reached < 11.5 < len(letters) / 4
    with trainer.graph:
        written = net.generate(tw.constant(letters.encode("And the ")[None]), 40, temperature=0.5, k=5)
    assert re.search("[a-z]{3}", letters.decode(trainer.session.run(written)[0]))


@with_text
def test_bert_fills_gaps(text):
    letters, numbers = text
    rows = numbers[:200_000].reshape(-1, 8)
    net = bert.Pretraining(len(letters) + 1, 8, 32, layers=2, heads=4, dropout=0.0)
    trainer = tw.train.Trainer(net, bert.loss, lambda: bert.optimizer(3e-3, 400), {"accuracy": bert.accuracy}, n_inputs=1, clip=1.0, threads=1)
    data = tw.Iterator.of_batches(lambda epoch: tw.train.Batches(*bert.gaps(rows, len(letters), epoch), size=64, seed=epoch), 4)
    trainer.fit(data, 1)
    held = numbers[-16_000:].reshape(-1, 8)
    most = (held == np.bincount(numbers).argmax()).mean()  # always the most frequent character
    assert trainer.evaluate(bert.gaps(held, len(letters), 100))["accuracy"] > most + 0.05


@with_text
def test_lstm_learns_words(text):
    words = texts.words_of((DATA / "kjv.txt").read_text()[:600_000])
    known = texts.Words([words], 1000)
    numbers = known.encode(words)
    model = lstm.Training(lstm.LSTM(1000, 32, 48, 32, 50), 32, 48)
    x, y = texts.streams(numbers[:-2001], 32)
    session = tw.Session(model.graph, threads=1)
    session.run(model.start)
    held = tuple(side.T for side in texts.streams(numbers[-2001:], 10))
    before = model.perplexity(session, *held)
    for at in range(0, min(len(x) - 10, 3500), 10):
        session.run(model.step, {model.x: x[at:at + 10].T, model.y: y[at:at + 10].T, model.flag: True})
    with model.averages.swapped(session):
        reached = model.perplexity(session, *held)
    shares = np.bincount(numbers[:-2001], minlength=1000) + 1.0
    alone = math.exp(-np.log(shares / shares.sum())[numbers[-2000:]].mean())  # of the frequencies alone
    assert 900 < before < 1100 and reached < alone


@with_digits
def test_a_variational_autoencoder_learns_digits():
    (learnt,), (held,) = training.split(training.digits(DATA / "digits.csv")[0].reshape(-1, 64))
    trainer = tw.train.Trainer(vae.VAE(), vae.loss, vae.optimizer(), threads=1)
    trainer.fit((learnt, learnt), 15, batch=64)
    mean = learnt.mean(0).clip(0.01, 0.99)
    without = -(held * np.log(mean) + (1 - held) * np.log(1 - mean)).sum(1).mean()  # pixels by themselves
    assert trainer.evaluate((held, held))["loss"] < without - 2


@with_digits
def test_generated_digits_look_like_digits():
    x, labels = training.digits(DATA / "digits.csv")
    x, net = x.reshape(-1, 64), gan.GAN(hidden=128)
    session = gan.train(net, x, 20, threads=1)
    with session.graph:
        new = net.drawn(200)
    distance, classes = gan.nearest(session.run(new), x, labels)
    noise, _ = gan.nearest(rng.random((200, 64), np.float32), x, labels)
    assert distance < 1.8 < 3 < noise and classes >= 8


@with_text
def test_seq2seq_spells_words_backwards(text):
    letters, numbers = text
    words = sorted({word for word in texts.words_of(letters.decode(numbers)) if word.isalpha() and 3 <= len(word) <= 6})
    (source, target), (new, wanted) = training.split(*seq2seq.backwards(words, 6))
    net = seq2seq.Seq2Seq(width=32, cells=64)
    trainer = tw.train.Trainer(net, seq2seq.loss, tw.train.Adam(6e-3), n_inputs=2, clip=5.0, threads=1)
    trainer.fit((source, target, target), 9, batch=64)
    with trainer.graph:
        found, _ = net.search(tw.constant(new), wanted.shape[1])
    assert seq2seq.right(trainer.session.run(found)[:, 0], wanted) > 0.8


@pytest.mark.parametrize("player", [dqn.Client, dqn.Graph])
def test_q_learning_keeps_the_pole_up(player):
    player = player(seed=1, threads=1)
    reached = [dqn.play(player)]
    while reached[-1] < 195 and len(reached) < 12:  # CartPole counts as solved at a mean of 195
        for _ in range(500):
            player.step()
        reached.append(dqn.play(player))
    assert reached[0] < 60 and reached[-1] >= 195, reached


# ---- The programs ----

@NIGHTLY
def test_games_in_the_graph_make_more_steps_than_games_in_the_client():
    assert dqn.main(["--compare", "--threads", "1"]) > 1.2


@NIGHTLY
@pytest.mark.parametrize("name,arguments,limit", [
    ("gpt", [], 8.0), ("bert", [], None), ("lstm", ["--small", "--epochs", "1"], 400.0), ("seq2seq", [], None), ("vae", [], 25.5), ("dqn", [], None),
    ("dqn", ["--client"], None)])
def test_a_program_reaches_what_it_says(name, arguments, limit, capsys):
    reached = models.load(name).main(arguments)
    assert re.search("held-out|mean return", capsys.readouterr().out.splitlines()[-1])
    assert reached < limit if limit else reached > {"bert": 0.4, "seq2seq": 0.95, "dqn": 120}[name]
