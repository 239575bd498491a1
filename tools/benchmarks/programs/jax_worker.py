"""JAX's worker. usage: jax_worker.py THREADS"""
import os

import worker

if worker.threads() == 1:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
import jax
import jax.numpy as jnp
import numpy


def empty_step():
    step = jax.jit(lambda x: x + 0)
    one = jnp.ones(1)
    return lambda: step(one).block_until_ready()


class Mlp:
    def load(self, folder):
        data = worker.read_mlp(folder, numpy)
        self.start = [jnp.array(data[name]) for name in ("w1", "b1", "w2", "b2")]
        self.x, self.y = jnp.array(data["x"]), jnp.array(data["y"])

        def loss(weights, x, y):
            hidden = jax.nn.relu(x @ weights[0] + weights[1])
            return -jnp.mean(jax.nn.log_softmax(hidden @ weights[2] + weights[3])[jnp.arange(100), y])

        def train(weights, x, y):
            value, gradients = jax.value_and_grad(loss)(weights, x, y)
            return [w - 0.01 * g for w, g in zip(weights, gradients)], value

        self.train = jax.jit(train)
        self.weights = self.start
        return [1]

    def step(self):
        self.weights, loss = self.train(self.weights, self.x, self.y)
        return float(loss)

    def losses(self):
        self.weights = self.start
        return [self.step() for _ in range(5)]

    def times(self, samples):
        self.weights = self.start
        return worker.times(self.step, samples)


empty = empty_step()
mlp = Mlp()
worker.serve({
    "callable": lambda n: worker.times(empty, int(n)),
    "mlp_load": mlp.load,
    "mlp_losses": lambda _: mlp.losses(),
    "mlp_step": lambda n: mlp.times(int(n)),
})
