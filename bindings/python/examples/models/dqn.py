"""Deep Q-learning (Mnih et al., 2015) with double estimates (van Hasselt et al., 2015) on CartPole (Barto, Sutton and Anderson,
1983), whose physics are below. Everything is in the graph: games, memory and learning; or the client plays and remembers.

    python3 dqn.py              # one run of the session is a move of all games and a training step
    python3 dqn.py --client     # the same with games and memory in NumPy; the graph has the nets
    python3 dqn.py --compare    # how many steps a second each makes"""
import time

import numpy as np

import thalweg as tw
import training

GAMES, MEMORY, BATCH, LIMIT = 16, 20_000, 128, 500  # games at once, moves that are remembered, of a step; moves of a game
DISCOUNT, FOLLOW, RANDOM_STEPS = 0.99, 0.005, 1500  # FOLLOW: how fast the target net follows; steps until few moves are random


def physics(xp, state, right):
    """The state [games, 4] (position, speed, angle, its speed) 0.02 s later, and whether the game is lost. right: 1 pushes to the
    right, 0 to the left. xp: NumPy, or InGraph."""
    x, speed, angle, turn = (state[:, i] for i in range(4))
    sin, cos, force = xp.sin(angle), xp.cos(angle), 20 * right - 10
    push = (force + 0.05 * turn * turn * sin) / 1.1
    turning = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
    pushing = push - 0.05 * turning * cos / 1.1
    after = xp.stack([x + 0.02 * speed, speed + 0.02 * pushing, angle + 0.02 * turn, turn + 0.02 * turning], 1)
    return after, xp.maximum(xp.abs(after[:, 0]) / 2.4, xp.abs(after[:, 2]) / 0.2094395) > 1


class InGraph:
    """The functions of NumPy that physics needs, on values of a graph."""
    sin, cos, abs, maximum = tw.ops.sin, tw.ops.cos, tw.ops.abs, tw.ops.maximum

    @staticmethod
    def stack(values, axis):
        return tw.ops.pack(values, axis=axis)


def network(cells=64):
    """The value of each action in a state."""
    return tw.nn.Sequential(tw.nn.Dense(cells, "relu"), tw.nn.Dense(cells, "relu"), tw.nn.Dense(2))


class DQN:
    """The nets, and a training step on moves (state, action, lost, next state)."""

    def __init__(self, net, rate=1e-3):
        self.net, self.target, self.rate = net, network(), rate

    def build(self, state, action, lost, after):
        chosen = (self.net(state) * tw.ops.one_hot(action, 2)).sum(1)
        best = tw.ops.one_hot(self.net(after).argmax(1), 2)
        value = 1 + DISCOUNT * (1 - lost.astype("float32")) * (self.target(after) * best).sum(1)
        off = tw.ops.abs(tw.ops.stop_gradient(value) - chosen)
        self.loss = tw.ops.select_v2(off < 1, off * off / 2, off - 0.5).mean()  # Huber's
        pairs = list(zip(self.target.parameters(), self.net.parameters()))
        self.same = [t.assign(n) for t, n in pairs]
        step = tw.train.Adam(self.rate).minimize(self.loss, [n for _, n in pairs])
        self.step = tw.group(step, *(t.assign_add(FOLLOW * (n - t)) for t, n in pairs))


def explore(step):
    """The share of random moves after so many steps; a number or a value."""
    return 0.02 + 0.98 * (1 - step / RANDOM_STEPS) * (step < RANDOM_STEPS)


class Client:
    """The client plays and remembers."""

    def __init__(self, seed=1, threads=0):
        tw.random.seed(seed)
        self.random, self.steps = np.random.default_rng(seed), 0
        self.memory = [np.zeros((MEMORY, *s), t) for s, t in (((4,), np.float32), ((), np.int32), ((), bool), ((4,), np.float32))]
        with tw.Graph() as graph:
            self.places = [tw.placeholder(m.dtype.name, [None, *m.shape[1:]]) for m in self.memory]
            self.net, self.dqn = net, dqn = (n := network()), DQN(n)
            dqn.build(*self.places)
            self.chosen = net(self.places[0]).argmax(1, "int32")
            start = graph.initializer()
        self.session = tw.Session(graph, threads=threads)
        self.session.run(start)
        self.session.run(dqn.same)
        self.state, self.age = self.begin(GAMES), np.zeros(GAMES, int)

    def begin(self, n):
        return self.random.uniform(-0.05, 0.05, (n, 4)).astype(np.float32)

    def act(self):
        chosen = self.session.run(self.chosen, {self.places[0]: self.state})
        action = np.where(self.random.random(GAMES) < explore(self.steps), self.random.integers(2, size=GAMES), chosen).astype(np.int32)
        after, lost = physics(np, self.state, action)
        rows = (self.steps * GAMES + np.arange(GAMES)) % MEMORY
        for memory, value in zip(self.memory, (self.state, action, lost, after)):
            memory[rows] = value
        self.age += 1
        over = lost | (self.age == LIMIT)
        self.state, self.age = np.where(over[:, None], self.begin(GAMES), after).astype(np.float32), np.where(over, 0, self.age)
        self.steps += 1

    def step(self):
        self.act()
        if self.steps * GAMES >= 1000:
            rows = self.random.integers(min(self.steps * GAMES, MEMORY), size=BATCH)
            self.session.run(self.dqn.step, dict(zip(self.places, (m[rows] for m in self.memory))))


