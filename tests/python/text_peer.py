#!/usr/bin/env python3
"""Tokenizers against the packages that define them: `tokenizers` and `sentencepiece` train small models on texts of many scripts, and both
sides split the same texts. Offsets are compared where both count them alike. Runs under tools/cmake/peer-python."""
import importlib.util
import io
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("THALWEG_BINARY_DIR", ROOT / "build/release"))
sys.path.insert(0, str(BUILD / "python"))
for needed in ("tokenizers", "sentencepiece"):
    if importlib.util.find_spec(needed) is None:
        print(f"skipped: there is no {needed}; run tools/setup --peers")
        sys.exit(77)

import numpy as np
import sentencepiece as spm
import tokenizers as hf
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

import thalweg as tw

RNG = np.random.default_rng(5)
failed = []
WORDS = ("the of and a to in He was it's they'll CAN'T naïve café Straße İstanbul ΟΔΟΣ привет мир 東京 日本語 한국어 العربية हिन्दी ไทย 👩‍👩‍👧 🇩🇪 e\u0301 "
         "x=1; f(x)+=2 3.14 1,000,000 ½ ² ﬁ ％ ＡＢＣ ｶﾞ \u00a0 \u3000 \u200b \u00ad don't -- ... ??? [MASK] <s> @user #tag a_b").split(" ")
CORPUS = [" ".join(RNG.choice(WORDS, RNG.integers(1, 14))) for _ in range(600)]
TEXTS = ["", " ", "  a", "a  ", "a\n\n b\t c\r\n", "Ünknöwn ŵørds", *[" ".join(RNG.choice(WORDS, RNG.integers(1, 9))) for _ in range(300)],
         *["".join(RNG.choice(list("ab  .'\n1é東\u0301👩"), RNG.integers(1, 25))) for _ in range(300)]]


def compare(what, got, wanted):
    wrong = [(t, g, w) for t, g, w in zip(TEXTS, got, wanted) if g != w]
    print(f"{what}: {'equal' if not wrong else 'FAILED'}, {len(TEXTS)} texts", flush=True)
    for text, ours, theirs in wrong[:3]:
        print(f"    {text!r}\n      ours   {ours}\n      theirs {theirs}")
    if wrong:
        failed.append(what)


def bytes_of(text, pairs):
    """Offsets in characters as offsets in bytes."""
    at = np.cumsum([0, *(len(c.encode()) for c in text)])
    return [(int(at[a]), int(at[b])) for a, b in pairs]


def by_tokenizers(name, theirs, offsets=True):
    ours = tw.text.Tokenizer.from_json(theirs.to_str())
    wanted = [theirs.encode(t) for t in TEXTS]
    got = [ours.encode_with_offsets(t) for t in TEXTS]
    compare(f"{name}: numbers", [ids for ids, _ in got], [e.ids for e in wanted])
    if offsets:
        compare(f"{name}: offsets", [places for _, places in got], [bytes_of(t, e.offsets) for t, e in zip(TEXTS, wanted)])
    compare(f"{name}: texts", [ours.decode(e.ids) for e in wanted], [theirs.decode(e.ids) for e in wanted])


def gpt2(**options):
    t = hf.Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(**options), decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=500, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                 show_progress=False))
    return t


def llama3():
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    t = hf.Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(hf.Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                 show_progress=False))
    return t


def bert(lowercase):
    t = hf.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(lowercase=lowercase), pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False))
    t.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def unigrams():
    t = hf.Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(hf.Regex(" {2,}"), " ")])
    t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    t.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=400, unk_token="<unk>", special_tokens=["<unk>", "<s>"], show_progress=False))
    return t


def llama2():
    t = hf.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>", *[f"<0x{b:02X}>" for b in range(256)]], limit_alphabet=60,
                                                 show_progress=False))
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return t


def by_sentencepiece(name, **options):
    writer = io.BytesIO()
    spm.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=writer, minloglevel=2, hard_vocab_limit=False, **options)
    theirs = spm.SentencePieceProcessor(model_proto=writer.getvalue())
    ours = tw.text.Tokenizer.from_sentencepiece(writer.getvalue())
    wanted = [theirs.encode(t) for t in TEXTS]
    compare(f"{name}: numbers", ours.encode(TEXTS), wanted)
    protos = [theirs.encode(t, return_type="proto") for t in TEXTS]  # offsets in bytes
    compare(f"{name}: offsets", [p for _, p in ours.encode_with_offsets(TEXTS)], [[(p.begin, p.end) for p in proto.pieces] for proto in protos])
    compare(f"{name}: texts", ours.decode([[*w] for w in wanted]), [theirs.decode(w) for w in wanted])
    if options.get("model_type", "unigram") == "unigram":
        handle = tw.ops.sentencepiece_op(model=writer.getvalue(), shared_name=name)
        rest = [np.int32(5), np.float32(1), *[np.bool_(False)] * 3]
        rows = []
        for text in TEXTS:
            tokens = tw.ops.sentencepiece_tokenize_op(handle, np.array([text.encode()], object), *rest, return_nbest=True)
            ids, splits = tokens.output_values.numpy().tolist(), tokens.output_splits.numpy()
            rows.append(sorted(sum(theirs.get_score(i) for i in ids[a:b]) for a, b in zip(splits[:-1], splits[1:])))
        best = [sorted(sum(theirs.get_score(i) for i in ids) for ids in theirs.nbest_encode(t, nbest_size=5)) if w else [0]
                for t, w in zip(TEXTS, wanted)]
        compare(f"{name}: scores of the best splits", [np.round(r, 2).tolist() for r in rows], [np.round(b, 2).tolist() for b in best])


def main():
    by_tokenizers("bytes of GPT-2", gpt2(add_prefix_space=False))
    by_tokenizers("bytes with a space before", gpt2(add_prefix_space=True))
    by_tokenizers("bytes of Llama 3", llama3())
    by_tokenizers("WordPiece", bert(False))
    by_tokenizers("WordPiece in lower case", bert(True))
    by_tokenizers("unigrams", unigrams(), offsets=False)  # the two give the parts of a composed character other places
    by_tokenizers("bytes of Llama 2", llama2())
    by_sentencepiece("sentencepiece: unigrams", vocab_size=300)
    by_sentencepiece("sentencepiece: byte pairs", model_type="bpe", vocab_size=400)
    by_sentencepiece("sentencepiece: bytes", model_type="bpe", vocab_size=600, byte_fallback=True, character_coverage=0.98, normalization_rule_name="identity")
    by_sentencepiece("sentencepiece: defined pieces", vocab_size=300, user_defined_symbols=["[MASK]", "東京"], remove_extra_whitespaces=False)
    by_sentencepiece("sentencepiece: characters", model_type="char", vocab_size=120)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
