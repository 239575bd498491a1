"""Weights of others, with the packages that write them: safetensors, gguf and PyTorch. Files go in both directions where we write the format,
and a small transformer of ours answers what PyTorch's answers with the same weights. Runs under tools/cmake/peer-python."""
import importlib.util
import json
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("THALWEG_BINARY_DIR", ROOT / "build/release"))
sys.path.insert(0, str(BUILD / "python"))
for needed in ("safetensors", "gguf", "ml_dtypes"):
    if importlib.util.find_spec(needed) is None:
        print(f"skipped: there is no {needed}; run tools/setup --peers")
        sys.exit(77)

import gguf
import ml_dtypes
import numpy as np
import safetensors.numpy

import thalweg as tw

RNG = np.random.default_rng(3)
failed = []


def holds(what, good, told=""):
    print(f"{what}: {'equal' if good else 'FAILED'} {told}".rstrip(), flush=True)
    if not good:
        failed.append(what)


def same(got, wanted):
    return got.keys() == wanted.keys() and all(got[k].dtype == v.dtype and got[k].shape == v.shape and got[k].tobytes() == v.tobytes()
                                               for k, v in wanted.items())


def by_safetensors(folder):
    arrays = {"a": RNG.normal(size=(3, 4)).astype(np.float32), "odd": np.uint8([1, 2, 3]), "h": RNG.normal(size=5).astype(np.float16),
              "none": np.zeros((0, 2), np.int64), "b": RNG.normal(size=(2, 2)).astype(ml_dtypes.bfloat16), "t": np.array([True, False]),
              "scalar": np.array(2.5), "i": np.int16([[1], [-1]])}
    safetensors.numpy.save_file(arrays, str(folder / "theirs"), {"format": "np"})
    holds("a file of safetensors", same(tw.weights.load(folder / "theirs"), arrays) and tw.weights.metadata(folder / "theirs") == {"format": "np"})
    tw.weights.save(folder / "ours", arrays, metadata={"format": "np"})
    holds("a file for safetensors", same(safetensors.numpy.load_file(str(folder / "ours")), arrays))
    with safetensors.safe_open(str(folder / "ours"), "np") as file:
        holds("its metadata", file.metadata() == {"format": "np"})
    short = {"e4": np.float32([0.5, -2]).astype(ml_dtypes.float8_e4m3fn), "e5": np.float32([0.5, -2]).astype(ml_dtypes.float8_e5m2)}
    tw.weights.save(folder / "short", short)
    holds("floats of 8 bits", same(tw.weights.load(folder / "short"), short))


def by_gguf(folder):
    w = gguf.GGUFWriter(str(folder / "m.gguf"), "llama")
    values = {"n": 7, "eps": 0.25, "name": "größe", "flag": True, "sizes": [1, -2, 3], "scales": [0.5, 1.5], "tokens": ["<s>", "ä"]}
    w.add_uint32("n", 7), w.add_float32("eps", 0.25), w.add_string("name", values["name"]), w.add_bool("flag", True)
    w.add_array("sizes", values["sizes"]), w.add_array("scales", values["scales"]), w.add_array("tokens", values["tokens"])
    x, h = RNG.normal(size=(3, 5)).astype(np.float32), RNG.normal(size=(2, 3, 4)).astype(np.float16)
    w.add_tensor("x", x), w.add_tensor("h", h)
    wide, T = RNG.normal(0, 3, (7, 96)).astype(np.float32), gguf.GGMLQuantizationType
    packed = {"q": (T.Q8_0, gguf.quants.quantize(wide, T.Q8_0)), "b": (T.BF16, gguf.quants.quantize(wide, T.BF16))}
    for name, (kind, data) in packed.items():
        w.add_tensor(name, data, raw_dtype=kind)
    w.write_header_to_file(), w.write_kv_data_to_file(), w.write_tensors_to_file(), w.close()
    wanted = {"x": x, "h": h.astype(np.float32), **{name: gguf.quants.dequantize(data, kind) for name, (kind, data) in packed.items()}}
    holds("tensors of gguf", same(tw.weights.load(folder / "m.gguf", dtype="float32"), wanted))
    kept = tw.weights.load(folder / "m.gguf", quantised=True)
    holds("kept Q8_0", same({"q": kept["q"].dequantised()}, {"q": wanted["q"]}))
    holds("kept types", kept["h"].tobytes() == h.tobytes() and kept["b"].dtype == ml_dtypes.bfloat16)
    holds("kept bfloat16", np.array_equal(kept["b"].astype(np.float32), wanted["b"]))
    got = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in tw.weights.metadata(folder / "m.gguf").items()}
    holds("metadata of gguf", {k: got[k] for k in values} == values and got["general.architecture"] == "llama", "" if got else "none")


# ---- A transformer of PyTorch ----

WIDTH, HEADS, LAYERS, WORDS, LENGTH = 32, 4, 3, 50, 11


