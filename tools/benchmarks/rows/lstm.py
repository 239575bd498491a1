"""Row 15: a training step of a language model of two LSTM layers of 200, 20 steps, batch 20, 10,000 words, with plain gradient descent. Its
steps in a loop are compared with unrolled ones, and both with TensorFlow. Then one layer of 512 with 200 steps at several batches: in a
loop against unrolled, for which the paper on control flow reports 3 to 8 %, and the loop against TensorFlow's."""
from bench import Goal
from rows.mlp_step import check_losses

NUMBER = 15
TITLE = "LSTM language model, training step"
SMALL = "2 200 20 20 10000"  # layers, cells, steps, batch, words
LONG = "1 512 200 {} 100"
BATCHES = (2, 8, 32)


def run(bench):
    for threads in (1, 2):
        ours, peer, where = bench.ours(threads), bench.peer("TensorFlow", threads), f"{threads} thread{'s' * (threads > 1)}"
        expected = ours.ask(f"lstm_losses unrolled {SMALL}")
        check_losses("the loop", ours.ask(f"lstm_losses loop {SMALL}"), expected)
        for kind in ("unrolled", "loop"):
            if peer:
                check_losses("TensorFlow", peer.ask(f"lstm_losses {kind} {SMALL}"), expected)
            step = f"lstm_step 9 {kind} {SMALL}"
            bench.compare(f"{kind}, {where}", ("Thalweg", ours, step), ("TensorFlow", peer, step), unit="ms", goal=Goal(0.8), threads=threads)
        bench.compare(f"loop, {where}", ("Thalweg", ours, f"lstm_step 9 loop {SMALL}"), ("unrolled", ours, f"lstm_step 9 unrolled {SMALL}"),
                      unit="ms", goal=Goal(1.1), threads=threads)
    for batch in BATCHES:
        model = LONG.format(batch)
        bench.compare(f"512 cells, 200 steps, batch {batch}, loop, 1 thread", ("Thalweg", bench.ours(1), f"lstm_step 1 loop {model}"),
                      ("unrolled", bench.ours(1), f"lstm_step 1 unrolled {model}"), unit="ms", goal=Goal(1.08))
        bench.compare(f"512 cells, 200 steps, batch {batch}, loop, 1 thread", ("Thalweg", bench.ours(1), f"lstm_step 1 loop {model}"),
                      ("TensorFlow", bench.peer("TensorFlow", 1), f"lstm_step 1 loop {model}"), unit="ms", goal=Goal(0.8))
