"""Images of one frame (DecodePng EncodePng DecodeBmp DecodeJpeg DecodeAndCropJpeg ExtractJpegShape EncodeJpeg EncodeJpegVariableQuality
DecodeImage): PNG and BMP files that the test writes itself, JPEG by what is lost."""
import struct
import zlib

import numpy as np
import pytest

import thalweg as tw

if "DecodePng" not in tw.Runtime.default().ops() or not tw.Runtime.default().ops()["DecodePng"]["kernels"]:
    pytest.skip("built without the libraries of images", allow_module_level=True)

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


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("how", [{}, dict(progressive=True), dict(chroma_downsampling=False)])
def test_a_window_of_a_jpeg_has_the_pixels_of_the_whole(channels, how):
    file = ops.encode_jpeg(tw.constant(smooth(61, 83, channels), "uint8"), **how).item()
    for attrs in ({}, dict(ratio=2), dict(channels=4 - channels), dict(fancy_upscaling=False)):
        whole = decoded("decode_jpeg", file, **attrs)
        rows, columns = whole.shape[:2]
        for y, x, height, width in [(0, 0, rows, columns), (rows - 1, columns - 1, 1, 1), (0, 3, 5, columns - 3)] + [
                (int(a), int(b), int(rng.integers(1, rows - a + 1)), int(rng.integers(1, columns - b + 1)))
                for a, b in zip(rng.integers(rows, size=5), rng.integers(columns, size=5))]:
            got = ops.decode_and_crop_jpeg(file, [y, x, height, width], **attrs).numpy()
            assert np.array_equal(got, whole[y:y + height, x:x + width]), (y, x, height, width, attrs)
    # The rows behind the window need not be there.
    if "progressive" not in how:
        assert np.array_equal(ops.decode_and_crop_jpeg(file[:len(file) * 3 // 4], [2, 3, 8, 70]).numpy(), decoded("decode_jpeg", file)[2:10, 3:73])


def test_windows_outside_of_a_jpeg_are_refused():
    file = ops.encode_jpeg(tw.constant(smooth(20, 30, 3), "uint8")).item()
    for window in ([0, 0, 21, 1], [0, 0, 1, 31], [20, 0, 1, 1], [-1, 0, 2, 2], [0, -1, 2, 2], [2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1]):
        with pytest.raises(tw.InvalidArgumentError, match=r"'crop_window' is \[.*\] .*, which is not inside of the 20 rows of 30 pixels"):
            ops.decode_and_crop_jpeg(file, window)
    for window, message in (([0, 0, 0, 1], "it has no pixels"), ([0, 0, 1], "4 numbers"), ([[0, 0, 1, 1]], "must be a vector")):
        with pytest.raises(tw.InvalidArgumentError, match=message):
            ops.decode_and_crop_jpeg(file, window)
    with pytest.raises(tw.InvalidArgumentError, match="end too early"):
        ops.decode_and_crop_jpeg(file[:-40], [0, 0, 20, 30])


@pytest.mark.parametrize("channels", [1, 3])
def test_shape_and_quality_of_a_jpeg(channels):
    x = tw.constant(smooth(13, 21, channels), "uint8")
    for quality in (0, 30, 95, 100):
        file = ops.encode_jpeg_variable_quality(x, quality).item()
        assert file == ops.encode_jpeg(x, quality=quality).item()
        for kind in ("int32", "int64"):
            shape = ops.extract_jpeg_shape(file, output_type=kind).numpy()
            assert shape.dtype == kind and shape.tolist() == [13, 21, channels]
    assert ops.extract_jpeg_shape(file[:-40]).numpy().tolist() == [13, 21, channels]  # only the head is read
    for quality in (-1, 101):
        with pytest.raises(tw.InvalidArgumentError, match=f"'quality' is {quality}; it must be from 0 to 100"):
            ops.encode_jpeg_variable_quality(x, quality)
    with pytest.raises(tw.InvalidArgumentError, match="'images' is .* height, width, channels"):
        ops.encode_jpeg_variable_quality(tw.constant(np.zeros((3, 3), np.uint8)), 50)
    for bad in (b"", b"\xff\xd8", file[:20], png(np.zeros((1, 1, 3), int), RGB, 8)):
        with pytest.raises(tw.InvalidArgumentError, match="it is damaged or no JPEG"):
            ops.extract_jpeg_shape(bad)


def test_shapes_that_are_known_before_a_step():
    with tw.Graph():
        file = tw.placeholder("string", [])
        for op in (ops.decode_png, ops.decode_jpeg, ops.decode_bmp):
            assert op(file).shape == (None, None, None) and op(file, channels=3).shape == (None, None, 3)
        assert ops.decode_and_crop_jpeg(file, [1, 2, 3, 4]).shape == (3, 4, None)
        assert ops.decode_and_crop_jpeg(file, [1, 2, 3, 4], channels=1).shape == (3, 4, 1)
        assert ops.decode_and_crop_jpeg(file, tw.placeholder("int32", [4])).shape == (None, None, None)
        assert ops.decode_image(file).shape is None
        assert ops.decode_image(file, channels=3, expand_animations=False).shape == (None, None, 3)
        assert ops.decode_gif(file).shape == (None, None, None, 3)
        assert ops.decode_web_p(file, channels=4).shape == (None, None, None, 4)
        assert ops.extract_jpeg_shape(file).shape == (3,)


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
        ("decode_image", b"GIF89a", {}, "a GIF of 6 bytes: at byte 6 the file ends too early"),
        ("decode_image", b"text", {}, "begin as no known image; PNG, JPEG, BMP, GIF and WebP are known"),
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