def of_torch():
    import torch

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
            self.attention = torch.nn.ModuleDict({k: torch.nn.Linear(WIDTH, WIDTH) for k in ("query", "key", "value", "output")})
            self.fc1, self.fc2 = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            a = self.norm1(x)
            q, k, v = (self.attention[p](a).unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in ("query", "key", "value"))
            a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
            x = x + self.attention["output"](a)
            return x + self.fc2(torch.nn.functional.gelu(self.fc1(self.norm2(x))))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.norm = torch.nn.Embedding(WORDS, WIDTH), torch.nn.LayerNorm(WIDTH)
            self.layers = torch.nn.ModuleList([Block() for _ in range(LAYERS)])

        def forward(self, tokens):
            x = self.wte(tokens)
            for layer in self.layers:
                x = layer(x)
            return self.norm(x) @ self.wte.weight.T

    torch.manual_seed(1)
    net = Net().eval()
    with torch.no_grad():
        for p in net.parameters():  # norms are ones and zeros at first
            p.add_(0.1 * torch.randn_like(p))
    return net


class Block(tw.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention, self.norm2 = tw.nn.LayerNorm(), tw.nn.MultiHeadAttention(HEADS), tw.nn.LayerNorm()
        self.fc1, self.fc2 = tw.nn.Dense(4 * WIDTH, "gelu"), tw.nn.Dense(WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norm1(x), causal=True)
        return x + self.fc2(self.fc1(self.norm2(x)))


class Net(tw.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.norm, self.head = tw.nn.Embedding(WORDS, WIDTH), tw.nn.LayerNorm(), tw.nn.Dense(WORDS, use_bias=False)
        self.layers = [Block() for _ in range(LAYERS)]

    def forward(self, tokens):
        x = self.wte(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def block(here, there):
    rules = {f"{here}/multiheadattention/{{part}}/kernel": f"{there}.attention.{{part}}.weight^T",
             f"{here}/multiheadattention/{{part}}/bias": f"{there}.attention.{{part}}.bias"}
    for ours, theirs in (("layernorm", "norm1"), ("layernorm_1", "norm2")):
        rules |= {f"{here}/{ours}/scale": f"{there}.{theirs}.weight", f"{here}/{ours}/offset": f"{there}.{theirs}.bias"}
    for ours, theirs in (("dense", "fc1"), ("dense_1", "fc2")):
        rules |= {f"{here}/{ours}/kernel": f"{there}.{theirs}.weight^T", f"{here}/{ours}/bias": f"{there}.{theirs}.bias"}
    return rules


NAMES = {"embedding/table": "wte.weight", "dense/kernel": "wte.weight^T", "layernorm/scale": "norm.weight", "layernorm/offset": "norm.bias",
         **block("block", "layers.0"), **{k: v for i in range(1, LAYERS) for k, v in block(f"block_{i}", f"layers.{i}").items()}}


def by_torch(folder):
    if importlib.util.find_spec("torch") is None:
        print("skipped: there is no torch")
        return
    import safetensors.torch
    import torch
    theirs = of_torch()
    tokens = RNG.integers(0, WORDS, (2, LENGTH)).astype(np.int32)
    with torch.no_grad():
        wanted = theirs(torch.from_numpy(tokens)).numpy()
    state = theirs.state_dict()
    safetensors.torch.save_file(state, str(folder / "model.safetensors"), {"format": "pt"})
    keys = sorted(state)
    parts = {f"model-0000{i + 1}-of-00002.safetensors": {k: state[k] for k in keys[i::2]} for i in range(2)}
    for name, part in parts.items():
        safetensors.torch.save_file(part, str(folder / name), {"format": "pt"})
    index = {"metadata": {"total_size": 1}, "weight_map": {k: name for name, part in parts.items() for k in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for file in ("model.safetensors", "model.safetensors.index.json"):
        net = Net()
        net(tokens)
        tw.weights.load(folder / file, names=NAMES, into=net)
        error = float(np.abs(np.asarray(net(tokens)) - wanted).max() / np.abs(wanted).max())
        holds(f"a transformer of PyTorch from {file}", error < 1e-5, f"{error:.1e}")
    tw.weights.save(folder / "back.safetensors", net, names=NAMES)
    again = of_torch()
    with torch.no_grad():
        for p in again.parameters():
            p.zero_()
    again.load_state_dict(safetensors.torch.load_file(str(folder / "back.safetensors")))
    with torch.no_grad():
        holds("our file in PyTorch", np.array_equal(again(torch.from_numpy(tokens)).numpy(), wanted))
    half = {k: v.to(torch.bfloat16) for k, v in state.items()}
    safetensors.torch.save_file(half, str(folder / "half.safetensors"))
    got = tw.weights.load(folder / "half.safetensors")
    holds("bfloat16 of PyTorch", all(got[k].dtype == ml_dtypes.bfloat16 and np.array_equal(got[k].astype(np.float32), v.float().numpy())
                                     for k, v in half.items()))


def main():
    for case in (by_safetensors, by_gguf, by_torch):
        with tempfile.TemporaryDirectory() as folder:
            case(pathlib.Path(folder))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
