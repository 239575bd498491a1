"""PyTorch's worker: it runs eagerly, as PyTorch's users do. usage: pytorch_worker.py THREADS"""
import functools
import itertools

import numpy
import torch

import worker

torch.set_num_threads(worker.threads())


def add_chain():
    x = one = torch.ones(1)

    def step():
        y = x
        for _ in range(worker.CHAIN):
            y = y + one
        return y

    with torch.no_grad():
        return step()


class Mlp:
    def load(self, folder):
        data = worker.read_mlp(folder, numpy)
        self.start = [torch.from_numpy(data[name]) for name in ("w1", "b1", "w2", "b2")]
        self.x, self.y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"]).long()
        return self.restart()

    def restart(self):
        self.weights = [w.clone().requires_grad_() for w in self.start]
        self.optimizer = torch.optim.SGD(self.weights, 0.01)
        return [1]

    def step(self):
        w1, b1, w2, b2 = self.weights
        self.optimizer.zero_grad()
        hidden = torch.relu(torch.addmm(b1, self.x, w1))
        loss = torch.nn.functional.cross_entropy(torch.addmm(b2, hidden, w2), self.y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def losses(self):
        self.restart()
        return [self.step() for _ in range(5)]

    def times(self, samples):
        self.restart()
        return worker.times(self.step, samples)


class Checkpoint:
    """Sixteen parts of 64 MB, as checkpoint_data.h has them."""

    def __init__(self):
        self.parts = {f"part{i}": torch.from_numpy(part) for i, part in enumerate(worker.checkpoint_parts(numpy))}

    def write(self, folder):
        def save():
            with open(f"{folder}/pytorch", "wb") as file:
                torch.save(self.parts, file)
                worker.sync(file)
        return worker.time_once(save)

    def read(self, folder):
        return worker.time_once(lambda: torch.load(f"{folder}/pytorch"))


class Embedding:
    """Rows of a table that are looked up and updated, as embedding.c has them."""

    def load(self, rows):
        self.lists = [torch.from_numpy(((numpy.arange(k * 1024, (k + 1) * 1024, dtype=numpy.uint64) * 2654435761) % 2**32 % rows)
                                       .astype(numpy.int64)) for k in range(64)]
        factors = (numpy.arange(1024 * 64) % 7).astype(numpy.float32) * numpy.float32(0.125) - numpy.float32(0.25)
        self.factors = torch.from_numpy(factors.reshape(1024, 64))
        self.table = torch.full((rows, 64), 0.5, requires_grad=True)
        self.optimizer = torch.optim.SGD([self.table], 0.01)
        return [1]

    def step(self, rows):
        self.optimizer.zero_grad()
        loss = (torch.nn.functional.embedding(rows, self.table, sparse=True).square() * self.factors).sum()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def losses(self):
        with torch.no_grad():
            self.table.fill_(0.5)
        return [self.step(self.lists[i % 2]) for i in range(5)]

    def times(self, samples):
        lists = itertools.cycle(self.lists)
        return worker.times(lambda: self.step(next(lists)), samples)


mlp, embedding, checkpoint = Mlp(), Embedding(), functools.cache(Checkpoint)
worker.serve({
    "add_chain": lambda n: worker.times(add_chain, int(n), worker.CHAIN),
    "mlp_load": mlp.load,
    "mlp_losses": lambda _: mlp.losses(),
    "mlp_step": lambda n: mlp.times(int(n)),
    "embedding_load": lambda rows: embedding.load(int(rows)),
    "embedding_losses": lambda _: embedding.losses(),
    "embedding_step": lambda n: embedding.times(int(n)),
    "checkpoint_write": lambda folder: checkpoint().write(folder),
    "checkpoint_read": lambda folder: checkpoint().read(folder),
})
