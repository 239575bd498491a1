"""DecodeCSV against Python's csv, DecodeWav and EncodeWav against Python's wave."""
import csv
import io
import struct
import wave

import numpy as np
import pytest

import thalweg as tw

ops = tw.ops
rng = np.random.default_rng(8)


def columns(records, defaults, **attrs):
    return [v.numpy() for v in ops.decode_csv(tw.constant(np.array(records, object)), defaults, **attrs)]


@pytest.mark.parametrize("delim", [",", ";", "\t"])
def test_fields_like_pythons_csv(delim):
    texts = ["", "a", "b c", "d" + delim + "e", 'say "f"', '"', "g h", "i'j", "  k "]
    rows = [[texts[int(rng.integers(len(texts)))], int(rng.integers(-2 ** 31, 2 ** 31)), int(rng.integers(-2 ** 63, 2 ** 63 - 1)), float(rng.normal() * 1e30),
             float(rng.normal())] for _ in range(200)]
    lines = []
    for row in rows:
        out = io.StringIO()
        csv.writer(out, delimiter=delim, lineterminator="", quoting=csv.QUOTE_NONNUMERIC if len(lines) % 2 else csv.QUOTE_MINIMAL).writerow(row)
        lines.append(out.getvalue().encode() + [b"", b"\n", b"\r\n"][len(lines) % 3])
    got = columns(lines, [tw.constant([b"none"], "string"), tw.constant([0], "int32"), tw.constant([0], "int64"), tw.constant([0.0], "float64"),
                          tw.constant([0.0], "float32")], field_delim=delim)
    want = list(zip(*rows))
    assert got[0].tolist() == [t.encode() or b"none" for t in want[0]]
    assert got[1].tolist() == list(want[1]) and got[2].tolist() == list(want[2]) and got[3].tolist() == list(want[3])
    assert np.array_equal(got[4], np.array(want[4], np.float32))


def test_defaults_columns_and_shapes():
    one, two = columns([[b"1,NA"], [b",4"]], [[9], [8]], na_value="NA")
    assert one.tolist() == [[1], [9]] and two.tolist() == [[8], [4]]
    assert columns([b"1,x,3,y"], [[0], [0]], select_cols=[0, 2])[1].tolist() == [3]
    assert columns([b'"a,"b'], [tw.constant([""], "string")] * 2, use_quote_delim=False)[0].tolist() == [b'"a']
    assert columns([b" +5 , -6"], [[0], [0]])[0].tolist() == [5]
    assert np.isinf(columns([b"inf"], [[0.0]])[0][0]) and np.isnan(columns([b"nan"], [[0.0]])[0][0])


@pytest.mark.parametrize("records,defaults,attrs,message", [
    ([b"1,2", b"1"], [[0], [0]], {}, "record 1 has 1 fields; there are 2 record_defaults"),
    ([b"1,x"], [[0], [0]], {}, "field 1 of record 0 is 'x', which is no int32"),
    ([b"3000000000"], [[0]], {}, "is '3000000000', which is no int32"),
    ([b'"a'], [tw.constant([""], "string")], {}, "a quote that does not end"), ([b'"a"b'], [tw.constant([""], "string")], {}, "goes on behind its quote"),
    ([b'a"b'], [tw.constant([""], "string")], {}, "does not begin with a quote"),
    ([b""], [tw.constant([], "int32")], {}, "field 0 of record 0 is missing and has no default"),
    ([b"1"], [[0]], dict(field_delim="::"), "'field_delim' is '::'"), ([b"1"], [[0]], dict(select_cols=[3]), "'select_cols' asks for number 3"),
    ([b"1,2"], [[0], [0]], dict(select_cols=[1, 0]), "growing numbers"),
])
def test_csv_errors_name_record_and_field(records, defaults, attrs, message):
    with pytest.raises(tw.InvalidArgumentError, match=message):
        columns(records, defaults, **attrs)


def wav(samples, rate):
    out = io.BytesIO()
    with wave.open(out, "wb") as w:
        w.setnchannels(samples.shape[1])
        w.setsampwidth(2)
        w.setframerate(rate)
        w.writeframes(samples.astype("<i2").tobytes())
    return out.getvalue()


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_sound_like_pythons_wave(channels):
    x = rng.integers(-2 ** 15, 2 ** 15, (101, channels))
    file = wav(x, 22050)
    audio, rate = ops.decode_wav(file)
    assert np.array_equal(audio.numpy(), (x / 32768).astype(np.float32)) and rate.item() == 22050
    assert ops.encode_wav(audio, 22050).item() == file
    more = ops.decode_wav(file, desired_channels=channels + 1, desired_samples=120).audio.numpy()
    assert np.array_equal(more[:101], np.concatenate([x, x[:, -1:]], 1) / np.float32(32768)) and not more[101:].any()
    fewer = ops.decode_wav(file, desired_channels=1, desired_samples=7).audio.numpy()
    assert np.array_equal(fewer, x[:7, :1] / np.float32(32768))
    extra = file[:12] + b"LIST" + struct.pack("<I", 3) + b"abc\0" + file[12:]
    assert np.array_equal(ops.decode_wav(extra).audio.numpy(), audio.numpy())


