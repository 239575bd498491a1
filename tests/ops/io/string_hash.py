import numpy as np

from declare import expect, op, refuses
from text import each, text, texts

# FarmHash fingerprints of texts of these lengths, from TensorFlow 2.21; the function is defined only by its code.
FINGERPRINTS = {
    0: 0x9ae16a3b2f90404f, 1: 0x47a24c13b17e583e, 2: 0x02fc9608ba44d8f4, 3: 0x122fe5ab4ecfb1e6, 4: 0xa287078f860b7e33,
    5: 0xc7592692fa158a82, 7: 0x9973b8199e43c7cc, 8: 0xd3d2fd5846306608, 9: 0xd7190c16bcedd521, 15: 0xe98025ce297b1f04,
    16: 0x3c36c4e2d1fceef4, 17: 0x26bc0468c6bb6bd5, 24: 0x3f44c18287098d79, 31: 0xe7fa81df2ec95e48, 32: 0xd8a8e27ed9bd6ce8,
    33: 0x204bad37461d76d5, 47: 0x7cbbf780f1050188, 48: 0xc85b4c98bec2da9c, 63: 0xf22d9051783b57e0, 64: 0xf96c26fdfe6f54af,
    65: 0xebc047182c187656, 100: 0xc9ef698f26dde197, 127: 0xf093962a5a048b5c, 128: 0xf795d5f230985ece, 129: 0x57c74ec6ef753e58,
    200: 0xfc16b4eb77d10ae8, 1000: 0x6fc3e94085f7b4b3}
POOL = {bytes((37 * i + n) % 256 for i in range(n)): value for n, value in FINGERPRINTS.items()}
ALL = 2**64 - 1


def rotated(x, by):
    return (x << by | x >> (64 - by)) & ALL


def siphash(t, key):
    """SipHash-2-4 of the paper, with its constants as the text that they are."""
    v = [int.from_bytes(b"somepseudorandomlygeneratedbytes"[8 * k:8 * k + 8], "big") ^ key[k % 2] & ALL for k in range(4)]
    words = t + bytes(-(len(t) + 1) % 8) + bytes([len(t) % 256])
    for word in [*(int.from_bytes(words[k:k + 8], "little") for k in range(0, len(words), 8)), None]:
        if word is None:
            v[2] ^= 255
        else:
            v[3] ^= word
        for _ in range(4 if word is None else 2):
            for a, b, c, d, r, s in ((0, 1, 2, 3, 13, 16), (2, 1, 0, 3, 17, 21)):
                v[a], v[c] = (v[a] + v[b]) & ALL, (v[c] + v[d]) & ALL
                v[b], v[d] = rotated(v[b], r) ^ v[a], rotated(v[d], s) ^ v[c]
                v[a] = rotated(v[a], 32)
        if word is not None:
            v[0] ^= word
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def draw(d):
    if d.declaration.op.endswith("Strong"):
        d.set(key=[int(k) for k in d.rng.integers(-2**63, 2**63, 2)])
    return [texts(d, "input", POOL)]


BUCKETS = dict(num_buckets=[1, 2, 1000, 2**40 + 7, 2**63 - 1])
op("StringToHashBucketFast", lambda x, *, num_buckets: each(lambda t: POOL[t] % num_buckets, x, kind=np.int64), draw, attrs=BUCKETS,
   given=dict(num_buckets=3))
op("StringToHashBucketStrong", lambda x, *, num_buckets, key: each(lambda t: siphash(t, key) % num_buckets, x, kind=np.int64), draw,
   attrs=BUCKETS, given=dict(num_buckets=3, key=[1, 2]))
# TensorFlow's results.
expect("StringToHashBucketStrong", [text(b"", b"a", b"abcdefgh", b"x" * 17, b"y" * 40)], [np.array([606, 979, 56, 287, 876])],
       num_buckets=1000, key=[1, -2])
for name, key in (("StringToHashBucketFast", {}), ("StringToHashBucketStrong", dict(key=[1, 2]))):
    for buckets in (0, -1, -2**63):
        refuses(name, [text(b"a")], "num_buckets", buckets, num_buckets=buckets, **key)
for key in ([], [1], [1, 2, 3]):
    refuses("StringToHashBucketStrong", [text(b"a")], "key", len(key), num_buckets=5, key=key)
