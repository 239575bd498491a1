"""Images (DecodePng EncodePng DecodeBmp DecodeJpeg EncodeJpeg DecodeImage): PNG and BMP files that the test writes itself, JPEG by what
is lost."""
import struct
import zlib

import numpy as np
import pytest

import thalweg as tw

if "DecodePng" not in tw.Runtime.default().ops() or not tw.Runtime.default().ops()["DecodePng"]["kernels"]:
    pytest.skip("built without libpng and libjpeg", allow_module_level=True)

ops = tw.ops
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def rows(pixels, depth, how):
    """Filtered rows; how: the filter of each row."""
    height = pixels.shape[0]
    if depth == 16:
        lines = pixels.astype(">u2").reshape(height, -1).view(np.uint8).reshape(height, -1)
    elif depth == 8:
        lines = pixels.astype(np.uint8).reshape(height, -1)
    else:
        flat, per = pixels.reshape(height, -1), 8 // depth
        flat = np.pad(flat, ((0, 0), (0, -flat.shape[1] % per))).reshape(height, -1, per)
        lines = sum((flat[:, :, k].astype(np.uint8) << (8 - depth * (k + 1)) for k in range(per)), np.zeros(flat.shape[:2], np.uint8))
    step = max(1, pixels.shape[-1] * depth // 8)
    out, above = b"", np.zeros(lines.shape[1], np.uint8)
    for y, line in enumerate(lines):
        f = how(y)
        left = np.concatenate([np.zeros(step, np.uint8), line[:-step]]) if len(line) > step else np.zeros_like(line)
        predicted = {0: 0, 1: left, 2: above, 3: ((left.astype(int) + above) // 2).astype(np.uint8)}[f]
        out += bytes([f]) + (line - predicted).astype(np.uint8).tobytes()
        above = line
    return out


def png(pixels, kind, depth, palette=None, transparent=None, how=lambda y: y % 4):
    height, width = pixels.shape[:2]
    body = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0))
    if palette is not None:
        body += chunk(b"PLTE", palette.astype(np.uint8).tobytes())
    if transparent is not None:
        body += chunk(b"tRNS", transparent)
    return body + chunk(b"IDAT", zlib.compress(rows(pixels, depth, how))) + chunk(b"IEND", b"")


def decoded(op, contents, **attrs):
    return getattr(ops, op)(contents, **attrs).numpy()


rng = np.random.default_rng(4)


@pytest.mark.parametrize("kind", [GREY, RGB, GREY_ALPHA, RGBA])
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (17, 9)])
def test_png_of_8_and_16_bits(kind, size):
    for depth in (8, 16):
        x = rng.integers(0, 1 << depth, (*size, CHANNELS[kind]))
        file = png(x, kind, depth)
        narrow, wide = (x if depth == 8 else x >> 8), (x * 257 if depth == 8 else x)
        assert np.array_equal(decoded("decode_png", file), narrow)
        assert np.array_equal(decoded("decode_png", file, dtype="uint16"), wide)
        assert np.array_equal(decoded("decode_image", file, dtype="uint16"), wide)
        scale = np.float32(255 if depth == 8 else 65535)
        assert np.allclose(decoded("decode_image", file, dtype="float32"), x / scale, atol=1e-6)
        colour, alpha = x.shape[2] >= 3, x.shape[2] in (2, 4)
        rgb = narrow[..., :3] if colour else np.repeat(narrow[..., :1], 3, 2)
        a = narrow[..., -1:] if alpha else np.full((*size, 1), 255)
        assert np.array_equal(decoded("decode_png", file, channels=3), rgb)
        assert np.array_equal(decoded("decode_png", file, channels=4), np.concatenate([rgb, a], 2))
        grey = rgb @ np.array([0.299, 0.587, 0.114]) if colour else narrow[..., 0]
        assert abs(decoded("decode_png", file, channels=1)[..., 0] - grey).max() <= 1.01


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_png_of_few_bits_and_palettes(depth):
    x = rng.integers(0, 1 << depth, (6, 13, 1))
    assert np.array_equal(decoded("decode_png", png(x, GREY, depth, how=lambda y: 0)), x * (255 // ((1 << depth) - 1)))
    palette = rng.integers(0, 256, (1 << depth, 3))
    file = png(x, PALETTE, depth, palette, how=lambda y: 0)
    assert np.array_equal(decoded("decode_png", file), palette[x[..., 0]])
    alpha = rng.integers(0, 256, 1 << depth).astype(np.uint8)
    file = png(x, PALETTE, depth, palette, alpha.tobytes(), how=lambda y: 0)
    assert np.array_equal(decoded("decode_png", file), np.concatenate([palette[x[..., 0]], alpha[x]], 2))
    assert np.array_equal(decoded("decode_png", file, channels=3), palette[x[..., 0]])


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_encoded_png_reads_back(dtype, channels):
    x = rng.integers(0, np.iinfo(dtype).max, (7, 11, channels)).astype(dtype)
    for compression in (-1, 0, 9):
        file = ops.encode_png(tw.constant(x, dtype), compression=compression).item()
        assert file.startswith(b"\x89PNG") and struct.unpack(">II", file[16:24]) == (11, 7)
        assert np.array_equal(decoded("decode_png", file, dtype=dtype), x)


def smooth(height, width, channels):
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([128 + 100 * np.sin((y + k * x) / (9 + k)) for k in range(1, channels + 1)], 2).astype(np.uint8)


@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_loses_little(channels):
    x = smooth(61, 83, channels)
    for how in ({}, dict(progressive=True), dict(optimize_size=True, quality=98), dict(chroma_downsampling=False)):
        file = ops.encode_jpeg(tw.constant(x, "uint8"), **how).item()
        for got in (decoded("decode_jpeg", file), decoded("decode_image", file), decoded("decode_jpeg", file, dct_method="INTEGER_FAST")):
            assert got.shape == x.shape
            assert 10 * np.log10(255 ** 2 / np.mean((got.astype(float) - x) ** 2)) > 30, how
    sizes = [len(ops.encode_jpeg(tw.constant(x, "uint8"), quality=q).item()) for q in (20, 60, 95)]
    assert sizes == sorted(sizes)
    file = ops.encode_jpeg(tw.constant(x, "uint8")).item()
    for ratio in (2, 4, 8):
        got = decoded("decode_jpeg", file, ratio=ratio)
        assert got.shape == (-(-61 // ratio), -(-83 // ratio), channels)
        whole = x[:61 // ratio * ratio, :83 // ratio * ratio].reshape(61 // ratio, ratio, 83 // ratio, ratio, channels).mean((1, 3))
        assert abs(got[:61 // ratio, :83 // ratio] - whole).mean() < 6
    other = decoded("decode_jpeg", file, channels=4 - channels)
    grey = x @ np.array([0.299, 0.587, 0.114]) if channels == 3 else np.repeat(x, 3, 2)
    assert abs(other.reshape(grey.shape).astype(float) - grey).mean() < 3


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("down", [False, True])
def test_bmp(channels, down):
    x = rng.integers(0, 256, (5, 7, channels)).astype(np.uint8)
    stored = x if channels == 1 else x[..., [2, 1, 0, 3][:channels] if channels == 4 else [2, 1, 0]]
    lines = [line.tobytes() + b"\0" * (-line.size % 4) for line in (stored if down else stored[::-1])]
    file = struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 0, 0, 0, 60, 40, 7, -5 if down else 5, 1, 8 * channels, 0, 0, 0, 0, 0, 0) + b"\0" * 6 + b"".join(lines)
    assert np.array_equal(decoded("decode_bmp", file), x)
    assert np.array_equal(decoded("decode_image", file), x)
    for cut in (0, 1, 53, 60, len(file) - 1):
        with pytest.raises(tw.InvalidArgumentError):
            decoded("decode_bmp", file[:cut])


def test_errors_name_what_is_wrong():
    x = png(rng.integers(0, 256, (8, 8, 3)), RGB, 8)
    jpeg = ops.encode_jpeg(tw.constant(smooth(40, 40, 3), "uint8")).item()
    for op, contents, attrs, message in [
        ("decode_png", b"", {}, "a PNG of 0 bytes"), ("decode_png", jpeg, {}, "it is damaged or no PNG"), ("decode_png", x[:60], {}, "ends too early"),
        ("decode_png", x, dict(channels=5), "'channels' is 5; it must be one of 0, 1, 2, 3, 4"),
        ("decode_jpeg", b"", {}, "a JPEG of 0 bytes"), ("decode_jpeg", x, {}, "no JPEG"), ("decode_jpeg", jpeg[:len(jpeg) // 2], {}, "end too early"),
        ("decode_jpeg", jpeg, dict(ratio=3), "'ratio' is 3"), ("decode_jpeg", jpeg, dict(dct_method="SLOW"), "'dct_method' is 'SLOW'"),
        ("decode_image", b"GIF89a", {}, "GIF is not supported"), ("decode_image", b"text", {}, "begin as no known image"),
        ("decode_bmp", b"BM" + b"\0" * 60, {}, "bits a pixel"),
    ]:
        with pytest.raises((tw.InvalidArgumentError, tw.UnimplementedError), match=message):
            decoded(op, contents, **attrs)
    huge = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1 << 28, 1 << 28, 8, 2, 0, 0, 0)) + chunk(b"IDAT", b"")
    with pytest.raises(tw.InvalidArgumentError, match="the limit is 536870912"):
        decoded("decode_png", huge)
    half = decoded("decode_jpeg", jpeg[:len(jpeg) // 2], try_recover_truncated=True)
    assert half.shape == (40, 40, 3)
    with pytest.raises(tw.InvalidArgumentError, match="'quality' is 101"):
        ops.encode_jpeg(tw.constant(smooth(8, 8, 3), "uint8"), quality=101)
    with pytest.raises(tw.InvalidArgumentError, match="height, width, channels"):
        ops.encode_png(tw.constant(np.zeros((3, 3), np.uint8)))


def test_damaged_files_are_refused_or_decoded():
    files = [png(rng.integers(0, 256, (16, 16, 3)), RGB, 8), ops.encode_jpeg(tw.constant(smooth(40, 40, 3), "uint8")).item(),
             ops.encode_jpeg(tw.constant(smooth(40, 40, 1), "uint8"), progressive=True).item()]
    refused = 0
    for k in range(600):
        b = bytearray(files[k % 3])
        for _ in range(int(rng.integers(1, 5))):
            b[int(rng.integers(len(b)))] = int(rng.integers(256))
        if rng.integers(3) == 0:
            del b[int(rng.integers(20, len(b))):]
        try:
            decoded("decode_image", bytes(b))
        except tw.Error as e:
            refused += 1
            assert isinstance(e, (tw.InvalidArgumentError, tw.ResourceExhaustedError)), e
    assert refused > 100
