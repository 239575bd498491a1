"""Small models of tokenizers, and slow ways to do by hand what the ops do: written without a look at the kernels, with Python's own tables."""
import struct
import unicodedata

import numpy as np

SPACE = "\u2581"
NORMAL, UNKNOWN, CONTROL, DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, PAIRS, WORD, CHAR = range(1, 5)


# ---- Messages ----

def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    """A field of a message: bytes, a float, or a whole number."""
    if isinstance(value, float):
        return varint(number * 8 + 5) + struct.pack("<f", value)
    if isinstance(value, (bytes, str)):
        data = value.encode() if isinstance(value, str) else value
        return varint(number * 8 + 2) + varint(len(data)) + data
    return varint(number * 8) + varint(int(value))


def sentencepiece(pieces, kind=UNIGRAM, rules=(), charsmap=b"", trainer=()):
    """A ModelProto. pieces: (text, score, type).   rules: (number, value) of the NormalizerSpec.   trainer: likewise of the TrainerSpec."""
    out = b"".join(field(1, field(1, text) + field(2, float(score)) + field(3, type_)) for text, score, type_ in pieces)
    out += field(2, field(3, kind) + b"".join(field(n, v) for n, v in trainer))
    return out + field(3, (field(2, charsmap) if charsmap else b"") + b"".join(field(n, v) for n, v in rules))


def charsmap(rules):
    """The trie of rules {text: text} of single bytes, each a child of the root, and the texts that replace them."""
    texts, units = b"", [0] * 1024
    base = 512
    units[0] = base << 10
    for k, (text, replaced) in enumerate(sorted(rules.items())):
        byte, leaf = text[0], 1 + k
        at = base ^ byte
        units[at] = (at ^ leaf) << 10 | 1 << 8 | byte  # the child of byte 0 is the value
        units[leaf] = len(texts) | 1 << 31
        texts += replaced + b"\0"
    return struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + texts


# ---- By hand ----

def unigram(text, scores, unknown=np.float32(-10)):
    """[(begin, end, known)] of the split of a text, in characters, that has the largest sum in float32; of equal sums, the split whose last
    part is the longest."""
    scores = {text: np.float32(score) for text, score in scores.items()}
    best = [(np.float32(0), [])] + [None] * len(text)
    for end in range(1, len(text) + 1):
        for begin in range(end):
            score = scores.get(text[begin:end])
            if score is None and end - begin > 1 or best[begin] is None:
                continue
            total = best[begin][0] + (min(scores.values()) + unknown if score is None else score)
            if best[end] is None or total > best[end][0]:
                best[end] = (total, [*best[begin][1], (begin, end, score is not None)])
    return best[-1][1]


def pairs(symbols, rank):
    """Merges the first of the best neighbours until there are none. rank(a, b): the smaller the better, None for no merge."""
    symbols = list(symbols)
    while True:
        ranks = [(r, i) for i in range(len(symbols) - 1) if (r := rank(symbols[i], symbols[i + 1])) is not None]
        if not ranks:
            return symbols
        i = min(ranks)[1]
        symbols[i:i + 2] = [symbols[i] + symbols[i + 1]]


def byte_alphabet():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + k) for k, b in enumerate(rest)}


def gpt2_words(text):
    """The words of GPT-2: contractions; letters, digits or other signs with a space before them; spaces."""
    def kind(c):
        first = unicodedata.category(c)[0]
        return "s" if c.isspace() and c not in "\x1c\x1d\x1e\x1f" else first if first in "LN" else "o"

    words, i = [], 0
    while i < len(text):
        contraction = next((s for s in ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d") if text.startswith(s, i)), None)
        if contraction:
            words.append(contraction)
            i += len(contraction)
            continue
        k = i + 1 if text[i] == " " and i + 1 < len(text) and kind(text[i + 1]) != "s" else i
        end = k
        while end < len(text) and kind(text[end]) == kind(text[k]):
            end += 1
        if kind(text[k]) == "s" and end < len(text) and end - i > 1:
            end -= 1  # the last space belongs to the next word
        words.append(text[i:end])
        i = end
    return words


def wordpiece(word, vocab, prefix="##", unknown="[UNK]"):
    pieces, begin = [], 0
    while begin < len(word):
        end = next((e for e in range(len(word), begin, -1) if (prefix if begin else "") + word[begin:e] in vocab), None)
        if end is None:
            return [unknown]
        pieces.append((prefix if begin else "") + word[begin:end])
        begin = end
    return pieces


def bert_words(text, lower=True):
    text = "".join(" " if c in "\t\n\r" or unicodedata.category(c) == "Zs" else c for c in text
                   if c in "\t\n\r" or c not in "\0\ufffd" and unicodedata.category(c)[0] != "C")
    text = "".join(f" {c} " if "\u4e00" <= c <= "\u9fff" else c for c in text)
    if lower:
        text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn").lower()
    for c in set(text):
        if unicodedata.category(c)[0] == "P" or c in "$+<=>^`|~":
            text = text.replace(c, f" {c} ")
    return text.split()
