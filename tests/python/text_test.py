"""Tokenizers and normal forms: tw.text and its ops, against the slow ways of text_models.py and Python's own tables. The ops: CaseFoldUTF8,
NormalizeUTF8, RegexSplitWithOffsets, WordpieceTokenizeWithOffsets; SentencepieceOp, SentencepieceTokenizeOp,
SentencepieceTokenizeWithOffsetsOp, SentencepieceDetokenizeOp, SentencepieceVocabSizeOp, SentencepieceIdToStringOp,
SentencepieceStringToIdOp; TextTokenizer, TextTokenizerEncode, TextTokenizerDecode, TextTokenizerVocabSize, TextTokenizerIdToString,
TextTokenizerStringToId."""
import json
import pickle
import time
import unicodedata

import numpy as np
import pytest

import thalweg as tw
from text_models import (BYTE, CHAR, CONTROL, DEFINED, NORMAL, PAIRS, SPACE, UNIGRAM, UNKNOWN, UNUSED, WORD, bert_words, byte_alphabet, charsmap,
                         gpt2_words, pairs, sentencepiece, unigram, wordpiece)

ops = tw.ops
RNG = np.random.default_rng(11)
SIGNS = "aabbbcdeé ß  .,'s0١ł中文\u0301\u00ad\U0001f600\n\tA"


def texts(n, most=12, signs=SIGNS):
    return ["".join(RNG.choice(list(signs), RNG.integers(0, most))) for _ in range(n)]


def array(values):
    out = np.empty(len(values), object)
    out[:] = [v.encode() if isinstance(v, str) else v for v in values]
    return out


# ---- Normal forms ----

@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_normal_forms_are_those_of_unicode(form):
    codes = RNG.integers(0x80, 0x30000, 9000).tolist()  # most are assigned
    signs = [c for c in map(chr, codes) if unicodedata.category(c) not in ("Cs", "Cn")]
    drawn = ["".join(signs[i:i + 12]) for i in range(0, len(signs), 12)]
    drawn += [unicodedata.normalize("NFD", t) for t in drawn[:100]] + ["", "plain", "q\u0307\u0323", "\u1100\u1161\u11a8", "각", "\u0344", "\u212b"]
    drawn += ["a" + "".join(RNG.choice(list("\u0301\u0327\u0323\u05b4\u0e38"), 6)) for _ in range(50)]
    got = ops.normalize_utf8(array(drawn), normalization_form=form.lower()).numpy()
    wrong = [(t, g) for t, g in zip(drawn, got) if g.decode() != unicodedata.normalize(form, t)]
    assert not wrong[:3]


def test_case_folding():
    cases = {"The Quick": "the quick", "Straße": "strasse", "\u0130": "i\u0307", "\ufb01": "fi", "ΜΆΪΟΣ": "μάϊοσ", "a\u00adb\u200b": "ab", "Å": "å", "가": "가"}
    wanted = [unicodedata.normalize("NFC", t) for t in cases.values()]
    assert [t.decode() for t in ops.case_fold_utf8(array(cases)).numpy()] == wanted
    assert ops.case_fold_utf8(array([b"A\xff\xe2\x82B"])).numpy()[0].decode() == "a\ufffd\ufffdb"
    with pytest.raises(tw.InvalidArgumentError, match="NormalizeUTF8.*'normalization_form' is 'NFX'; it must be"):
        ops.normalize_utf8(array(["a"]), normalization_form="NFX")


# ---- RegexSplitWithOffsets ----

def test_splits_at_patterns():
    tokens, begins, ends, splits = ops.regex_split_with_offsets(array(["hello  there", "", " a b "]), r"(\s)", "")
    assert tokens.numpy().tolist() == [b"hello", b"there", b"a", b"b"] and splits.numpy().tolist() == [0, 2, 2, 4]
    assert begins.numpy().tolist() == [0, 7, 1, 3] and ends.numpy().tolist() == [5, 12, 2, 4]
    kept = ops.regex_split_with_offsets(array(["a, b"]), r"(\s|\p{P})", r"(\p{P})")
    assert kept.tokens.numpy().tolist() == [b"a", b",", b"b"] and kept.begin_offsets.numpy().tolist() == [0, 1, 3]
    assert ops.regex_split_with_offsets(array(["aXbXX"]), "X", "").tokens.numpy().tolist() == [b"a", b"b"]
    assert ops.regex_split_with_offsets(array(["ab"]), "(x*)", "").tokens.numpy().tolist() == [b"ab"]  # matches without bytes
    for pattern, keep, what in (("(", "", "delim_regex_pattern"), ("(a)", "[", "keep_delim_regex_pattern")):
        with pytest.raises(tw.InvalidArgumentError, match=f"RegexSplitWithOffsets.*'{what}' is .*no regular expression"):
            ops.regex_split_with_offsets(array(["a"]), pattern, keep)


# ---- WordpieceTokenizeWithOffsets ----

OPTIONS = dict(suffix_indicator="##", max_bytes_per_word=100, use_unknown_token=True, unknown_token="[UNK]")


def vocabulary(graph, run, words):
    table = graph.op("HashTableV2", key_dtype="string", value_dtype="int64", shared_name=f"of {len(words)} {words[0]}")
    run(graph.op("InitializeTableV2", table, array(words), np.arange(len(words), dtype=np.int64)))
    return table


