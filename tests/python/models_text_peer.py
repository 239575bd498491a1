"""The networks of sequences in bindings/python/examples/models beside PyTorch's: from equal weights, the loss and the weights after a
step of gradient descent. Runs under tools/cmake/peer-python."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(os.environ.get("THALWEG_BINARY_DIR", ROOT / "build/release")) / "python"),
                str(ROOT / "bindings/python/examples/models")]
try:
    import torch
except ImportError as error:
    print(f"skipped: {error}; run tools/setup --peers")
    sys.exit(77)

import numpy as np

import bert
import gpt
import lstm
import seq2seq
import thalweg as tw
import vae

RATE, WIDTH, HEADS, LAYERS, WORDS = 0.5, 24, 4, 2, 40
F = torch.nn.functional
rng = np.random.default_rng(4)


def parameters(net):
    return {v.name.split("/", 1)[1]: v for v in net.parameters()}


def weight(shape):
    return rng.normal(0, 0.3, shape).astype(np.float32)


def compare(name, net, ours, theirs):
    """ours(): the loss in the current graph. theirs(weights): the loss from {name: tensor}. Compares the loss and the weights after a
    step of ours with the weights that PyTorch's gradients give."""
    with tw.Graph() as graph:
        loss = ours()
        step = tw.train.SGD(RATE).minimize(loss)
        start = graph.initializer()
    variables = parameters(net)
    session = tw.Session(graph)
    session.run(start)
    weights = {key: weight(v.shape) for key, v in variables.items()}
    with graph:
        session.run([variables[key].assign(value) for key, value in weights.items()])
    tensors = {key: torch.tensor(value, requires_grad=True) for key, value in weights.items()}
    wanted = theirs(tensors)
    wanted.backward()
    got, _ = session.run([loss, step])
    worst = abs(got - wanted.item()) / max(1, abs(wanted.item()))
    after = session.run(variables)
    for key, tensor in tensors.items():
        gradient = np.zeros(tensor.shape, np.float32) if tensor.grad is None else tensor.grad.numpy()
        scale = max(np.abs(RATE * gradient).max(), 1e-3)
        worst = max(worst, np.abs(after[key] - (weights[key] - RATE * gradient)).max() / scale)
    good = worst < 1e-4
    print(f"{name}: loss {got:.6f} and {wanted.item():.6f}, {len(weights)} weights, largest relative difference {worst:.1e}: "
          f"{'equal' if good else 'FAILED'}", flush=True)
    return good


def dense(w, key, x):
    y = x @ w[f"{key}/kernel"]
    return y + w[f"{key}/bias"] if f"{key}/bias" in w else y


def norm(w, key, x, epsilon):
    return F.layer_norm(x, x.shape[-1:], w[f"{key}/scale"], w[f"{key}/offset"], epsilon)


def attention(w, key, x, causal=False, bias=None):
    q, k, v = (dense(w, f"{key}/{part}", x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in ("query", "key", "value"))
    return dense(w, f"{key}/output", F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal).transpose(1, 2).flatten(2))


def by_gpt():
    net = gpt.GPT(WORDS, 16, WIDTH, LAYERS, HEADS, dropout=0.0)
    tokens = rng.integers(WORDS, size=(3, 12))

    def ours():
        return gpt.loss(net(tw.constant(tokens[:, :-1].astype(np.int32))), tw.constant(tokens[:, 1:].astype(np.int32))).mean()

    def theirs(w):
        t = torch.from_numpy(tokens)
        x = w["embedding/table"][t[:, :-1]] + w["embedding_1/table"][:11]
        for i in range(LAYERS):
            block = "block" + (f"_{i}" if i else "")
            x = x + attention(w, f"{block}/multiheadattention", norm(w, f"{block}/layernorm", x, 1e-5), causal=True)
            h = F.gelu(dense(w, f"{block}/sequential/dense", norm(w, f"{block}/layernorm_1", x, 1e-5)), approximate="tanh")
            x = x + dense(w, f"{block}/sequential/dense_1", h)
        return F.cross_entropy((norm(w, "layernorm", x, 1e-5) @ w["embedding/table"].T).flatten(0, 1), t[:, 1:].flatten())

    return compare("gpt", net, ours, theirs)


def by_bert():
    net = bert.Pretraining(WORDS, 16, WIDTH, layers=LAYERS, heads=HEADS, dropout=0.0)
    (tokens, types, mask), (words, asked, follows) = bert.example(3, 10, WORDS)
    mask = (np.arange(10) < np.array([[10], [7], [4]])).astype(np.int32)
    asked = (asked * mask).astype(np.float32)

    def ours():
        return bert.loss(net(*(tw.constant(x) for x in (tokens, types, mask))), *(tw.constant(x) for x in (words, asked, follows)))

    def theirs(w):
        t, s, there, y, a, f = (torch.from_numpy(x) for x in (tokens, types, mask, words, asked, follows))
        tables = {tensor.shape[0]: tensor for key, tensor in w.items() if key.endswith("/table")}
        table, places, sentences = tables[WORDS], tables[16], tables[2]
        x = norm(w, "bert/layernorm", table[t.long()] + places[:10] + sentences[s.long()], 1e-12)
        bias = torch.zeros(3, 1, 1, 10).masked_fill(there[:, None, None] == 0, -torch.inf)
        for i in range(LAYERS):
            block = "bert/block" + (f"_{i}" if i else "")
            x = norm(w, f"{block}/layernorm", x + attention(w, f"{block}/multiheadattention", x, bias=bias), 1e-12)
            h = dense(w, f"{block}/sequential/dense_1", F.gelu(dense(w, f"{block}/sequential/dense", x)))
            x = norm(w, f"{block}/layernorm_1", x + h, 1e-12)
        pooled = torch.tanh(dense(w, "bert/dense", x[:, 0]))
        logits = norm(w, "layernorm", F.gelu(dense(w, "dense", x)), 1e-12) @ table.T + w["bias"]
        losses = F.cross_entropy(logits.flatten(0, 1), y.long().flatten(), reduction="none")
        return (losses * a.flatten()).sum() / a.sum() + F.cross_entropy(dense(w, "dense_1", pooled), f.long())

    return compare("bert", net, ours, theirs)


