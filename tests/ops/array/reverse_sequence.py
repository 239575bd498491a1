import numpy as np

from declare import op, refuses


def turned(d):
    x = d("input", d.shape(least=2))
    along, batch = (int(k) for k in d.rng.permutation(x.ndim)[:2])
    d.set(seq_dim=along, batch_dim=batch)
    return [x, d("seq_lengths", of=d.rng.integers(0, x.shape[along] + 1, x.shape[batch]))]


def reverse(x, lengths, *, seq_dim, batch_dim):
    y = np.moveaxis(x, (batch_dim, seq_dim), (0, 1)).copy()
    for row, length in zip(y, lengths):
        row[:length] = row[:length][::-1].copy()
    return np.moveaxis(y, (0, 1), (batch_dim, seq_dim))


op("ReverseSequence", reverse, turned, given=dict(seq_dim=1))

m = np.zeros((2, 3), np.float32)
for lengths in ([4, 0], [0, -1], [2**31 - 1, 0]):
    refuses("ReverseSequence", [m, np.int32(lengths)], "seq_lengths", max(lengths, key=abs), "3", seq_dim=1)
refuses("ReverseSequence", [m, np.int64([1, 2, 3])], "seq_lengths", "2", "3", seq_dim=1)
refuses("ReverseSequence", [m, np.int64([[1, 2]])], "seq_lengths", seq_dim=1)
refuses("ReverseSequence", [m, np.int64([1, 2])], "seq_dim", "0", seq_dim=0)
for axis in (2, 2**62):
    refuses("ReverseSequence", [m, np.int64([1, 2])], "seq_dim", axis, seq_dim=axis)
refuses("ReverseSequence", [m, np.int64([1, 2])], "seq_dim", "-1", seq_dim=-1)
refuses("ReverseSequence", [m, np.int64([1, 2])], "batch_dim", "5", seq_dim=1, batch_dim=5)
