"""Candidate samplers in plain Python: the numbers that TensorFlow takes from a Philox stream, the classes that it draws with them, and
expected counts."""
import numpy as np

from philox import philox, uniform

f32 = np.float32


class Numbers:
    """The words of a stream, one by one, from block `taken` on."""

    def __init__(self, seed, seed2, taken):
        self.seed, self.seed2, self.block, self.words = seed % 2**64, seed2 % 2**64, taken, []

    def bits(self):
        if not self.words:
            self.words = [int(w) for w in philox(self.seed, self.seed2, self.block, 1)[0]]
            self.block += 1
        return self.words.pop(0)

    def float(self):
        return uniform(np.array([self.bits()], np.uint32), np.float32)[0]

    def double(self):
        return float(uniform(np.array([self.bits(), self.bits()], np.uint32), np.float64)[0])

    def below(self, n, width=32):
        """Returns a uniform integer below n. Numbers that would favour small results are drawn again."""
        while True:
            x = self.bits() if width == 32 else self.bits() | self.bits() << 32
            if not n & n - 1:
                return x & n - 1
            if x >= (2**width - 1) % n + 1:
                return x % n


class Uniform:
    def __init__(self, range_max):
        self.range = range_max

    def draw(self, numbers):
        return numbers.below(self.range, 64)

    def probability(self, k):
        return f32(1 / self.range)


class LogUniform(Uniform):
    def draw(self, numbers):
        return (int(np.exp(numbers.double() * np.log1p(self.range))) - 1) % self.range

    def probability(self, k):
        return f32(np.log((k + 2) / (k + 1)) / np.log1p(self.range))


class Learned:
    def __init__(self, range_max):
        self.weights = np.ones(range_max, np.int64)

    def draw(self, numbers):
        return int(np.searchsorted(np.cumsum(self.weights), numbers.below(int(self.weights.sum())), "right"))

    def probability(self, k):
        return f32(self.weights[k]) / f32(self.weights.sum())

    def learn(self, classes):
        np.add.at(self.weights, classes.ravel(), 1)


class Fixed:
    """Sampling by the alias method: heavy classes fill the unused share of light ones, the last classes first."""

    def __init__(self, given, distortion=1.0, num_reserved_ids=0, num_shards=1, shard=0):
        own = [0.0 for k in range(num_reserved_ids) if k % num_shards == shard]
        own += [f32(w) ** f32(distortion) for k, w in enumerate(given, len(own)) if k % num_shards == shard]
        self.weights = np.array(own, np.float32)
        n, total = len(own), sum(float(w) for w in own)
        share = [float(f32(w) * f32(n)) / total for w in self.weights]
        self.other = list(range(n))
        light, heavy = [k for k in range(n) if share[k] < 1], [k for k in range(n) if share[k] >= 1]
        self.own = [f32(s) for s in share]
        while light and heavy:
            low, high = light.pop(), heavy.pop()
            self.other[low] = high
            share[high] -= 1 - share[low]
            self.own[high] = f32(share[high])
            (light if share[high] < 1 else heavy).append(high)
        for k in light + heavy:
            self.own[k], self.other[k] = f32(1), k
        self.total = f32(0)
        for w in self.weights:
            self.total += w

    def draw(self, numbers):
        place = numbers.float()
        bucket = numbers.below(len(self.weights))
        return bucket if place < self.own[bucket] else self.other[bucket]

    def probability(self, k):
        return self.weights[k] / self.total


def expected_count(p, count, tries):
    return p * f32(count) if tries == count else -np.expm1(f32(tries) * np.log1p(-p))


def sampled(source, true_classes, num_sampled, unique, seed, seed2, step=0):
    """Returns the three outputs. A source that learns is updated."""
    numbers, drawn, tries = Numbers(seed, seed2, step * 512 * num_sampled), [], 0
    while len(drawn) < num_sampled:
        k = source.draw(numbers)
        tries += 1
        if not unique or k not in drawn:
            drawn.append(k)
    drawn = np.array(drawn, np.int64)

    def counts(classes):
        found = [expected_count(source.probability(int(k)), num_sampled, tries) for k in classes.ravel()]
        return np.array(found, np.float32).reshape(classes.shape)

    outputs = [drawn, counts(true_classes), counts(drawn)]
    if hasattr(source, "learn"):
        source.learn(true_classes)
    return outputs
