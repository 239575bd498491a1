"""Images that can have several frames (DecodeGif DecodeWebP DecodeImage): GIF files that media.py writes, WebP files of media_golden.npz."""
import pathlib
import struct

import numpy as np
import pytest

import media
import thalweg as tw
from media import Frame, canvases, gif

if "DecodeGif" not in tw.Runtime.default().ops() or not tw.Runtime.default().ops()["DecodeGif"]["kernels"]:
    pytest.skip("built without the libraries of images", allow_module_level=True)

ops = tw.ops
rng = np.random.default_rng(5)
GOLDEN = np.load(pathlib.Path(__file__).with_name("media_golden.npz"))


def palette(n):
    return rng.integers(0, 256, (n, 3))


def refuses(op, file, message, error=tw.InvalidArgumentError, **attrs):
    with pytest.raises(error, match=message):
        getattr(ops, op)(file, **attrs)


# ---- GIF ----


@pytest.mark.parametrize("colours", [2, 4, 16, 256])
@pytest.mark.parametrize("size", [(1, 1), (5, 7), (16, 9), (90, 110)])
@pytest.mark.parametrize("interlaced", [False, True])
def test_gif_of_one_frame(colours, size, interlaced):
    colour, frame = palette(colours), Frame(rng.integers(0, colours, size), interlaced=interlaced)
    want = colour.astype(np.uint8)[frame.pixels]
    for file in (gif([frame], colour), gif([Frame(frame.pixels, palette=colour, interlaced=interlaced)]), gif([frame], colour, end=b"")):
        assert np.array_equal(ops.decode_gif(file).numpy(), want[None])
        assert np.array_equal(ops.decode_image(file).numpy(), want[None])
        assert np.array_equal(ops.decode_image(file, expand_animations=False).numpy(), want)
        assert np.array_equal(ops.decode_image(file, channels=3, dtype="uint16").numpy(), want[None] * np.uint16(257))
        assert np.allclose(ops.decode_image(file, dtype="float32").numpy(), want[None] / 255, atol=1e-6)


def test_frames_are_drawn_onto_those_before():
    colour, own = palette(8), palette(4)
    frames = [Frame(rng.integers(0, 8, (12, 20))), Frame(rng.integers(0, 8, (5, 6)), 3, 4, transparent=2),
              Frame(rng.integers(0, 4, (12, 10)), 15, 7, palette=own, transparent=0, interlaced=True), Frame(rng.integers(0, 8, (0, 6))),
              Frame(rng.integers(0, 8, (2, 2)), 19, 11), Frame(rng.integers(0, 8, (3, 3)), 500, 500), Frame(np.full((12, 20), 7), disposal=2),
              Frame(np.full((1, 1), 1), transparent=1, disposal=3)]
    want = canvases(frames, colour)
    file = gif(frames, colour, screen=(40, 50))
    assert want.shape == (8, 12, 20, 3)
    assert np.array_equal(ops.decode_gif(file).numpy(), want)
    assert np.array_equal(ops.decode_image(file, expand_animations=False).numpy(), want[0])
    first = [Frame(rng.integers(0, 8, (4, 4)), 1, 1, transparent=5), Frame(rng.integers(0, 8, (6, 3)))]  # leaves parts of the canvas black
    assert np.array_equal(ops.decode_gif(gif(first, colour)).numpy(), canvases(first, colour))
    words = b"!\xfe\5hello\0" + b"!\xff\x0bNETSCAPE2.0\3\1\0\0\0"
    assert np.array_equal(ops.decode_gif(gif(first, colour, end=words + b";")).numpy(), canvases(first, colour))


def head(width, height):
    return b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\2\0"


def test_gif_errors_say_where_and_what():
    start, colour = b"GIF89a" + struct.pack("<HHBBB", 9, 9, 0, 0, 0), palette(4)
    whole = gif([Frame(np.full((3, 3), 1))], colour)
    for file, message in [
        (b"", "a GIF of 0 bytes: at byte 0 the file ends too early; it is damaged or no GIF"),
        (b"PNG89a" + whole[6:], "giflib reports 'Data is not in GIF"), (start + b";", "it has no frame"),
        (start + b"x", "at byte 14 giflib reports 'Wrong record type"), (gif([Frame(np.full((3, 3), 1))]), "no colour map"),
        (gif([Frame(np.full((3, 3), 5))], colour), "a pixel has colour 5 of a map of 4"),
        (start + head(65535, 65535) + b";", "65535 x 65535 pixels; the limit is 536870912"),
        (start + head(65535, 8000) * 3 + b";", "it has 3 frames of 65535 x 8000 pixels; the limit is 536870912 in all"),
        (start + b"," + struct.pack("<HHHHB", 0, 0, 3, 3, 0) + b"\x0c\0;", "at byte 24 the codes of a frame have an impossible size"),
        (gif([Frame(np.full((3, 3), 1))], colour, end=b"!\xf9\4\0\0\0\0\0"), "ends too early"),
    ]:
        refuses("decode_gif", file, message)
        if file.startswith(b"GIF8"):
            refuses("decode_image", file, message)
    refuses("decode_image", whole, "'channels' is 1; it must be one of 0, 3", channels=1)
    refuses("decode_image", whole, "'channels' is 4; it must be one of 0, 3", channels=4)
    with pytest.raises(tw.InvalidArgumentError, match="contents"):
        ops.decode_gif(tw.constant([whole, whole]))