def test_pieces_of_words(graph, run):
    vocab = ["don", "'", "##'", "t", "##t", "tread", "##ness", "é", "##é"]
    table = vocabulary(graph, run, vocab)
    words = ["don't", "treadness", "xyz", "", "tread" * 30, "éé"]
    found = run(graph.op("WordpieceTokenizeWithOffsets", array(words), table, **OPTIONS))
    assert found.output_values.tolist() == [t.encode() for t in "don ##' ##t tread ##ness [UNK] [UNK] é ##é".split()]
    assert found.output_row_lengths.tolist() == [3, 2, 1, 0, 1, 2]
    assert found.start_values.tolist() == [0, 3, 4, 0, 5, 0, 0, 0, 2] and found.limit_values.tolist() == [3, 4, 5, 5, 9, 3, 5, 2, 4]
    plain = run(graph.op("WordpieceTokenizeWithOffsets", array(words), table, **OPTIONS | dict(use_unknown_token=False),
                         output_row_partition_type="row_splits", max_chars_per_token=3))
    assert plain.output_values.tolist()[3:5] == [b"treadness", b"xyz"] and plain.output_row_lengths.tolist() == [0, 3, 4, 5, 5, 6, 8]
    split = run(graph.op("WordpieceTokenizeWithOffsets", array(["xdon", "tx"]), table, **OPTIONS, split_unknown_characters=True))
    assert split.output_values.tolist() == [t.encode() for t in "[UNK] ##[UNK] ##[UNK] ##[UNK] t ##[UNK]".split()]


def test_pieces_of_words_by_hand(graph, run):
    vocab = sorted({"".join(RNG.choice(list("abc"), RNG.integers(1, 4))) for _ in range(20)} | {"a", "b"})
    vocab += [f"##{v}" for v in vocab[::2]]
    words = texts(60, signs="aabcé")
    found = run(graph.op("WordpieceTokenizeWithOffsets", array(words), vocabulary(graph, run, vocab), **OPTIONS))
    assert [t.decode() for t in found.output_values] == [p for w in words for p in wordpiece(w, set(vocab))]


def test_vocabularies_that_are_none(graph, run):
    numbers = graph.op("MutableHashTableV2", key_dtype="int64", value_dtype="int64", shared_name="numbers of text_test")
    empty = graph.op("HashTableV2", key_dtype="string", value_dtype="int64", shared_name="empty of text_test")
    with pytest.raises(tw.InvalidArgumentError, match="WordpieceTokenizeWithOffsets.*keys of 'vocab_lookup_table' are int64"):
        run(graph.op("WordpieceTokenizeWithOffsets", array(["a"]), numbers, **OPTIONS))
    with pytest.raises(tw.FailedPreconditionError, match="WordpieceTokenizeWithOffsets.*not initialised"):
        run(graph.op("WordpieceTokenizeWithOffsets", array(["a"]), empty, **OPTIONS))
    with pytest.raises(tw.InvalidArgumentError, match=r"'input_values'\[1\] has 2000 bytes; words may have at most 1024"):
        table = vocabulary(graph, run, ["of long words"])
        run(graph.op("WordpieceTokenizeWithOffsets", array(["a", "b" * 2000]), table, **OPTIONS | dict(max_bytes_per_word=5000)))


# ---- SentencePiece ----

CONTROLS = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL)]


def words_of(pieces):
    return {text: score for text, score, kind in pieces if kind == NORMAL}


def drawn_pieces(signs="abc" + SPACE, n=30):
    found = {"".join(RNG.choice(list(signs), RNG.integers(1, 5))) for _ in range(n)}
    return CONTROLS + [(t, -float(np.float32(RNG.uniform(1, 9))), NORMAL) for t in sorted(found)]


def squeezed(text):
    parts = [p for p in text.split(" ") if p]
    return SPACE + SPACE.join(parts) if parts else ""


def fused(parts, text, ids):
    """Numbers of parts; neighbours that are unknown are one."""
    out = []
    for begin, end, known in parts:
        if known or not out or out[-1] != 0:
            out.append(ids[text[begin:end]] if known else 0)
    return out


def test_unigrams_by_hand():
    for _ in range(6):
        pieces = drawn_pieces()
        ids, scores = {p[0]: i for i, p in enumerate(pieces)}, words_of(pieces)
        model = tw.text.Tokenizer.from_sentencepiece(sentencepiece(pieces))
        for text in texts(40, signs="aabbc  x"):
            assert model.encode(text) == fused(unigram(squeezed(text), scores), squeezed(text), ids), text


def test_byte_pairs_of_sentencepiece_by_hand():
    for _ in range(6):
        pieces = drawn_pieces(n=40)
        pieces = [(t, -float(k), kind) for k, (t, _, kind) in enumerate(pieces)]
        ids = {p[0]: i for i, p in enumerate(pieces)}
        model = tw.text.Tokenizer.from_sentencepiece(sentencepiece(pieces, PAIRS))
        for text in texts(40, signs="aabbc  x"):
            parts = pairs(squeezed(text), lambda a, b: ids.get(a + b))
            wanted = []
            for part in parts:
                if part in ids or not wanted or wanted[-1] != 0:
                    wanted.append(ids.get(part, 0))
            assert model.encode(text) == wanted, text