def torch_lstm(kernel, bias, cells, projection=None):
    """torch.nn.LSTM's flat weights, in its order of gates (input, forget, new, output), from a kernel in ours (input, new, forget, output)
    and its forget bias of 1."""
    hidden = cells if projection is None else projection.shape[1]
    i, new, f, o = kernel.split(cells, 1)
    bi, bn, bf, bo = bias.split(cells)
    both = torch.cat([i, f, new, o], 1).T
    zero = torch.zeros(4 * cells)
    flat = [both[:, :-hidden], both[:, -hidden:], torch.cat([bi, bf + 1, bn, bo]), zero]
    return flat if projection is None else [*flat, projection.T]


def run_lstm(x, flat, state):
    """torch's own LSTM kernel, batch first."""
    return torch._VF.lstm(x, state, [p.contiguous() for p in flat], True, 1, 0.0, False, False, True)


def by_lstm():
    net = lstm.LSTM(WORDS, 10, 14, 6, drawn=WORDS, dropout=0.0)
    words = rng.integers(WORDS, size=(3, 9))

    def ours():
        x, y = (tw.constant(part.astype(np.int32)) for part in (words[:, :-1], words[:, 1:]))
        net(x, y)  # makes the variables
        return net.full(x, y).mean()

    def theirs(w):
        t = torch.from_numpy(words)
        flat = torch_lstm(w["lstm/cell/kernel"], w["lstm/cell/bias"], 14, w["lstm/cell/projection"])
        outputs, _, _ = run_lstm(w["embedding/table"][t[:, :-1]], flat, (torch.zeros(1, 3, 6), torch.zeros(1, 3, 14)))
        return F.cross_entropy((outputs @ w["weights"].T + w["biases"]).flatten(0, 1), t[:, 1:].flatten())

    return compare("lstm", net, ours, theirs)


def by_seq2seq():
    net = seq2seq.Seq2Seq(30, 8, 12)
    source, target = seq2seq.backwards(["sheep", "shepherds", "oxen"])

    def ours():
        return seq2seq.loss(net(tw.constant(source), tw.constant(target)), tw.constant(target))

    def theirs(w):
        s, t = torch.from_numpy(source).long(), torch.from_numpy(target).long()
        there = s != 0
        zeros = (torch.zeros(1, 3, 12), torch.zeros(1, 3, 12))
        memory, state = [], []
        for row, n in enumerate(there.sum(1)):  # each word by itself, without padding
            outputs, h, c = run_lstm(w["embedding/table"][s[row:row + 1, :n]], torch_lstm(w["lstm/cell/kernel"], w["lstm/cell/bias"], 12),
                                     tuple(z[:, :1] for z in zeros))
            memory.append(F.pad(outputs, (0, 0, 0, s.shape[1] - n)))
            state.append((h, c))
        memory, state = torch.cat(memory), tuple(torch.cat(part, 1) for part in zip(*state))
        before = torch.cat([torch.full((3, 1), seq2seq.START), t[:, :-1]], 1)
        outputs, _, _ = run_lstm(w["embedding/table"][before], torch_lstm(w["lstm_1/cell/kernel"], w["lstm_1/cell/bias"], 12), state)
        scores = dense(w, "dense", outputs) @ memory.transpose(1, 2)
        found = scores.masked_fill(~there[:, None], -torch.inf).softmax(-1) @ memory
        logits = dense(w, "dense_2", torch.tanh(dense(w, "dense_1", torch.cat([outputs, found], -1))))
        return F.cross_entropy(logits.flatten(0, 1), t.flatten(), ignore_index=0)

    return compare("seq2seq", net, ours, theirs)


def by_vae():
    """The loss of given latent numbers: draws differ."""
    net = vae.VAE(20, 16, 4)
    x, noise = rng.random((5, 20)).astype(np.float32), rng.normal(size=(5, 4)).astype(np.float32)

    def ours():
        net(tw.constant(x))  # makes the variables
        mean, log_variance = tw.ops.split(1, net.encoder(tw.constant(x)), num_split=2)
        logits = net.decoder(mean + tw.ops.exp(log_variance / 2) * noise)
        return vae.loss([logits, mean, log_variance], tw.constant(x))

    def theirs(w):
        given = torch.from_numpy(x)
        mean, log_variance = dense(w, "sequential/dense_1", F.relu(dense(w, "sequential/dense", given))).chunk(2, 1)
        latent = torch.distributions.Normal(mean, (log_variance / 2).exp())
        logits = dense(w, "sequential_1/dense_1", F.relu(dense(w, "sequential_1/dense", mean + latent.scale * torch.from_numpy(noise))))
        divergence = torch.distributions.kl_divergence(latent, torch.distributions.Normal(0, 1))
        return (F.binary_cross_entropy_with_logits(logits, given, reduction="none").sum(1) + divergence.sum(1)).mean()

    return compare("vae", net, ours, theirs)


if __name__ == "__main__":
    sys.exit(not all([f() for f in (by_gpt, by_bert, by_lstm, by_seq2seq, by_vae)]))
