"""What the networks of texts share: texts as numbers."""
import collections
import pathlib
import re

import numpy as np

import thalweg as tw

UNKNOWN, END = "?", "."  # words for rare words and for the ends of sentences


class Letters:
    """The characters of a text, numbered in their order."""

    def __init__(self, text):
        self.letters = sorted(set(text))
        self.number = {letter: i for i, letter in enumerate(self.letters)}

    def __len__(self):
        return len(self.letters)

    def encode(self, text):
        return np.array([self.number[letter] for letter in text], np.int32)

    def decode(self, numbers):
        return "".join(self.letters[n] for n in numbers)


def characters(path, limit=None):
    """Returns the Letters of a file, and its characters as numbers. limit: only so many characters."""
    text = pathlib.Path(path).read_text(errors="replace")[:limit]
    letters = Letters(text)
    return letters, letters.encode(text)


def pieces(numbers, length):
    """A data set of pieces of a text: `length` tokens and, one further, those that follow them."""
    return tw.data.arrays(numbers).batch(length + 1, drop_remainder=True).map(lambda piece: (piece[:-1], piece[1:]))


def words_of(text):
    """The words of a text in lower case, with END behind sentences."""
    return re.findall(r"[a-z]+(?:'[a-z]+)?|[.](?=\s)", text.lower())


def documents(folders=("/usr/share/common-licenses", "/usr/share/doc"), limit=50_000_000):
    """The texts that Debian's packages install: licences, copyright notices, READMEs and news, up to `limit` bytes. Packages
    share many of them; each text is there once. Compressed ones are left out."""
    found, total = {}, 0
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file() and not path.is_symlink() and path.suffix.lower() in ("", ".txt", ".md", ".rst"):
                text = path.read_text(errors="ignore")
                total += len(text) * (text not in found)
                if total > limit:
                    return list(found)
                found.setdefault(text)
    return list(found)


class Words:
    """The most frequent words of texts, numbered by falling frequency; UNKNOWN stands for the others."""

    def __init__(self, texts, rows):
        counts = collections.Counter(word for text in texts for word in text)
        self.words = [UNKNOWN, *(word for word, _ in counts.most_common(rows - 1))]
        self.number = {word: i for i, word in enumerate(self.words)}

    def __len__(self):
        return len(self.words)

    def encode(self, words):
        return np.array([self.number.get(word, 0) for word in words], np.int32)

    def decode(self, numbers):
        return " ".join(self.words[n] for n in numbers)


def streams(numbers, count):
    """`count` parts of a text of one length, as columns, and the same one token later: [length, count] each."""
    length = (len(numbers) - 1) // count
    return tuple(np.ascontiguousarray(part[:length * count].reshape(count, length).T) for part in (numbers[:-1], numbers[1:]))


def drawn(images):
    """Images [rows, 8, 8] from 0 to 1 side by side as text."""
    return "\n".join("  ".join("".join(" .:*#"[min(int(5 * p), 4)] * 2 for p in image[row]) for image in images) for row in range(8))
