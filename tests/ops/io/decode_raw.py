import numpy as np

import tw
from declare import expect, op, refuses
from text import shape_of, text


def draw(d):
    size = d.dtype("out_type").itemsize * d.integer(0, 4)
    shape = shape_of(d, most=4)
    flat = np.array([d.rng.bytes(size) for _ in range(int(np.prod(shape)))] + [b""], object)[:-1]
    return [d("bytes", of=flat.reshape(shape))]


def decoded(x, *, out_type, little_endian):
    raw = np.frombuffer(b"".join(x.flat), np.uint8)
    word = out_type.itemsize // (2 if out_type.kind == "c" else 1)
    raw = raw if little_endian else raw.reshape(-1, word)[:, ::-1].ravel()
    length = len(x.flat[0]) // out_type.itemsize if x.size else 0
    return (raw != 0 if out_type == np.bool_ else np.frombuffer(raw.tobytes(), out_type)).reshape(*x.shape, length)


op("DecodeRaw", decoded, draw, given=dict(out_type=np.uint8))
expect("DecodeRaw", [text(b"\0\1\2\xff")], [[False, True, True, True]], out_type=np.bool_)
expect("DecodeRaw", [text(b"\1\2", b"\3\4")], [np.array([[0x102], [0x304]], np.int16)], out_type=np.int16, little_endian=False)
expect("DecodeRaw", [text(b"\x3f\x80")], [tw.from_bfloat16(tw.to_bfloat16(np.ones(1)))], out_type=tw.bfloat16, little_endian=False)
refuses("DecodeRaw", [text(b"ab", b"abc")], "'bytes'[1] has 3 bytes", "2", out_type=np.uint8)
refuses("DecodeRaw", [text(b"", b"ab")], "'bytes'[1] has 2 bytes", "0", out_type=np.int16)
refuses("DecodeRaw", [text(b"abc", b"abc")], "'bytes' have 3 bytes", "2", "int16", out_type=np.int16)
refuses("DecodeRaw", [text(b"abc")], "uint32", out_type=np.uint32)