def test_a_gif_cut_anywhere_is_refused_or_has_whole_frames():
    frames = [Frame(rng.integers(0, 4, (6, 7)), described=True) for _ in range(3)]
    colour = palette(4)
    file, want, ends = gif(frames, colour), canvases(frames, colour), []
    for cut in range(len(file)):
        try:
            got = ops.decode_gif(file[:cut]).numpy()
        except tw.InvalidArgumentError as e:
            assert "too early" in str(e) or "no frame" in str(e), e
        else:
            assert np.array_equal(got, want[:len(got)])
            ends.append(len(got))
    assert ends == [1, 2, 3]  # the ends of the frames


# ---- WebP ----


WEBP = [name.split("|")[0] for name in GOLDEN.files if name.startswith("webp/") and name.endswith("|file")]


@pytest.mark.parametrize("case", WEBP)
def test_webp_in_other_forms(case):
    file, want = GOLDEN[case + "|file"].tobytes(), GOLDEN[case + "|want"]
    assert np.array_equal(ops.decode_image(file).numpy(), want)
    assert np.array_equal(ops.decode_image(file, expand_animations=False).numpy(), want[0])
    assert np.array_equal(ops.decode_web_p(file, channels=3).numpy(), want[..., :3])
    alpha = want[..., 3:] if want.shape[-1] == 4 else np.full((*want.shape[:3], 1), 255)
    assert np.array_equal(ops.decode_web_p(file, channels=4).numpy(), np.concatenate([want[..., :3], alpha], 3))
    assert np.array_equal(ops.decode_image(file, dtype="uint16").numpy(), want * np.uint16(257))
    assert np.allclose(ops.decode_image(file, dtype="float32", expand_animations=False).numpy(), want[0] / 255, atol=1e-6)


@pytest.mark.parametrize("case", WEBP)
def test_a_webp_cut_anywhere_is_refused(case):
    file = GOLDEN[case + "|file"].tobytes()
    assert len(file) > 100
    for cut in range(0, len(file), 1 if len(file) < 400 else 7):
        with pytest.raises(tw.InvalidArgumentError, match=f"a WebP of {cut} bytes: .*damaged"):
            ops.decode_web_p(file[:cut])


def chunks_of(file):
    """Yields names and payloads of the chunks of a WebP."""
    at = 12
    while at < len(file):
        size = struct.unpack_from("<I", file, at + 4)[0]
        yield file[at:at + 4], file[at + 8:at + 8 + size]
        at += 8 + size + size % 2


def test_webp_errors_say_what():
    file = GOLDEN["webp/lossless|file"].tobytes()
    chunks = b"VP8X" + struct.pack("<IB", 10, 2) + bytes(3) + struct.pack("<I", (1 << 24) - 1)[:3] + struct.pack("<I", 63)[:3]
    huge = b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WEBP" + chunks
    for bad, message in [(b"", "a WebP of 0 bytes: the file ends too early"),
                         (b"RIFF\4\0\0\0WAVE" + bytes(30), "libwebp cannot read it; it is damaged or no WebP"),
                         (huge, "16777216 x 64 pixels; the limit is 536870912")]:
        refuses("decode_web_p", bad, message)
    refuses("decode_web_p", file, "'channels' is 1; it must be one of 0, 3, 4", channels=1)
    refuses("decode_image", file, "'channels' is 1; it must be one of 0, 3, 4", channels=1)
    refuses("decode_web_p", gif([Frame(np.zeros((1, 1), int))], palette(2)), "no WebP")


class Bits:
    """A stream of bits as lossless WebP has it: the lowest bit of each byte first."""

    def __init__(self):
        self.bits = []

    def add(self, value, n):
        self.bits += [value >> i & 1 for i in range(n)]

    def code(self, value, n):  # a prefix code: its highest bit first
        self.bits += [value >> (n - 1 - i) & 1 for i in range(n)]

    def single(self, symbol):  # a code with one symbol, which then takes no bits
        for value, n in ((1, 1), (0, 1), (1, 1), (symbol, 8)):
            self.add(value, n)

    def bytewise(self, count):  # a code of 8 bits for each of 256 symbols, of `count` that there are
        for value, n in ((0, 1), (8, 4), *[(0, 3)] * 11, (1, 3)):  # all lengths are 8
            self.add(value, n)
        if count == 256:
            self.add(0, 1)
        else:
            for value, n in ((1, 1), (3, 3), (254, 8)):  # 256 lengths, those behind them are 0
                self.add(value, n)

    def bytes(self):
        padded = self.bits + [0] * (-len(self.bits) % 8)
        return np.packbits(np.array(padded, np.uint8), bitorder="little").tobytes()