def test_words_and_characters():
    pieces = CONTROLS + [(SPACE + "ab", 0, NORMAL), ("a", 0, NORMAL), ("b", 0, NORMAL), (SPACE, 0, NORMAL)]
    assert tw.text.Tokenizer.from_sentencepiece(sentencepiece(pieces, WORD)).encode("ab x ab") == [3, 0, 3]
    assert tw.text.Tokenizer.from_sentencepiece(sentencepiece(pieces, CHAR)).encode("ab b") == [6, 4, 5, 6, 5]


def test_pieces_that_users_defined_and_that_are_not_used():
    pieces = CONTROLS + [("<mask>", 0, DEFINED), ("a", -1, NORMAL), ("ab", -1, UNUSED), ("b", -1, NORMAL), (SPACE, -1, NORMAL)]
    for kind in (UNIGRAM, PAIRS):
        model = tw.text.Tokenizer.from_sentencepiece(sentencepiece(pieces, kind))
        assert model.encode("ab<mask>a") == [7, 4, 6, 3, 4], kind
        assert model.decode([7, 4, 6, 3, 4]) == "ab<mask>a"


def test_bytes_stand_for_unknown_characters():
    pieces = CONTROLS + [(f"<0x{b:02X}>", 0, BYTE) for b in range(256)] + [(SPACE, -1, NORMAL), ("a", -1, NORMAL)]
    for kind in (UNIGRAM, PAIRS):
        model = tw.text.Tokenizer.from_sentencepiece(sentencepiece(pieces, kind, trainer=[(35, 1)]))
        ids, offsets = model.encode_with_offsets("aé")
        assert ids == [259, 260, 3 + 0xc3, 3 + 0xa9] and offsets == [(0, 0), (0, 1), (1, 1), (1, 3)]
        assert model.decode(ids) == "aé" and model.decode([3 + 0xc3, 260]) == "\ufffda"
        assert model.encode(b"a\xff") == [259, 260, 3 + 0xef, 3 + 0xbf, 3 + 0xbd]
    with pytest.raises(tw.InvalidArgumentError, match="falls back to bytes, but lacks the piece of byte 255"):
        tw.text.Tokenizer.from_sentencepiece(sentencepiece([p for p in pieces if p[0] != "<0xFF>"], trainer=[(35, 1)]))


def test_rules_of_normalization():
    pieces = CONTROLS + [("a", -1, NORMAL), ("b", -1, NORMAL), (SPACE, -1, NORMAL)]
    rules = charsmap({b"A": b"a", b"\t": b" ", b"_": b"bb", b"!": b""})
    model = tw.text.Tokenizer.from_sentencepiece(sentencepiece(pieces, charsmap=rules))
    assert model.encode_with_offsets("A\t _!a ") == ([5, 3, 5, 4, 4, 3], [(0, 0), (0, 1), (1, 3), (3, 3), (3, 5), (5, 6)])
    plain = tw.text.Tokenizer.from_sentencepiece(sentencepiece(pieces, rules=[(3, 0), (4, 0)]))
    assert plain.encode(" a  b") == [5, 3, 5, 5, 4] and plain.decode([5, 3, 5, 5, 4]) == " a  b"
    behind = tw.text.Tokenizer.from_sentencepiece(sentencepiece(pieces, trainer=[(24, 1)]))
    assert behind.encode("a b") == [3, 5, 4, 5]
    for spoilt in (b"\1", b"\4\0\0\0ab", b"\xff\xff\xff\x7f" + bytes(8)):
        with pytest.raises(tw.InvalidArgumentError, match="rules of normalization have"):
            tw.text.Tokenizer.from_sentencepiece(sentencepiece(pieces, charsmap=spoilt))


def sp(model, name):
    return ops.sentencepiece_op(model=model, shared_name=name)


def flags(*values):
    return [np.bool_(v) for v in values]


def test_ops_of_sentencepiece():
    pieces = CONTROLS + [("a", -1, NORMAL), ("b", -2, NORMAL), ("ab", -2.5, NORMAL), (SPACE, -1, NORMAL)]
    model = sp(sentencepiece(pieces), "ops of text_test")
    tokens = ops.sentencepiece_tokenize_op(model, array(["ab", "b"]), np.int32(0), np.float32(1), *flags(1, 1, 0), Tsplits="int32")
    assert tokens.output_values.numpy().tolist() == [1, 6, 5, 2, 1, 6, 4, 2] and tokens.output_splits.numpy().tolist() == [0, 4, 8]
    assert tokens.output_splits.dtype == "int32"
    turned = ops.sentencepiece_tokenize_with_offsets_op(model, array(["abx"]), np.int32(0), np.float32(1), *flags(1, 0, 1), out_type="string")
    assert turned.output_values.numpy().tolist() == [b"x", b"ab", SPACE.encode(), b"<s>"]
    assert turned.output_offset_starts.numpy().tolist() == [2, 0, 0, 0] and turned.output_offset_limits.numpy().tolist() == [3, 2, 0, 0]
    best = ops.sentencepiece_tokenize_op(model, array(["ab", ""]), np.int32(5), np.float32(1), *flags(0, 0, 0), return_nbest=True)
    assert best.output_values.numpy().tolist() == [6, 5, 6, 3, 4] and best.output_splits.numpy().tolist() == [0, 2, 5, 5]
    assert ops.sentencepiece_vocab_size_op(model).item() == 7
    assert ops.sentencepiece_id_to_string_op(model, np.int32([[3], [0]])).numpy().tolist() == [[b"a"], [b"<unk>"]]
    assert ops.sentencepiece_string_to_id_op(model, array(["ab", "</s>", "?"])).numpy().tolist() == [5, 2, 0]
    back = ops.sentencepiece_detokenize_op(model, array([SPACE, "ab", "?"]), np.int64([0, 2, 3]), *flags(0, 0, 0))
    assert back.numpy().tolist() == [b"ab", b"?"]
    assert ops.sentencepiece_detokenize_op(model, np.int32([6, 5, 0, 2]), np.int64([0, 4]), *flags(1, 1, 0)).numpy().tolist() == ["ab \u2047 ".encode()]


