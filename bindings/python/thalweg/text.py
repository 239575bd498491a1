"""Tokenizers: texts to numbers of tokens and back, with the files of others.

    tokenizer = tw.text.Tokenizer.load("gpt2")         # a folder, or one of its files
    ids = tokenizer.encode("Hello world")              # [15496, 995]
    tokenizer.decode(ids)                              # 'Hello world'
    batches = tw.data.lines("corpus.txt").batch(32).map(tokenizer.dense)

`load` reads tokenizer.json; vocab.txt of BERT; vocab.json with merges.txt of GPT-2; and models of SentencePiece (*.model), as Llama and T5
have them. A part of a file that is not supported is an error that names it. The padding and the truncation that a tokenizer.json asks for
are left to the program: see `dense`.

Texts of Python give lists at once. Values, of a graph or computed, give values (`Tokens`), so a tokenizer works in graphs, in datasets and
in models that are saved: the graph contains the tokenizer.

Threads: any; a tokenizer does not change."""
import hashlib
import json
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from . import scopes
from .eager import current_eager
from .output import Formula, Output

__all__ = ["Tokenizer", "Tokens"]


def __dir__() -> list[str]:
    return __all__

Path = Union[str, "os.PathLike[str]"]
Text = Union[str, bytes]

_NAMES = ("tokenizer.json", "*.model", "vocab.json", "vocab.txt")  # the files of a folder, the best first
_UNUSED = re.compile(r"\[.*\]$")                                     # tokens of BERT that are no text
_SPECIAL = ("<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "<mask>")


class Tokens(NamedTuple):
    """Tokens of several texts as values. Those of text i are ids[splits[i]] to ids[splits[i + 1] - 1].

    ids: int32 vector.   splits: int64 vector, one entry more than texts.   starts, limits: int64 vectors; token k stands for the bytes
    starts[k] to limits[k] - 1 of its text."""
    ids: Output
    splits: Output
    starts: Output
    limits: Output


class Tokenizer:
    """A tokenizer. Make one with `load`, `from_json` or `from_sentencepiece`."""

    def __init__(self, kind: str, model: bytes, special: Sequence[str], options: Mapping[str, bool]):
        """Use the class methods instead."""
        self._kind, self._model, self._options = kind, model, dict(options)
        self._key = f"{kind}-{hashlib.sha256(model).hexdigest()}"
        self._home = current_eager()
        self._size = int(self._op("VocabSize", self._home).item())  # refuses a damaged model
        ids = [] if not special else self._op("StringToId", self._home, np.array([s.encode() for s in special], object)).numpy().tolist()
        self._special = {s: i for s, i in zip(special, ids) if i >= 0 and self.token(i) == s}

    @classmethod
    def load(cls, path: Path, *, lowercase: Optional[bool] = None, add_bos: bool = False, add_eos: bool = False) -> "Tokenizer":
        """Reads a file, or the best one of a folder: tokenizer.json, *.model, vocab.json with merges.txt, vocab.txt.

        lowercase: whether a vocab.txt is that of texts without capitals and accents; None: as the file tokenizer_config.json beside it says,
        else as its tokens are.   add_bos, add_eos: of a *.model: whether `encode` puts the tokens of beginning and end around texts."""
        file = _found(pathlib.Path(path))
        if lowercase is not None and file.suffix != ".txt":
            raise ValueError(f"'lowercase' is for a vocab.txt; '{file}' has its own rules")
        if file.suffix == ".model":
            return cls.from_sentencepiece(file.read_bytes(), add_bos=add_bos, add_eos=add_eos)
        if add_bos or add_eos:
            raise ValueError(f"add_bos and add_eos are for files *.model of SentencePiece, and '{file}' is none")
        if file.suffix == ".txt":
            return cls.from_json(_wordpiece(file, lowercase))
        whole = _json(file)
        is_whole = file.name == "tokenizer.json" or isinstance(whole.get("model"), dict)
        return cls.from_json(whole if is_whole else _pairs(file, whole))

    @classmethod
    def from_json(cls, model: Union[str, bytes, Mapping[str, Any]]) -> "Tokenizer":
        """A tokenizer of the contents of a tokenizer.json, as text or as a dict."""
        if not isinstance(model, (str, bytes, bytearray, Mapping)):
            raise TypeError(f"from_json takes the contents of a tokenizer.json as str, bytes or a dict, not {type(model).__name__}")
        data = json.dumps(model) if isinstance(model, Mapping) else model
        data = data.encode() if isinstance(data, str) else bytes(data)
        try:
            about = model if isinstance(model, Mapping) else json.loads(data)
        except ValueError:
            about = None  # the op says what is wrong
        added = about.get("added_tokens") if isinstance(about, Mapping) else None
        special = [t["content"] for t in added or [] if isinstance(t, Mapping) and t.get("special") and isinstance(t.get("content"), str)]
        return cls("tokenizer", data, special, {})

    @classmethod
    def from_sentencepiece(cls, model: bytes, *, add_bos: bool = False, add_eos: bool = False) -> "Tokenizer":
        """A tokenizer of the contents of a *.model of SentencePiece."""
        if not isinstance(model, (bytes, bytearray, memoryview)):
            raise TypeError(f"from_sentencepiece takes the bytes of a *.model, not {type(model).__name__}; `load` takes the name of a file")
        return cls("sentencepiece", bytes(model), ("<unk>", "<s>", "</s>", "<pad>"), {"add_bos": add_bos, "add_eos": add_eos})

    @property
    def vocab_size(self) -> int:
        """The largest number of a token, plus 1."""
        return self._size

    @property
    def special_tokens(self) -> dict[str, int]:
        """The tokens that stand for no text, such as '[CLS]', with their numbers."""
        return dict(self._special)

    def id(self, token: str) -> Optional[int]:
        """The number of a token, None if there is none of this text."""
        found = int(self._op("StringToId", self._home, np.array([token.encode()], object)).numpy()[0])
        return found if found >= 0 and self.token(found) == token else None

    def token(self, number: int) -> str:
        """The text of a token, as the vocabulary has it. Raises InvalidArgumentError for a number that is that of no token."""
        text: bytes = self._op("IdToString", self._home, np.array([number], np.int32)).numpy()[0]
        return text.decode("utf-8", "replace")

    def encode(self, texts: Any, *, add_special_tokens: bool = True) -> Any:
        """The numbers of the tokens: a list for a text, a list of lists for several, Tokens for a value of strings (a vector, or a scalar,
        which is one text).   add_special_tokens: with the tokens that the file puts around texts, such as [CLS]."""
        if isinstance(texts, Formula):
            return self._tokens(texts._value(), add_special_tokens)
        rows = [ids for ids, _ in self._rows(texts, add_special_tokens)]
        return rows[0] if isinstance(texts, (str, bytes)) else rows

    def encode_with_offsets(self, texts: Any, *, add_special_tokens: bool = True) -> Any:
        """As encode of Python's texts, with pairs (start, limit) beside the numbers: token k stands for the bytes start to limit - 1 of the
        text in UTF-8. The tokens around a text have (0, 0) or an empty range."""
        if isinstance(texts, Formula):
            raise TypeError("encode_with_offsets takes texts; the Tokens that encode returns for a value have starts and limits")
        rows = self._rows(texts, add_special_tokens)
        return rows[0] if isinstance(texts, (str, bytes)) else rows

    def dense(self, texts: Any, length: Optional[int] = None, *, pad: int = 0, add_special_tokens: bool = True) -> tuple[Any, Any]:
        """(ids, lengths) of a vector of texts: ids is int32 [texts, length], with `pad` behind the tokens of short texts; long ones are cut.
        lengths is int32 [texts], the numbers of tokens that ids has.   length: None: that of the longest text."""
        value = texts._value() if isinstance(texts, Formula) else self._home.constant(_array(texts))
        graph = value.graph
        tokens = self._tokens(value, add_special_tokens)
        shape = np.array([-1, -1 if length is None else length], np.int64)
        ids = graph.op("RaggedTensorToTensor", shape, tokens.ids, np.int32(pad), [tokens.splits], row_partition_types=["ROW_SPLITS"])
        counts = graph.op("Cast", tokens.splits[1:] - tokens.splits[:-1], DstT="int32")
        return ids, counts if length is None else graph.op("Minimum", counts, np.int32(length))

    def decode(self, ids: Any, splits: Any = None, *, skip_special_tokens: bool = True) -> Any:
        """The text of tokens: a str for a list of numbers, a list of them for a list of lists, a value of strings for Tokens, or for a value
        of numbers and its splits (None: one text).   skip_special_tokens: without tokens such as [CLS]."""
        if isinstance(ids, Tokens):
            ids, splits = ids.ids, ids.splits
        if isinstance(ids, Formula):
            value = ids._value()
            if splits is None:
                splits = value.graph.op("Pack", [np.int64(0), value.graph.op("Size", value, out_type="int64")])
            return self._texts(value.graph, value, splits, skip_special_tokens)
        rows = [_numbers(row) for row in (ids if _is_nested(ids) else [ids])]
        flat = np.concatenate([*rows, np.zeros(0, np.int32)]).astype(np.int32)
        found = self._texts(self._home, flat, np.cumsum([0, *map(len, rows)], dtype=np.int64), skip_special_tokens)
        texts = [text.decode("utf-8", "replace") for text in found.numpy().tolist()]
        return texts if _is_nested(ids) else texts[0]

    def __repr__(self) -> str:
        return f"<Tokenizer of {self._size} tokens>"

    def __reduce__(self) -> Any:  # pickled and copied by its contents
        return Tokenizer, (self._kind, self._model, tuple(self._special), self._options)

    # The ops of a kind have one name but for the beginning and the end.
    def _op(self, what: str, graph: Any, *inputs: Any, **attrs: Any) -> Any:
        name = f"Sentencepiece{what}Op" if self._kind == "sentencepiece" else f"TextTokenizer{what}"
        return graph.op(name, self._handle(graph), *inputs, **attrs)

    def _handle(self, graph: Any) -> Output:
        graph = graph if graph.computes else scopes.working(graph)  # a body of a function has a handle of its own
        made = graph.__dict__.setdefault("_tokenizers", {})  # a graph keeps its handles, so no tokenizer keeps a graph alive
        if self._key not in made:
            op = "SentencepieceOp" if self._kind == "sentencepiece" else "TextTokenizer"
            made[self._key] = graph.op(op, model=self._model, shared_name=self._key)
        handle: Output = made[self._key]
        return handle

    def _tokens(self, texts: Output, special: bool) -> Tokens:
        graph = texts.graph
        if texts.shape is not None and len(texts.shape) == 0:
            texts = graph.op("Reshape", texts, np.array([1], np.int32))
        if self._kind == "sentencepiece":
            bos, eos = (np.bool_(special and self._options[name]) for name in ("add_bos", "add_eos"))
            return Tokens(*self._op("TokenizeWithOffsets", graph, texts, np.int32(0), np.float32(1), bos, eos, np.bool_(False)))
        return Tokens(*self._op("Encode", graph, texts, add_special_tokens=special))

    def _texts(self, graph: Any, ids: Any, splits: Any, skip: bool) -> Any:
        if self._kind == "sentencepiece":  # pieces that control have no text
            return self._op("Detokenize", graph, ids, splits, *[np.bool_(False)] * 3)
        return self._op("Decode", graph, ids, splits, skip_special_tokens=skip)

    def _rows(self, texts: Any, special: bool) -> list[tuple[list[int], list[tuple[int, int]]]]:
        one = isinstance(texts, (str, bytes))
        tokens = self._tokens(self._home.constant(_array([texts] if one else texts)), special)
        ids, splits, starts, limits = (value.numpy().tolist() for value in tokens)
        return [(ids[a:b], list(zip(starts[a:b], limits[a:b]))) for a, b in zip(splits[:-1], splits[1:])]


def _array(texts: Iterable[Text]) -> Any:
    rows = list(texts)
    for t in rows:
        if not isinstance(t, (str, bytes)):
            raise TypeError(f"{t!r} is no text; a tokenizer takes a str, bytes, a list of them, or a value of strings")
    array = np.empty(len(rows), object)
    array[:] = [t.encode() if isinstance(t, str) else t for t in rows]
    return array


def _is_nested(ids: Any) -> bool:
    if not isinstance(ids, (Sequence, np.ndarray)) or isinstance(ids, (str, bytes)):
        raise TypeError(f"{ids!r} is no list of numbers; decode takes a list of numbers of tokens, a list of such lists, Tokens, or a value")
    return len(ids) > 0 and isinstance(ids[0], (list, tuple, np.ndarray))


def _numbers(row: Any) -> Any:
    numbers = np.asarray(row)
    if numbers.size == 0:
        return np.zeros(0, np.int32)
    if numbers.dtype.kind not in "iu" or numbers.ndim > 1:
        raise TypeError(f"{row!r} is no list of numbers of tokens, which are integers")
    found = numbers.astype(np.int32).reshape(-1)  # the op refuses negative numbers
    wrong = found != numbers.reshape(-1)
    if wrong.any():
        raise ValueError(f"{numbers.reshape(-1)[wrong][0]} is the number of no token; numbers are below 2^31")
    return found


# ---- Files ----


def _found(path: pathlib.Path) -> pathlib.Path:
    """Returns the file itself, or the best one of a folder."""
    if not path.is_dir():
        if not path.exists():
            raise FileNotFoundError(f"there is no file or folder '{path}'")
        return path
    for name in _NAMES:
        files = sorted(path.glob(name))
        if len(files) > 1:
            raise ValueError(f"'{path}' has {len(files)} files {name}: {', '.join(f.name for f in files)}; name one of them")
        if files:
            return files[0]
    raise FileNotFoundError(f"'{path}' has no {', no '.join(_NAMES)}")


def _text(file: pathlib.Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"'{file}' is no text in UTF-8: {error.reason} at byte {error.start}; files are {', '.join(_NAMES)}") from None


def _json(file: pathlib.Path) -> dict[str, Any]:
    try:
        whole = json.loads(_text(file))
    except json.JSONDecodeError as error:
        raise ValueError(f"'{file}' is no JSON: {error}; files are {', '.join(_NAMES)}") from None
    if not isinstance(whole, dict):
        raise ValueError(f"'{file}' is no object of JSON, but a {type(whole).__name__}")
    return whole


def _pairs(file: pathlib.Path, vocab: dict[str, Any]) -> dict[str, Any]:
    """Returns the tokenizer.json of GPT-2's files."""
    wrong = next((t for t, n in vocab.items() if not isinstance(n, int)), None)
    if wrong is not None or not vocab:
        what = "it is empty" if wrong is None else f"the value of '{wrong}' is no number of a token"
        raise ValueError(f"'{file}' is neither a tokenizer.json, which has a 'model', nor a vocab.json: {what}")
    other = file.with_name("merges.txt")
    if not other.exists():
        raise FileNotFoundError(f"'{file}' is a vocabulary of byte pairs, but there is no merges.txt beside it")
    lines = _text(other).split("\n")
    merges = [line.rstrip("\r") for line in lines[lines[0].startswith("#version"):]]
    special = [s for s in _SPECIAL if s in vocab]
    return {
        "added_tokens": [{"id": vocab[s], "content": s, "special": True, "normalized": False} for s in special],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": [m for m in merges if m.strip()]},
    }


def _wordpiece(file: pathlib.Path, lowercase: Optional[bool]) -> dict[str, Any]:
    """Returns the tokenizer.json of BERT's vocabulary."""
    vocab: dict[str, int] = {}
    for number, line in enumerate(_text(file).split("\n")):
        token = line.rstrip("\r")
        if not token:
            continue
        if token in vocab:
            raise ValueError(f"'{file}' has the token '{token}' in line {vocab[token] + 1} and in line {number + 1}")
        vocab[token] = number
    missing = [t for t in ("[UNK]", "[CLS]", "[SEP]") if t not in vocab]
    if missing:
        raise ValueError(f"'{file}' is no vocabulary of BERT: it has no {', no '.join(missing)}")
    if lowercase is None:
        config = file.with_name("tokenizer_config.json")
        told = _json(config).get("do_lower_case") if config.exists() else None
        lowercase = bool(told) if told is not None else not any(t != t.lower() and not _UNUSED.match(t) for t in vocab)
    special = [t for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if t in vocab]
    around = [{"SpecialToken": {"id": "[CLS]"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "[SEP]"}}]
    return {
        "added_tokens": [{"id": vocab[t], "content": t, "special": True, "normalized": False} for t in special],
        "normalizer": {"type": "BertNormalizer", "lowercase": lowercase},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": around,
                           "special_tokens": {t: {"ids": [vocab[t]]} for t in ("[CLS]", "[SEP]")}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocab},
    }
