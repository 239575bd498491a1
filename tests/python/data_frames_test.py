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