def test_draws_of_sentencepiece():
    pieces = CONTROLS + [("a", -1, NORMAL), ("aa", -2, NORMAL), (SPACE, -1, NORMAL)]
    model = sp(sentencepiece(pieces), "drawn in text_test")
    many = array(["aaa"] * 600)
    for size in (3, -1):
        tokens = ops.sentencepiece_tokenize_op(model, many, np.int32(size), np.float32(1), *flags(0, 0, 0))
        ids, splits = tokens.output_values.numpy(), tokens.output_splits.numpy()
        rows = [tuple(ids[a:b]) for a, b in zip(splits[:-1], splits[1:])]
        counts = [rows.count(r) for r in ((5, 3, 3, 3), (5, 4, 3), (5, 3, 4))]
        assert sum(counts) == 600 and all(140 < c < 260 for c in counts), counts  # all three have the same score
    in_pairs = sp(sentencepiece(pieces, PAIRS), "dropped in text_test")
    for alpha, wanted in ((0.0, {(5, 4, 3)}), (1.0, {(5, 3, 3, 3)})):
        tokens = ops.sentencepiece_tokenize_op(in_pairs, many[:20], np.int32(-1), np.float32(alpha), *flags(0, 0, 0))
        ids, splits = tokens.output_values.numpy(), tokens.output_splits.numpy()
        assert {tuple(ids[a:b]) for a, b in zip(splits[:-1], splits[1:])} == wanted


def test_what_sentencepiece_refuses():
    unigrams = sentencepiece(CONTROLS[:1] + [("a", -1, NORMAL)])
    model, many = sp(unigrams, "refused in text_test"), array(["a"])
    one = [np.int32(0), np.float32(1)]
    for inputs, attrs, error, why in (
            ([many, *one, *flags(1, 0, 0)], {}, tw.InvalidArgumentError, "'add_bos' is true, but the model has no piece '<s>'"),
            ([many, np.int32(513), np.float32(1), *flags(0, 0, 0)], {}, tw.InvalidArgumentError, "'nbest_size' is 513; it must be at most 512"),
            ([many, *one, *flags(0, 0, 0)], dict(return_nbest=True), tw.InvalidArgumentError, "'nbest_size' is 0; it must be at least 1"),
            ([many, np.int32(-1), np.float32(np.nan), *flags(0, 0, 0)], {}, tw.InvalidArgumentError, "'alpha' is too large")):
        with pytest.raises(error, match=f"SentencepieceTokenizeOp.*{why}"):
            ops.sentencepiece_tokenize_op(model, *inputs, **attrs)
    with pytest.raises(tw.InvalidArgumentError, match=r"'input_values'\[1\] is 9; the model has pieces 0 to 1"):
        ops.sentencepiece_detokenize_op(model, np.int32([0, 9]), np.int64([0, 2]), *flags(0, 0, 0))
    for splits, why in (([0, 1], "end with 1, but they split 2"), ([1, 2], "splits begin with 0"), ([0, 2, 1, 2], "never fall")):
        with pytest.raises(tw.InvalidArgumentError, match=why):
            ops.sentencepiece_detokenize_op(model, np.int32([0, 1]), np.int64(splits), *flags(0, 0, 0))
    with pytest.raises(tw.InvalidArgumentError, match="element 0 of 'input' is -1"):
        ops.sentencepiece_id_to_string_op(model, np.int32([-1]))
    with pytest.raises(tw.UnimplementedError, match="models of words and characters have one split"):
        ops.sentencepiece_tokenize_op(sp(sentencepiece(CONTROLS + [("a", 0, NORMAL)], CHAR), "chars of text_test"), many, np.int32(2), np.float32(1),
                                      *flags(0, 0, 0))
    for pieces, why in ((CONTROLS + [("a", 0, NORMAL)] * 2, "pieces 3 and 4 of the model are both 'a'"), ([("a", 0, NORMAL)], "no unknown piece"),
                        (CONTROLS + [("", 0, NORMAL)], "piece 3 of the model is empty"), (CONTROLS, "no piece that stands for text"),
                        (CONTROLS + [("a", float("nan"), NORMAL)], "a score that is no finite number"), (CONTROLS + [("a", 0, 9)], "has the type 9"),
                        (CONTROLS + [("a" * 5000, 0, NORMAL)], "has 5000 bytes; at most 4096"),
                        (CONTROLS + [("a", 0, NORMAL), ("<0x0A>", 0, BYTE)], "does not fall back to bytes")):
        with pytest.raises(tw.InvalidArgumentError, match=f"SentencepieceOp.*{why}"):
            tw.text.Tokenizer.from_sentencepiece(sentencepiece(pieces))


