"""Scaled losses: what overflows changes nothing but the scale, what would vanish does not, and the rest is as without."""
import numpy as np
import pytest
import thalweg as tw


class Line:
    """w x with a loss that infinities in x make infinite slopes of."""

    def __init__(self, optimizer, dtype="float32", start=1.0, **more):
        with tw.Graph() as self.graph:
            self.x = tw.placeholder(dtype, [3])
            self.w = tw.Variable(np.full(3, start, dtype), name="w")
            self.loss = (self.w * self.x).sum()
            self.step = optimizer.minimize(self.loss, **more)
            init = self.graph.initializer()
        self.session = tw.Session(self.graph)
        self.session.run(init)

    def run(self, *values):
        for v in values:
            self.session.run(self.step, {self.x: v})
        return self.session.run(self.w)


ONES = np.ones(3, np.float32)
BAD = (np.array([1, np.inf, 1], np.float32), np.array([np.nan, 1, 1], np.float32))


@pytest.mark.parametrize("make", [lambda: tw.train.SGD(0.1), lambda: tw.train.Momentum(0.1), lambda: tw.train.Adam(0.1),
                                  lambda: tw.train.AdamW(0.1), lambda: tw.train.RMSProp(0.1)])
def test_steps_that_overflow_are_as_if_they_had_not_been(make):
    draw = np.random.default_rng(1)
    good = [draw.standard_normal(3).astype(np.float32) for _ in range(6)]
    plain = Line(make()).run(*good)
    scaled = tw.train.LossScale(make(), start=1024)
    line = Line(scaled)
    got = line.run(good[0], BAD[0], good[1], good[2], BAD[1], BAD[0], *good[3:])
    assert got.tolist() == plain.tolist()
    assert line.session.run(scaled.scale) == 1024 / 8


def test_the_scale_grows_and_backs_off_within_its_limits():
    scaled = tw.train.LossScale(tw.train.SGD(0.1), start=8, interval=3, least=2, most=16)
    line = Line(scaled)
    seen = []
    for x in [ONES] * 7 + [BAD[0]] * 5 + [ONES] * 2 + [BAD[1]] + [ONES] * 3:
        line.run(x)
        seen.append((float(line.session.run(scaled.scale)), int(line.session.run(scaled.good_steps))))
    assert seen == [(8, 1), (8, 2), (16, 0), (16, 1), (16, 2), (16, 0), (16, 1),
                    (8, 0), (4, 0), (2, 0), (2, 0), (2, 0), (2, 1), (2, 2), (2, 0), (2, 1), (2, 2), (4, 0)]


def test_slopes_that_half_precision_would_lose_arrive():
    def trained(optimizer):
        with tw.Graph() as graph:
            w = tw.Variable(np.ones(4, np.float32))
            half = w.astype("half")
            loss = (half * np.float16(1e-4) * np.float16(1e-4)).sum()   # 1e-8: less than half of the least half
            step = optimizer.minimize(loss)
            init = graph.initializer()
        with tw.Session(graph) as session:
            session.run(init)
            session.run(step)
            return session.run(w)

    assert (trained(tw.train.SGD(1e6)) == 1).all()
    moved = 1 - trained(tw.train.LossScale(tw.train.SGD(1e6)))
    assert np.allclose(moved, 1e-2, rtol=1e-2)


def test_rows_clipping_and_schedules_are_left_out_too():
    with tw.Graph() as graph:
        table = tw.Variable(np.zeros((4, 2), np.float32))
        rows, x = tw.placeholder("int32", [3]), tw.placeholder("float32", [3, 2])
        loss = (tw.ops.gather_v2(table, rows, np.int32(0)) * x).sum()
        rate = tw.schedules.exponential(1.0, 1, 0.5)
        scaled = tw.train.LossScale(tw.train.SGD(rate), start=4)
        step = scaled.minimize(loss, clip=1.0)
        init = graph.initializer()
    ones = np.ones((3, 2), np.float32)
    with tw.Session(graph) as session:
        session.run(init)
        session.run(step, {rows: [1, 1, 2], x: BAD[0].reshape(3, 1) * ones})
        assert (session.run(table) == 0).all() and session.run(scaled.scale) == 2
        session.run(step, {rows: [1, 1, 2], x: ones})
        found = session.run(table)
    assert found[3].tolist() == [0, 0] and found[0].tolist() == [0, 0]
    assert np.isclose(np.linalg.norm(found), 1, atol=1e-6)     # at the first rate, and clipped after the scale was taken away
    assert np.allclose(found[1], 2 * found[2])


def test_a_rate_that_is_fed_reaches_the_branch():
    with tw.Graph() as graph:
        rate, w = tw.placeholder("float32", []), tw.Variable(np.float32(1))
        step = tw.train.LossScale(tw.train.SGD(rate)).minimize(w * 3)
        init = graph.initializer()
    with tw.Session(graph) as session:
        session.run(init)
        session.run(step, {rate: 0.25})
        assert session.run(w) == 0.25


def test_two_in_one_graph_have_scales_of_their_own():
    with tw.Graph() as graph:
        v, w, x = tw.Variable(np.float32(1)), tw.Variable(np.float32(1)), tw.placeholder("float32", [])
        one, other = tw.train.LossScale(tw.train.SGD(0.5), start=8), tw.train.LossScale(tw.train.SGD(0.5), start=32)
        steps, init = [one.minimize(v * x, [v]), other.minimize(w * 3, [w])], graph.initializer()
    with tw.Session(graph) as session:
        session.run(init)
        session.run(steps, {x: np.inf})
        assert session.run([one.scale, other.scale, v, w]) == [4, 32, 1, -0.5]
    assert (one.scale.name, other.scale.name) == ("loss_scale/scale", "loss_scale_1/scale")


def test_what_cannot_be_is_refused():
    for wrong in ({"start": 0}, {"growth": 0.5}, {"backoff": 1}, {"interval": 0}, {"least": 10, "start": 5}, {"most": 10}):
        with pytest.raises(ValueError, match="must hold"):
            tw.train.LossScale(tw.train.SGD(1), **wrong)
    with tw.Graph():
        w = tw.Variable(np.float32(1))
        with pytest.raises(ValueError, match="no gradients"):
            tw.train.LossScale(tw.train.SGD(1)).apply([None], [w])
