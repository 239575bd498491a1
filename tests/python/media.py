"""Writers of GIF and FLAC files for tests, from the formats' own descriptions (GIF 89a; RFC 9639)."""
import dataclasses
import hashlib
import struct
from typing import Optional

import numpy as np

# ---- GIF ----


@dataclasses.dataclass
class Frame:
    pixels: np.ndarray  # numbers of colours, [height, width]
    left: int = 0
    top: int = 0
    palette: Optional[np.ndarray] = None  # its own colours, [2^n, 3]
    transparent: Optional[int] = None
    interlaced: bool = False
    disposal: int = 0
    described: bool = False  # has a graphics control block even if nothing is transparent


def blocks(data):
    return b"".join(bytes([len(data[k:k + 255])]) + data[k:k + 255] for k in range(0, len(data), 255)) + b"\0"


def lzw(values, size):
    """Returns the codes of the values. size: of the smallest code, in bits."""
    clear, out, count = 1 << size, 0, 0
    codes, width, table, word = [(clear, size + 1)], size + 1, {}, ()

    def restart():
        return {(v,): v for v in range(clear)}

    table = restart()
    for v in values:
        if word + (v,) in table:
            word += (v,)
            continue
        codes.append((table[word], width))
        following = len(table) + 2  # clear and end have codes, too
        table[word + (v,)] = following
        if following == 1 << width:
            width += 1
        if following == 4095:
            codes.append((clear, width))
            table, width = restart(), size + 1
        word = (v,)
    codes += [(table[word], width)] if word else []
    if word and len(table) + 2 == 1 << width and width < 12:
        width += 1
    codes.append((clear + 1, width))
    for code, bits in codes:
        out |= code << count
        count += bits
    return out.to_bytes((count + 7) // 8, "little")


def flags_of(palette):
    return 0x80 | (int(len(palette)).bit_length() - 2) if palette is not None else 0


def gif(frames, palette=None, screen=None, end=b";"):
    height, width = screen or frames[0].pixels.shape
    out = b"GIF89a" + struct.pack("<HHBBB", width, height, flags_of(palette), 0, 0)
    out += b"" if palette is None else palette.astype(np.uint8).tobytes()
    for f in frames:
        if f.transparent is not None or f.disposal or f.described:
            out += b"!\xf9\4" + struct.pack("<BHBB", f.disposal << 2 | (f.transparent is not None), 5, f.transparent or 0, 0)
        h, w = f.pixels.shape
        out += b"," + struct.pack("<HHHHB", f.left, f.top, w, h, flags_of(f.palette) | 0x40 * f.interlaced)
        out += b"" if f.palette is None else f.palette.astype(np.uint8).tobytes()
        order = [*range(0, h, 8), *range(4, h, 8), *range(2, h, 4), *range(1, h, 2)] if f.interlaced else range(h)
        size = max(2, int(f.pixels.max(initial=0)).bit_length())
        out += bytes([size]) + blocks(lzw(f.pixels[list(order)].reshape(-1).tolist(), size))
    return out + end


def canvases(frames, palette=None):
    """Returns the pixels of the frames: each is drawn onto those before, on a canvas of the largest frame."""
    height, width = (max(f.pixels.shape[k] for f in frames) for k in (0, 1))
    canvas, out = np.zeros((height, width, 3), np.uint8), []
    for f in frames:
        colours = np.asarray(palette if f.palette is None else f.palette, np.uint8)
        for (y, x), index in np.ndenumerate(f.pixels):
            if index != f.transparent and y + f.top < height and x + f.left < width:
                canvas[y + f.top, x + f.left] = colours[index]
        out.append(canvas.copy())
    return np.stack(out)


# ---- FLAC ----


def crc(data, polynomial, bits):
    rest = 0
    for byte in data:
        rest ^= byte << bits - 8
        for _ in range(8):
            rest = rest << 1 ^ (polynomial if rest >> bits - 1 else 0)
            rest &= (1 << bits) - 1
    return rest


def flac_head(channels, rate, bits, total, md5=bytes(16)):
    packed = rate << 44 | channels - 1 << 41 | bits - 1 << 36 | total
    return b"fLaC" + struct.pack(">I", 0x80 << 24 | 34) + struct.pack(">HH", 16, 65535) + bytes(6) + struct.pack(">Q", packed) + md5


def flac_frame(number, samples, bits, size=None):
    """A frame of verbatim samples [n, channels] or, if size is given, of that many samples equal to the first."""
    n, channels = size or len(samples), samples.shape[1]
    code = {8: 1, 16: 4, 24: 6, 32: 7}[bits]
    head = struct.pack(">HBB", 0xfff8, 0x70, channels - 1 << 4 | code << 1) + chr(number).encode() + struct.pack(">H", n - 1)
    out = head + bytes([crc(head, 7, 8)])
    for channel in samples.T:
        stored = channel[:1] if size else channel
        out += (b"\0" if size else b"\2") + b"".join(int(v).to_bytes(bits // 8, "big", signed=True) for v in stored)
    return out + struct.pack(">H", crc(out, 0x8005, 16))


def flac(samples, rate, bits, total=None, md5=None, size=64):
    """A file of whole numbers [n, channels]. total, md5: what the head says instead of the truth."""
    if md5 is None:
        md5 = hashlib.md5(b"".join(int(v).to_bytes(bits // 8, "little", signed=True) for v in samples.reshape(-1))).digest()
    frames = [flac_frame(k, samples[at:at + size], bits) for k, at in enumerate(range(0, len(samples), size))]
    return flac_head(samples.shape[1], rate, bits, len(samples) if total is None else total, md5) + b"".join(frames)