def test_damaged_models_are_refused_or_work():
    pieces = CONTROLS + [("a", -1, NORMAL), ("ab", -1, NORMAL), (SPACE, -1, NORMAL)]
    whole = sentencepiece(pieces, charsmap=charsmap({b"A": b"a", b"B": b"xyz"}))
    refused = 0
    spoilt = [whole[:n] for n in range(0, 110, 3)]
    for _ in range(150):
        data = bytearray(whole)
        for most in (110, len(data), len(data)):
            data[RNG.integers(most)] = RNG.integers(256)
        spoilt.append(bytes(data))
    for k, data in enumerate(spoilt):
        try:
            tw.text.Tokenizer.from_sentencepiece(data).encode(["ABab \u00ff" * 3, "B" * 300])
        except tw.InvalidArgumentError as error:
            refused += 1
            assert "Sentencepiece" in str(error), error
    assert 30 < refused < len(spoilt)


# ---- tokenizer.json ----

def gpt2(merges, **more):
    alphabet = byte_alphabet()
    vocab = {c: i for i, c in enumerate(alphabet.values())}
    for a, b in merges:
        vocab.setdefault(a + b, len(vocab))
    return {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": vocab, "merges": [f"{a} {b}" for a, b in merges]}, **more}


def drawn_merges(corpus, n):
    """Trains byte pairs on words."""
    alphabet, merges = byte_alphabet(), []
    words = [[alphabet[b] for b in w.encode()] for text in corpus for w in gpt2_words(text)]
    for _ in range(n):
        counts = {}
        for w in words:
            for pair in zip(w[:-1], w[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        if not counts:
            break
        best = max(sorted(counts), key=counts.get)
        merges.append(best)
        words = [pairs(w, lambda a, b: 0 if (a, b) == best else None) for w in words]
    return merges


def test_byte_pairs_of_gpt2_by_hand():
    corpus = texts(80, 30)
    merges = drawn_merges(corpus, 40)
    about, alphabet, rank = gpt2(merges), byte_alphabet(), {m: i for i, m in enumerate(merges)}
    vocab, model = about["model"]["vocab"], tw.text.Tokenizer.from_json(about)
    for text in [*corpus, *texts(80, 20), "we'll it's  \n  x '", "   ", "a ", "\u3000a"]:
        wanted = [vocab[s] for w in gpt2_words(text) for s in pairs([alphabet[b] for b in w.encode()], lambda a, b: rank.get((a, b)))]
        ids, offsets = model.encode_with_offsets(text)
        assert ids == wanted, text
        assert model.decode(ids) == text
        data, inverse = text.encode(), {c: b for b, c in alphabet.items()}
        for i, (a, b) in zip(ids, offsets):
            assert bytes(inverse[c] for c in model.token(i)) in data[a:b], (text, i, a, b)
    assert len({i for t in corpus for i in model.encode(t)} & set(range(256, len(vocab)))) > 10  # the merges are used


def test_long_texts_take_little_time():
    model = tw.text.Tokenizer.from_json(gpt2([("a", "a"), ("aa", "aa"), ("aaaa", "aaaa")]))
    unigrams = tw.text.Tokenizer.from_sentencepiece(sentencepiece(CONTROLS + [("a" * k, -float(k), NORMAL) for k in range(1, 40)]))
    in_pairs = tw.text.Tokenizer.from_sentencepiece(sentencepiece(CONTROLS + [("a" * k, -float(k), NORMAL) for k in range(1, 40)], PAIRS))
    words = tw.text.Tokenizer.from_json({"model": {"type": "WordPiece", "unk_token": "a", "max_input_chars_per_word": 10**6, "vocab": {"a": 0, "##a": 1, "##aaaa": 2}}})
    before = time.monotonic()
    for tokenizer in (model, unigrams, in_pairs, words):
        assert len(tokenizer.encode("a" * 100_000)) > 1000
    assert len(model.encode(" " * 100_000 + "a")) > 1000
    assert time.monotonic() - before < 40  # a quadratic way would take minutes


def bert(vocab, **more):
    return {"normalizer": {"type": "BertNormalizer", "lowercase": True}, "pre_tokenizer": {"type": "BertPreTokenizer"},
            "decoder": {"type": "WordPiece", "prefix": "##"}, "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {v: i for i, v in enumerate(vocab)}},
            **more}


BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "a", "##a", "b", "##b", "e", "##e", ".", "'", "s", "##s", "中", "0", "c"]


def test_wordpiece_by_hand():
    model = tw.text.Tokenizer.from_json(bert(BERT))
    for text in ["Unaffable.", "中a文", "É\u0301e", *texts(120, 16)]:
        wanted = [BERT.index(p) for w in bert_words(text) for p in wordpiece(w, set(BERT))]
        assert model.encode(text) == wanted, text
    assert model.encode_with_offsets("  Unaffable É.") == ([5, 6, 7, 12, 14], [(2, 4), (4, 7), (7, 11), (12, 14), (14, 15)])
    assert model.decode([5, 6, 7, 14, 12, 15, 16]) == "unaffable. e ' s"
    assert model.encode("a" * 101) == [1]


def test_special_tokens_and_templates():
    added = [{"id": i, "content": BERT[i], "special": True, "normalized": False} for i in range(5)]
    added += [{"id": 30, "content": "<new>", "special": False, "normalized": True, "single_word": True}, {"id": 31, "content": "<l>", "lstrip": True,
              "special": True}]
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "[SEP]"}}],
                "special_tokens": {"[CLS]": {"ids": [2]}, "[SEP]": {"ids": [3]}}}
    model = tw.text.Tokenizer.from_json(bert(BERT, added_tokens=added, post_processor=template))
    assert model.vocab_size == 32 and model.special_tokens == {t: i for i, t in enumerate(BERT[:5])} | {"<l>": 31}
    assert model.id("a") == 8 and model.id("zzz") is None and model.token(5) == "un"
    assert model.encode_with_offsets("a[MASK]b") == ([2, 8, 4, 10, 3], [(0, 0), (0, 1), (1, 7), (7, 8), (0, 0)])
    assert model.encode("a <NEW> b <new>a", add_special_tokens=False) == [8, 30, 10, 1, 1, 1, 8]
    assert model.encode("a  <l>b", add_special_tokens=False) == [8, 31, 10]
    assert model.encode_with_offsets("a  <l>b", add_special_tokens=False)[1] == [(0, 1), (1, 6), (6, 7)]
    ids = model.encode("unaffable")
    assert model.decode(ids) == "unaffable" and model.decode(ids, skip_special_tokens=False) == "[CLS] unaffable [SEP]"
    assert model.decode([ids, []]) == ["unaffable", ""]
    for number in (21, 32, -1):
        with pytest.raises(tw.InvalidArgumentError, match=rf"TextTokenizerDecode.*'input_values'\[0\] is {number}, which is the number of no token"):
            model.decode([number])


