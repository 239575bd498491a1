"""DecodeFlac: files that media.py writes without compression, and files of the reference encoder in media_golden.npz."""
import pathlib

import numpy as np
import pytest

import media
import thalweg as tw

if "DecodeFlac" not in tw.Runtime.default().ops() or not tw.Runtime.default().ops()["DecodeFlac"]["kernels"]:
    pytest.skip("built without the library of FLAC", allow_module_level=True)

ops = tw.ops
rng = np.random.default_rng(6)
GOLDEN = np.load(pathlib.Path(__file__).with_name("media_golden.npz"))
NO_MD5 = bytes(16)


def whole(n, channels, bits):
    return rng.integers(-2 ** (bits - 1), 2 ** (bits - 1), (n, channels))


def scaled(samples, bits):
    return (samples / 2.0 ** (bits - 1)).astype(np.float32)


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
@pytest.mark.parametrize("channels", [1, 2, 8])
def test_samples_of_flac(bits, channels):
    x = whole(150, channels, bits)
    for told, md5 in ((150, None), (0, None), (150, NO_MD5), (0, NO_MD5)):
        audio, rate = ops.decode_flac(media.flac(x, 44100, bits, total=told, md5=md5))
        assert rate.item() == 44100 and audio.dtype == "float32"
        assert np.array_equal(audio.numpy(), scaled(x, bits)), (told, md5)


@pytest.mark.parametrize("told", [100, 0])
def test_wanted_channels_and_samples(told):
    x = whole(100, 2, 16)
    file, y = media.flac(x, 8000, 16, total=told), scaled(x, 16)
    more = ops.decode_flac(file, desired_channels=4, desired_samples=130).audio.numpy()
    assert np.array_equal(more[:100], y[:, [0, 1, 1, 1]]) and more.shape == (130, 4) and not more[100:].any()
    fewer = ops.decode_flac(file, desired_channels=1, desired_samples=70).audio.numpy()
    assert np.array_equal(fewer, y[:70, :1])
    assert ops.decode_flac(file, desired_samples=0).audio.shape == (0, 2)
    # What comes behind the wanted samples need not be there.
    assert np.array_equal(ops.decode_flac(file[:-100], desired_samples=60).audio.numpy(), y[:60])
    with tw.Graph():
        audio, rate = ops.decode_flac(tw.placeholder("string", []), desired_channels=2)
        assert audio.shape == (None, 2) and rate.shape == ()


@pytest.mark.parametrize("case", [name.split("|")[0] for name in GOLDEN.files if name.startswith("flac/") and name.endswith("|file")])
def test_files_of_the_reference_encoder(case):
    file, want, bits = (GOLDEN[f"{case}|{part}"] for part in ("file", "want", "bits"))
    audio, rate = ops.decode_flac(file.tobytes())
    assert rate.item() == 16000 and np.array_equal(audio.numpy(), scaled(want, int(bits)))


def test_metadata_and_tags_are_passed_over():
    x = whole(20, 1, 16)
    file = media.flac(x, 8000, 16)
    padded = file[:4] + b"\0" + file[5:42] + b"\x81\0\0\5" + bytes(5) + file[42:]
    tagged = b"ID3\3\0\0\0\0\0\7" + bytes(7) + file + b"TAG" + bytes(125)
    for other in (padded, tagged):
        assert np.array_equal(ops.decode_flac(other).audio.numpy(), scaled(x, 16))


def test_sound_errors_say_where_and_what():
    x = whole(150, 1, 16)
    file = media.flac(x, 8000, 16)
    damaged = bytearray(file)
    damaged[100] ^= 1
    other = media.flac_head(2, 8000, 16, 64) + media.flac_frame(0, x[:64], 16)
    silence = media.flac_frame(0, np.zeros((1, 8), int), 16, size=65535)
    for bad, message in [
        (b"", "a FLAC of 0 bytes: it does not begin with fLaC"), (b"fLaC", "the file ends inside of its head"), (b"OggS" + file, "does not begin with fLaC"),
        (bytes(damaged), "at byte [0-9]+ a frame has another checksum than it says"), (file[:42], "it ends after 0 of 150 samples"),
        (media.flac(x, 8000, 16, total=151, md5=NO_MD5), "it ends after 150 of 151 samples"),
        (media.flac(x, 8000, 16, md5=b"1" * 16), "another MD5 sum"), (other, "other channels or bits"),
        (media.flac(x, 8000, 16, total=0)[:-3], f"at byte {len(file) - 55} a frame begins and the file ends inside of it"),
        (media.flac_head(8, 8000, 16, 2 ** 36 - 1) + silence, "more than 67108864 samples of 8 channels; the limit is 536870912 in all"),
        (media.flac_head(8, 8000, 16, 2 ** 26) + silence, "claims 67108864 samples, which so few bytes cannot hold"),
    ]:
        with pytest.raises(tw.InvalidArgumentError, match=message):
            ops.decode_flac(bad)
    with pytest.raises(tw.InvalidArgumentError, match="'desired_channels' is 0"):
        ops.decode_flac(file, desired_channels=0)
    with tw.Eager(memory_limit="1M"), pytest.raises(tw.ResourceExhaustedError, match="memory_limit"):
        ops.decode_flac(media.flac_head(8, 8000, 16, 65535) + silence)


def test_a_file_cut_anywhere_is_refused():
    x = whole(60, 2, 8)
    for told in (60, 0):
        file, cuts = media.flac(x, 8000, 8, total=told, size=20), []
        for cut in range(len(file)):
            try:
                cuts.append(len(ops.decode_flac(file[:cut]).audio.numpy()))
            except tw.InvalidArgumentError:
                pass
        assert cuts == []


def test_damaged_sound_is_refused_or_decoded():
    files = [media.flac(whole(90, 2, 16), 8000, 16, md5=NO_MD5), GOLDEN["flac/16 bits|file"].tobytes()]
    refused = 0
    for k in range(600):
        b = bytearray(files[k % 2])
        for _ in range(int(rng.integers(1, 4))):
            b[int(rng.integers(len(b)))] = int(rng.integers(256))
        try:
            ops.decode_flac(bytes(b[:int(rng.integers(1, len(b) + 1))] if k % 3 == 0 else b))
        except tw.Error as e:
            refused += 1
            assert isinstance(e, (tw.InvalidArgumentError, tw.ResourceExhaustedError)), e
    assert refused > 300