class Graph:
    """The graph plays and remembers: a step is one run without feeds."""

    def __init__(self, seed=1, threads=0):
        tw.random.seed(seed)
        with tw.Graph() as graph:
            draw = lambda n: tw.ops.random_uniform([n, 4], dtype="float32") * 0.1 - 0.05  # noqa: E731
            state, age = tw.Variable(draw(GAMES), trainable=False), tw.Variable(np.zeros(GAMES, np.int32), trainable=False)
            count = tw.Variable(np.int32(0), trainable=False)
            memory = [tw.Variable(np.zeros((MEMORY, *s), t), trainable=False)
                      for s, t in (((4,), np.float32), ((), np.int32), ((), bool), ((4,), np.float32))]
            self.net, now, n = network(), state.read(), count.read()
            chosen, steps = self.net(now).argmax(1, "int32"), (n // GAMES).astype("float32")
            share = 0.02 + 0.98 * tw.ops.maximum(1 - steps / RANDOM_STEPS, 0.0)
            free = tw.ops.random_uniform([GAMES], dtype="float32")
            action = tw.ops.select_v2(free < share, tw.ops.random_uniform_int([GAMES], 0, 2), chosen)
            after, lost = physics(InGraph, now, action.astype("float32"))
            rows, older = (n + tw.ops.range(0, GAMES)) % MEMORY, age + 1
            over = lost | (older >= LIMIT)
            moves = [tw.ops.resource_scatter_update(m.handle, rows, v) for m, v in zip(memory, (now, action, lost, after))]
            self.act = tw.group(*moves, state.assign(tw.ops.select_v2(over[:, None], draw(GAMES), after)), count.assign_add(GAMES),
                                age.assign(tw.ops.select_v2(over, 0, older)))
            picked = tw.ops.random_uniform_int([BATCH], 0, tw.ops.maximum(tw.ops.minimum(n, MEMORY), 1))
            dqn = DQN(self.net)
            dqn.build(*(tw.ops.resource_gather(m.handle, picked, dtype=m.dtype) for m in memory))
            self.both, self.places = tw.group(self.act, dqn.step), [tw.placeholder("float32", [None, 4])]
            self.chosen, start = self.net(self.places[0]).argmax(1, "int32"), graph.initializer()
        self.session, self.steps = tw.Session(graph, threads=threads), 0
        self.session.run(start)
        self.session.run(dqn.same)

    def step(self):
        self.steps += 1
        self.session.run(self.act if self.steps * GAMES < 1000 else self.both)


def play(player, games=50, seed=7):
    """The mean return of games without random moves: how long the pole stays up, up to LIMIT."""
    state, up, age = np.random.default_rng(seed).uniform(-0.05, 0.05, (games, 4)).astype(np.float32), np.ones(games, bool), np.zeros(games)
    for _ in range(LIMIT):
        state, lost = physics(np, state, player.session.run(player.chosen, {player.places[0]: state}))
        age, up, state = age + up, up & ~lost, state.astype(np.float32)
    return float(age.mean())


def rate(player, steps=1000):
    for _ in range(100):
        player.step()
    began = time.monotonic()
    for _ in range(steps):
        player.step()
    return steps / (time.monotonic() - began)


def main(arguments=None):
    parser = training.options(__doc__, None, epochs=30)
    parser.add_argument("--client", action="store_true", help="games and memory in the client")
    parser.add_argument("--compare", action="store_true", help="measure steps a second of both")
    given = training.parsed(parser, arguments)
    if given.compare:
        rates = [[rate(make(given.seed, given.threads)) for make in (Client, Graph)] for _ in range(5)]
        client, graph = np.median(rates, 0)
        print(f"dqn: {client:.0f} steps/s with the client, {graph:.0f} in the graph, ratio {graph / client:.2f}")
        return graph / client
    player = (Client if given.client else Graph)(given.seed, given.threads)
    for epoch in range(given.epochs):
        for _ in range(100):
            player.step()
    reached = play(player)
    training.said("dqn", "mean return", reached, given.epochs)
    return reached


if __name__ == "__main__":
    main()