def test_unigrams_of_json():
    pieces = [["<unk>", 0.0], [SPACE + "a", -1.5], ["b", -1.0], ["ab", -1.2], [SPACE, -2.0], ["c", -9.0]]
    about = {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}, {"type": "Lowercase"}]},
             "pre_tokenizer": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always"}, "decoder": {"type": "Metaspace", "replacement": SPACE},
             "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces}}
    model = tw.text.Tokenizer.from_json(about)
    assert model.encode_with_offsets("Ab   xyab") == ([1, 2, 4, 0, 3], [(0, 1), (1, 2), (4, 5), (5, 7), (7, 9)])
    assert model.decode([1, 2, 4, 3]) == "ab ab"


def test_byte_fallback_of_llama():
    vocab = {"<unk>": 0} | {f"<0x{b:02X}>": 1 + b for b in range(256)} | {SPACE: 257, "a": 258, SPACE + "a": 259}
    about = {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": SPACE}, {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}]},
             "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"},
                                                          {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
             "model": {"type": "BPE", "vocab": vocab, "merges": [[SPACE, "a"]], "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}}
    model = tw.text.Tokenizer.from_json(about)
    assert model.encode_with_offsets("a aé") == ([259, 259, 1 + 0xc3, 1 + 0xa9], [(0, 1), (1, 3), (3, 5), (3, 5)])
    assert model.decode([259, 259, 1 + 0xc3, 1 + 0xa9]) == "a aé" and model.decode([258, 1 + 0xc3, 258]) == "a\ufffda"
    unfused = tw.text.Tokenizer.from_json({"model": {"type": "BPE", "vocab": {"a": 0, "?": 1}, "merges": [], "unk_token": "?"}})
    assert unfused.encode("axya") == [0, 1, 1, 0]


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def words_by(splitter, text):
    """The words of a pre-tokenizer, by a model that has none of them."""
    vocab = {"?": 0}
    about = {"pre_tokenizer": splitter, "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "?"}}
    data = text.encode()
    return [data[a:b].decode() for a, b in tw.text.Tokenizer.from_json(about).encode_with_offsets(text)[1]]


@pytest.mark.parametrize("splitter, text, words", [
    ({"type": "WhitespaceSplit"}, " a\u3000b.c\n", ["a", "b.c"]), ({"type": "Whitespace"}, "ab_1, c!?", ["ab_1", ",", "c", "!?"]),
    ({"type": "Punctuation"}, "a,b!", ["a", ",", "b", "!"]), ({"type": "Punctuation", "behavior": "Removed"}, "a,b!", ["a", "b"]),
    ({"type": "Digits", "individual_digits": True}, "a12b", ["a", "1", "2", "b"]), ({"type": "Digits"}, "a12b", ["a", "12", "b"]),
    ({"type": "CharDelimiterSplit", "delimiter": "-"}, "a--b", ["a", "b"]),
    ({"type": "Split", "pattern": {"String": "-"}, "behavior": "MergedWithPrevious"}, "a--b", ["a-", "-", "b"]),
    ({"type": "Split", "pattern": {"String": "-"}, "behavior": "MergedWithNext"}, "a--b", ["a", "-", "-b"]),
    ({"type": "Split", "pattern": {"Regex": "-"}, "behavior": "Contiguous"}, "a--b", ["a", "--", "b"]),
    ({"type": "Split", "pattern": {"Regex": r"\w+"}, "behavior": "Removed", "invert": True}, "a, bc", ["a", "bc"]),
    ({"type": "Split", "pattern": {"Regex": LLAMA3}, "behavior": "Isolated"}, "I'LL be  1234\n\n x!\n", ["I", "'LL", " be", " ", " ", "123", "4", "\n\n", " x", "!\n"]),
    ({"type": "Metaspace", "prepend_scheme": "never"}, "a  b", ["a", " ", " b"]),
])
def test_pre_tokenizers(splitter, text, words):
    assert words_by(splitter, text) == words


def test_offsets_are_trimmed():
    about = gpt2([], post_processor={"type": "ByteLevel", "trim_offsets": True})
    about["model"]["vocab"]["\u0120a"] = 256
    about["model"]["merges"] = ["\u0120 a"]
    b = about["model"]["vocab"]["b"]
    assert tw.text.Tokenizer.from_json(about).encode_with_offsets("b a") == ([b, 256], [(0, 1), (2, 3)])


def test_what_tokenizers_refuse():
    good = gpt2([("a", "b")])
    for change, error, why in (
            (dict(normalizer={"type": "Nmt"}), tw.UnimplementedError, "the tokenizer.normalizer has the normalizer 'Nmt', which is not supported"),
            (dict(pre_tokenizer={"type": "UnicodeScripts"}), tw.UnimplementedError, "the pre-tokenizer 'UnicodeScripts'"),
            (dict(decoder={"type": "CTC"}), tw.UnimplementedError, "the decoder 'CTC'"), (dict(model=None), tw.InvalidArgumentError, "tokenizer.model is null"),
            (dict(post_processor={"type": "Other"}), tw.UnimplementedError, "the post-processor 'Other'"),
            (dict(model={"type": "Neural"}), tw.UnimplementedError, "the model 'Neural'"),
            (dict(model=good["model"] | {"dropout": 0.1}), tw.UnimplementedError, "a dropout"),
            (dict(model=good["model"] | {"merges": ["a z z"]}), tw.InvalidArgumentError, r"merges\[0\] is 'a z z'; it must be two tokens"),
            (dict(model=good["model"] | {"merges": ["a c"]}), tw.InvalidArgumentError, "merges 'a' and 'c', but the vocabulary has no 'ac'"),
            (dict(model={"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}), tw.InvalidArgumentError, "the number 0 twice, for 'a' and 'b'"),
            (dict(model={"type": "BPE", "vocab": {"a": -1}, "merges": []}), tw.InvalidArgumentError, "must be the number of a token"),
            (dict(model={"type": "BPE", "vocab": {"a": 2**30}, "merges": []}), tw.InvalidArgumentError, "must be the number of a token"),
            (dict(model={"type": "Unigram", "vocab": [["a"]]}), tw.InvalidArgumentError, r"vocab\[0\] must be a token and its score"),
            (dict(model={"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "?"}), tw.InvalidArgumentError, "unk_token is '\\?', which the vocabulary does not"),
            (dict(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(?<=a)b"}, "behavior": "Isolated"}), tw.InvalidArgumentError, "no regular expression"),
            (dict(pre_tokenizer={"type": "Split", "pattern": {}, "behavior": "Isolated"}), tw.InvalidArgumentError, "neither a 'String' nor a 'Regex'")):
        with pytest.raises(error, match=f"TextTokenizer.*{why}"):
            tw.text.Tokenizer.from_json(good | change)
    for text, why in ((b"", "'model' is empty"), (b"{", "'model': this is no JSON, at byte 1 of 1: .*; expected string literal"),
                      (b"[]", "'model' is a list; it must be an object"), (b'{"a":1}x', "no JSON, at byte 7 of 8"),
                      (b'{"a":"\xff"}', "no JSON, at byte 6 of 9: .*ill-formed UTF-8"), (b'{"a":"\\ud800"}', "no JSON, at byte .*surrogate"),
                      (b'{"a":1}\0x', "no JSON, at byte 7 of 9: there is a NUL byte"), (b"[1e999]", "no JSON, at byte .*number overflow"),
                      (b'{"a":' * 100 + b"1" + b"}" * 100, "more than 64 arrays and objects within one another"),
                      (b'{"model":{"vocab":{"a":1,"a":2}}}', "the token 'a' twice")):
        with pytest.raises(tw.InvalidArgumentError, match=why):
            tw.text.Tokenizer.from_json(text)
    words = tw.text.Tokenizer.from_json({"model": {"type": "WordLevel", "vocab": {"a": 0}}})
    with pytest.raises(tw.InvalidArgumentError, match="TextTokenizerEncode.*no token for 'b' and no unknown token"):
        words.encode("b")


def test_damaged_descriptions_are_refused_or_work():
    whole = json.dumps(gpt2([("a", "b"), ("ab", "c")])).encode()
    refused = 0
    for k in range(120):
        data = bytearray(whole)
        for at in RNG.integers(0, len(data), 2):
            data[at] = RNG.integers(32, 127)
        try:
            tw.text.Tokenizer.from_json(bytes(data)).encode("abc")
        except (tw.InvalidArgumentError, tw.UnimplementedError):
            refused += 1
    assert refused > 40


# ---- Files, graphs, datasets ----

def test_files(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(BERT) + "\n", encoding="utf-8")
    by_words = tw.text.Tokenizer.load(tmp_path)
    assert by_words.encode("UNaffable") == [2, 5, 6, 7, 3] and by_words.special_tokens["[MASK]"] == 4
    assert tw.text.Tokenizer.load(tmp_path / "vocab.txt", lowercase=False).encode("A") == [2, 1, 3]
    about = gpt2([("a", "b")])
    (tmp_path / "vocab.json").write_text(json.dumps(about["model"]["vocab"] | {"<|endoftext|>": 300}))
    with pytest.raises(FileNotFoundError, match="no merges.txt beside it"):
        tw.text.Tokenizer.load(tmp_path / "vocab.json")
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    in_pairs = tw.text.Tokenizer.load(tmp_path)
    assert in_pairs.encode("ab<|endoftext|>") == [256, 300] and in_pairs.decode([256, 300]) == "ab"
    (tmp_path / "some.model").write_bytes(sentencepiece(CONTROLS + [("a", -1, NORMAL), (SPACE, -1, NORMAL)]))
    of_pieces = tw.text.Tokenizer.load(tmp_path, add_bos=True, add_eos=True)
    assert of_pieces.encode("a") == [1, 4, 3, 2] and of_pieces.encode("a", add_special_tokens=False) == [4, 3]
    assert of_pieces.special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2} and of_pieces.vocab_size == 5
    (tmp_path / "tokenizer.json").write_text(json.dumps(about))
    assert tw.text.Tokenizer.load(tmp_path).encode(["ab", "b"]) == [[256], in_pairs.encode("b")]
    for name, error, why in (("none", FileNotFoundError, "there is no file or folder"), ("tokenizer.json", ValueError, "'lowercase' is for a vocab.txt"),
                             ("some.model", ValueError, "'lowercase' is for a vocab.txt")):
        with pytest.raises(error, match=why):
            tw.text.Tokenizer.load(tmp_path / name, lowercase=True)
    for name, data, error, why in (("config.json", b'{"model_type": "bert"}', ValueError, "nor a vocab.json: the value of 'model_type' is no number of a token"),
                                   ("config.json", b"{}", ValueError, "nor a vocab.json: it is empty"), ("config.json", b"[]", ValueError, "but a list"),
                                   ("a.vocab", b"a 1", ValueError, "a.vocab' is no JSON: .*; files are tokenizer.json, "),
                                   ("vocab.txt", b"\xff\xfea\0", ValueError, "vocab.txt' is no text in UTF-8: .* at byte 0"),
                                   ("tokenizer.json", b'{"a": 1}', tw.InvalidArgumentError, "TextTokenizer.*tokenizer.model")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(error, match=why):
            tw.text.Tokenizer.load(tmp_path / name)
    (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\na\na\n")
    with pytest.raises(ValueError, match="the token 'a' in line 4 and in line 5"):
        tw.text.Tokenizer.load(tmp_path / "vocab.txt")


def test_in_graphs_and_datasets(tmp_path):
    model = tw.text.Tokenizer.from_json(gpt2([("a", "b")]))
    b = model.encode("b")[0]
    with tw.Graph() as g:
        x = tw.placeholder("string", [None])
        tokens, (ids, lengths) = model.encode(x), model.dense(x, 3, pad=-1)
        back = model.decode(tokens)
        assert tokens.ids.shape == (None,) and ids.shape == (None, 3)
    with tw.Session(g) as s:
        found = s.run([*tokens, ids, lengths, back], {x: array(["abb", "", "bbbb"])})
    assert found[0].tolist() == [256, b, b, b, b, b] and found[1].tolist() == [0, 2, 2, 6] and found[2].tolist() == [0, 2, 0, 1, 2, 3]
    assert found[4].tolist() == [[256, b, -1], [-1, -1, -1], [b, b, b]] and found[5].tolist() == [2, 0, 3]
    assert found[6].tolist() == [b"abb", b"", b"bbbb"]
    assert model.dense(["ab", "b b"])[0].numpy().shape == (2, 3)
    (tmp_path / "lines").write_text("ab\nb\n\nabab\n")
    rows = [np.asarray(ids).tolist() for ids, _ in tw.data.lines(str(tmp_path / "lines")).batch(2).map(lambda t: model.dense(t, 2))]
    assert rows == [[[256, 0], [b, 0]], [[0, 0], [256, 256]]]
    assert pickle.loads(pickle.dumps(model)).encode(["ab"]) == [[256]]
    for call, argument, error, why in ((model.encode, [5], TypeError, "5 is no text"), (model.decode, 5, TypeError, "5 is no list of numbers"),
                                       (model.decode, ["a"], TypeError, "is no list of numbers"), (model.decode, [1.5], TypeError, "which are integers"),
                                       (model.decode, [1, 2**40], ValueError, "1099511627776 is the number of no token"),
                                       (model.from_json, None, TypeError, "not NoneType"),
                                       (model.from_sentencepiece, "a.model", TypeError, "the bytes of a .*not str")):
        with pytest.raises(error, match=why):
            call(argument)