def grouped(blocks, cache_bits=11):
    """A lossless stream without its head, which ends behind the image of blocks. blocks: a number of a group for each, or one for all."""
    bits = Bits()
    for value, n in ((0, 1), (1, 1), (cache_bits, 4), (1, 1), (0, 3), (0, 1)):  # no transform, a color cache, blocks of 4 by 4, no cache
        bits.add(value, n)
    if isinstance(blocks, int):
        bits.single(blocks & 255)
        bits.single(blocks >> 8)
    else:
        bits.bytewise(280)
        bits.bytewise(256)
    for _ in range(3):
        bits.single(0)
    for group in [] if isinstance(blocks, int) else blocks:
        bits.code(group & 255, 8)
        bits.code(group >> 8, 8)
    return bits


def lossless_head(width, height):
    return b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)


def riff(*chunks):
    body = b"WEBP" + b"".join(name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for name, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def three(n):
    return struct.pack("<I", n)[:3]


def test_the_tables_of_a_lossless_webp_count_before_they_are_allocated():
    stream = lossless_head(256, 256) + grouped(range(4096)).bytes()  # tables of 80 MB for a file of 8 KB
    lossy = dict(chunks_of(GOLDEN["webp/lossy with alpha|file"].tobytes()))
    frame = three(0) * 2 + three(255) * 2 + three(100) + b"\0"
    inside = b"VP8L" + struct.pack("<I", len(stream)) + stream + bytes(len(stream) % 2)
    files = {
        "still": riff((b"VP8L", stream)),
        "alpha": riff((b"VP8X", lossy[b"VP8X"]), (b"ALPH", b"\1" + grouped(65535).bytes()), (b"VP8 ", lossy[b"VP8 "])),
        "frame": riff((b"VP8X", b"\2" + bytes(3) + three(255) * 2), (b"ANIM", bytes(6)), (b"ANMF", frame + inside)),
    }
    with tw.Eager(memory_limit="64M"):
        for name, file in files.items():
            with pytest.raises(tw.ResourceExhaustedError, match="memory_limit"):
                ops.decode_web_p(file)
            assert len(file) < 9000, name
    with pytest.raises(tw.InvalidArgumentError, match="damaged"):  # the groups that it names are not there
        ops.decode_web_p(files["still"])


def test_a_lossless_webp_whose_blocks_share_a_group_needs_little_memory():
    for bits in (Bits(), grouped(0, cache_bits=1)):
        if not bits.bits:
            for _ in range(3):  # no transform, no color cache, one group
                bits.add(0, 1)
        for symbol in (20, 10, 30, 255, 0):  # green, red, blue, alpha, distance: every pixel is the same and takes no bits
            bits.single(symbol)
        with tw.Eager(memory_limit="8M"):
            image = ops.decode_web_p(riff((b"VP8L", lossless_head(512, 512) + bits.bytes()))).numpy()
        assert image.shape == (1, 512, 512, 3) and np.array_equal(np.unique(image.reshape(-1, 3), axis=0), [[10, 20, 30]])


# ---- All formats ----


def test_damaged_frames_are_refused_or_decoded():
    colour = palette(16)
    frames = [Frame(rng.integers(0, 16, (9, 12)), transparent=3), Frame(rng.integers(0, 16, (4, 5)), 2, 2, palette=colour, interlaced=True)]
    files = [gif(frames, colour)]
    files += [GOLDEN[case + "|file"].tobytes() for case in WEBP]
    refused = 0
    for k in range(800):
        b = bytearray(files[k % len(files)])
        for _ in range(int(rng.integers(1, 5))):
            b[int(rng.integers(len(b)))] = int(rng.integers(256))
        if rng.integers(3) == 0:
            del b[int(rng.integers(12, len(b))):]
        try:
            ops.decode_image(bytes(b), expand_animations=bool(k % 2))
        except tw.Error as e:
            refused += 1
            assert isinstance(e, (tw.InvalidArgumentError, tw.ResourceExhaustedError)), e
    assert refused > 200


def test_pixels_count_towards_the_memory_limit():
    colour = palette(2)
    one = gif([Frame(np.zeros((120, 120), int))], colour, end=b"")
    large = one + one[13 + colour.size:] * 29 + b";"
    assert len(large) < 10_000 and ops.decode_gif(large).shape == (30, 120, 120, 3)
    with tw.Eager(memory_limit="1M"):
        for attrs in ({}, dict(dtype="float32")):
            with pytest.raises(tw.ResourceExhaustedError, match="memory_limit"):
                ops.decode_image(large, **attrs)
        assert ops.decode_image(large, expand_animations=False).shape == (120, 120, 3)