def riff(form, data):
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def extensible(form, bits, channels=1):
    """A chunk of format whose real format is at the begin of a GUID."""
    size = bits // 8 * channels
    return (struct.pack("<HHIIHHHHI", 0xfffe, channels, 8000, 8000 * size, size, bits, 22, bits, 0)
            + struct.pack("<H", form) + bytes.fromhex("000000001000800000aa00389b71"))


@pytest.mark.parametrize("bits", [8, 24, 32])
@pytest.mark.parametrize("channels", [1, 3])
def test_whole_numbers_of_other_sizes(bits, channels):
    x = rng.integers(-2 ** (bits - 1), 2 ** (bits - 1), (50, channels))
    x[:2] = [[-2 ** (bits - 1)], [2 ** (bits - 1) - 1]]
    stored = b"".join(int(v + 128 if bits == 8 else v).to_bytes(bits // 8, "little", signed=bits > 8) for v in x.reshape(-1))
    out = io.BytesIO()
    with wave.open(out, "wb") as w:
        w.setnchannels(channels)
        w.setsampwidth(bits // 8)
        w.setframerate(8000)
        w.writeframes(stored)
    want = (x / 2.0 ** (bits - 1)).astype(np.float32)
    for file in (out.getvalue(), riff(extensible(1, bits, channels), stored)):
        assert np.array_equal(ops.decode_wav(file).audio.numpy(), want)
    cut = ops.decode_wav(file, desired_channels=channels + 1, desired_samples=60).audio.numpy()
    assert np.array_equal(cut[:50], want[:, [*range(channels), channels - 1]]) and not cut[50:].any()


@pytest.mark.parametrize("kind", ["<f4", "<f8"])
def test_floats_stay_as_they_are(kind):
    x = np.array([[0.1, -2], [np.inf, 1e-30], [3, np.nan]], kind)
    plain = struct.pack("<HHIIHH", 3, 2, 8000, 16000 * x.itemsize, 2 * x.itemsize, 8 * x.itemsize)
    for form in (plain, plain + b"\0\0", extensible(3, 8 * x.itemsize, 2)):
        assert np.array_equal(ops.decode_wav(riff(form, x.tobytes())).audio.numpy(), x.astype(np.float32), equal_nan=True)


def test_sound_errors():
    file = wav(rng.integers(-9, 9, (10, 2)), 8000)
    twelve, narrow = bytearray(file), bytearray(file)
    twelve[34], narrow[34] = 12, 8
    for bad, message in ((b"", "no head of RIFF"), (file[:40], "no chunk 'data'"), (file[:-1], "chunk 'data' at byte 36 has 40 bytes, of which 39"),
                         (bytes(twelve), "format 1 of 12 bits; only PCM"), (bytes(narrow), "samples have 4 bytes, but 2 channels of 8 bits need 2"),
                         (riff(struct.pack("<HHIIHH", 3, 1, 8000, 16000, 2, 16), b""), "format 3 of 16 bits"),
                         (riff(extensible(1, 16)[:24], b""), "'fmt ' has 24 bytes; an extensible one needs 40"),
                         (riff(extensible(6, 16), b""), "format 6 of 16 bits"), (riff(extensible(1, 16)[:-1] + b"?", b""), "format 65534 of 16 bits"),
                         (file[:12] + file[36:], "come before the chunk 'fmt '")):
        with pytest.raises(tw.InvalidArgumentError, match=message):
            ops.decode_wav(bad)
    for audio, rate, message in ((np.zeros(3, np.float32), 1, "samples, channels"), (np.zeros((1, 1), np.float32), 0, "at least 1")):
        with pytest.raises(tw.InvalidArgumentError, match=message):
            ops.encode_wav(audio, np.int32(rate))
    with pytest.raises(tw.InvalidArgumentError, match="'desired_channels' is 0"):
        ops.decode_wav(file, desired_channels=0)
    loud = ops.decode_wav(ops.encode_wav(np.array([[2], [-3], [np.nan]], np.float32), 8000)).audio.numpy()
    assert loud.reshape(-1).tolist() == [32767 / 32768, -1, 0]


def test_damaged_sound_is_refused_or_decoded():
    files = [wav(rng.integers(-9, 9, (20, 2)), 8000), riff(extensible(1, 24, 3), bytes(90)), riff(extensible(3, 64), bytes(80))]
    for k in range(600):
        b = bytearray(files[k % 3])
        for _ in range(int(rng.integers(1, 4))):
            b[int(rng.integers(len(b)))] = int(rng.integers(256))
        try:
            ops.decode_wav(bytes(b[:int(rng.integers(1, len(b) + 1))]))
        except tw.InvalidArgumentError:
            pass


def test_a_quoted_field_holds_ends_of_lines():
    assert columns([b'"g\nh\r\n",2\r\n'], [tw.constant([""], "string"), [0]])[0].tolist() == [b"g\nh\r\n"]
