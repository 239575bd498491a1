"""The cases of media_golden.npz: files of images and sound, and what they decode to. media_peer.py writes them."""
import pathlib

import numpy as np

import thalweg as tw

GOLDEN_FILE = pathlib.Path(__file__).with_name("media_golden.npz")
WINDOW = [3, 5, 7, 9]


def cases():
    """(name, bytes of the file, values) of each case. Values of FLAC are whole numbers in the file, and scaled here."""
    golden = np.load(GOLDEN_FILE)
    for name in sorted({key.split("|")[0] for key in golden.files}):
        want = golden[f"{name}|want"]
        if f"{name}|bits" in golden.files:
            want = (want / 2.0 ** (golden[f"{name}|bits"] - 1)).astype(np.float32)
        yield name, golden[f"{name}|file"].tobytes(), want


def ours(case, file):
    family = case.split("/")[0]
    if family == "jpeg":
        pixels = tw.ops.decode_and_crop_jpeg(file, WINDOW).numpy()
        return np.concatenate([tw.ops.extract_jpeg_shape(file).numpy(), pixels.reshape(-1)])
    if family in ("wav", "flac"):
        return {"wav": tw.ops.decode_wav, "flac": tw.ops.decode_flac}[family](file).audio.numpy()
    return {"gif": tw.ops.decode_gif, "webp": tw.ops.decode_web_p}[family](file).numpy()
