"""The files of media_golden.npz decoded by Pillow, TensorFlow and libsndfile, and compared with the pixels and samples there and with ours.

    tools/test -L peer                                                compares
    tools/cmake/peer-python tests/python/media_peer.py --update       writes media_golden.npz anew, with files by Pillow and libsndfile"""
import io
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
sys.path += [str(pathlib.Path(os.environ.get("THALWEG_BINARY_DIR", ROOT / "build/release")) / "python"), str(pathlib.Path(__file__).parent)]
try:
    import numpy as np
    import soundfile
    import tensorflow as tf
    from PIL import Image, ImageSequence
except ImportError as error:
    print(f"skipped: {error}; run tools/setup --peers")
    sys.exit(77)

import media_cases

rng = np.random.default_rng(9)


def smooth(height, width, channels):
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([128 + 100 * np.sin((y + k * x) / (9 + k)) for k in range(1, channels + 1)], 2).astype(np.uint8)


def stored(image, kind, **how):
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


def images():
    rgb, rgba = Image.fromarray(smooth(20, 31, 3)), Image.fromarray(smooth(20, 31, 4), "RGBA")
    rolled = [Image.fromarray(np.roll(smooth(20, 31, 4), k, 1), "RGBA") for k in (5, 9)]
    moving = []
    for k in range(4):
        pixels = np.ones((24, 30), np.uint8)
        pixels[3 + k:9 + k, 4 + 2 * k:12 + 2 * k] = 2 + k
        moving.append(Image.fromarray(pixels, "P"))
        moving[-1].putpalette(rng.integers(0, 256, 48).tolist())
    yield "gif/interlaced", stored(rgb.quantize(16), "GIF", interlace=1)
    yield "gif/moving", stored(moving[0], "GIF", save_all=True, append_images=moving[1:], duration=50, loop=0)
    yield "webp/lossless", stored(rgba, "WEBP", lossless=True)
    yield "webp/lossy", stored(rgb, "WEBP", quality=60)
    yield "webp/lossy with alpha", stored(rgba, "WEBP", quality=60)
    yield "webp/moving", stored(rgba, "WEBP", save_all=True, append_images=rolled, quality=70, duration=40)
    yield "jpeg/colour", stored(rgb, "JPEG", quality=80)
    yield "jpeg/progressive", stored(rgb, "JPEG", quality=80, progressive=True)
    yield "jpeg/grey", stored(rgb.convert("L"), "JPEG", quality=80)
    yield "jpeg/inks", stored(rgb.convert("CMYK"), "JPEG", quality=80)


def sounds():
    wave = 0.4 * np.sin(np.arange(900)[:, None] * [[0.05, 0.031]]) + 0.02 * rng.normal(size=(900, 2))
    for bits, name in ((8, "PCM_S8"), (16, "PCM_16"), (24, "PCM_24")):
        samples = np.rint(wave * 2 ** (bits - 1)).astype(np.int32)
        samples[400:500] = samples[400]  # a constant part
        out = io.BytesIO()
        soundfile.write(out, samples << 32 - bits, 16000, format="FLAC", subtype=name)
        yield f"flac/{bits} bits", out.getvalue(), samples, bits
    for kind, name in (("WAV", "PCM_U8"), ("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "PCM_32"), ("WAV", "FLOAT"), ("WAV", "DOUBLE"), ("WAVEX", "PCM_24"),
                       ("WAVEX", "FLOAT")):
        out = io.BytesIO()
        soundfile.write(out, wave[:60], 16000, format=kind, subtype=name)
        yield f"wav/{kind} {name}", out.getvalue()


def frames(file):
    """Returns the frames as Pillow decodes them."""
    with Image.open(io.BytesIO(file)) as image:
        mode = "RGBA" if image.format == "WEBP" and (image.is_animated or image.mode == "RGBA") else "RGB"
        return np.stack([np.array(frame.convert(mode)) for frame in ImageSequence.Iterator(image)])


def peers(family, file):
    """{name of a peer: what it answers}, as media_cases.ours gives it."""
    if family in ("gif", "webp"):
        return {"Pillow": frames(file), "TensorFlow": tf.io.decode_image(file).numpy()}
    if family == "jpeg":
        y, x, height, width = media_cases.WINDOW
        shape = tf.io.extract_jpeg_shape(file).numpy()
        pixels = tf.io.decode_jpeg(file, dct_method="INTEGER_ACCURATE").numpy()[y:y + height, x:x + width]
        return {"TensorFlow": np.concatenate([shape, pixels.reshape(-1)])}
    samples = soundfile.read(io.BytesIO(file), dtype="float32", always_2d=True)[0]
    short = family == "wav" and file[34] == 16
    return {"libsndfile": samples} | ({"TensorFlow": tf.audio.decode_wav(file).audio.numpy()} if short else {})


def update():
    out = {}
    for case, file in [*images(), *(sound for sound in sounds() if len(sound) == 2)]:
        out[f"{case}|file"] = np.frombuffer(file, np.uint8)
        out[f"{case}|want"] = next(iter(peers(case.split("/")[0], file).values()))
    for case, file, samples, bits in (sound for sound in sounds() if len(sound) == 4):
        out |= {f"{case}|file": np.frombuffer(file, np.uint8), f"{case}|want": samples, f"{case}|bits": np.array(bits)}
    np.savez_compressed(media_cases.GOLDEN_FILE, **out)


def main():
    if "--update" in sys.argv:
        update()
    wrong = 0
    for case, file, want in media_cases.cases():
        for peer, got in (peers(case.split("/")[0], file) | {"Thalweg": media_cases.ours(case, file)}).items():
            same = np.array_equal(got, want)
            wrong += not same
            print(f"{case}: {peer}: {'the same' if same else 'DIFFERENT'}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
