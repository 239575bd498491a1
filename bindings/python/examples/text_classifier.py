"""A classifier of texts learns from CSV files: each text is the mean of the vectors of its words.

    python3 text_classifier.py --make kjv.txt --data verses      # tables of verses of the Old and the New Testament
    python3 text_classifier.py --data verses --out testaments

The folder of --data has train.csv and test.csv with the columns `text` and `label`; the classes are the labels of train.csv. The
pipeline, its position and the model are one graph and one checkpoint, so a run that was stopped goes on as if it had not been.
Read it in this order: batches, Net, Model, train, main."""
import argparse
import csv
import pathlib
import time

import numpy as np

import thalweg as tw

COLUMNS = {"text": "string", "label": "string"}
OLD_TESTAMENT = 23145        # verses of the King James Bible before Matthew
WORDS, WIDTH = 1 << 16, 16   # numbers of words, and of the elements of a word's vector
BATCH, WINDOW = 64, 4096     # texts of a step, and those among which the next one is drawn


# ---- Data ----

def make(source, folder):
    """Writes the tables from a file with a verse a line, in the order of the Bible. Every fifth verse is for the test. The rows are in a random
    order, because a shuffle mixes only those that are near."""
    verses = pathlib.Path(source).read_text().splitlines()
    if len(verses) < OLD_TESTAMENT + 100:
        raise ValueError(f"{source}: {len(verses)} lines are no Bible with a verse a line")
    folder.mkdir(parents=True, exist_ok=True)
    for name, chosen in (("train", lambda k: k % 5 != 0), ("test", lambda k: k % 5 == 0)):
        with open(folder / f"{name}.csv", "w", newline="") as f:
            table = csv.writer(f)
            table.writerow(COLUMNS)
            order = [k for k in np.random.default_rng(1).permutation(len(verses)) if chosen(k)]
            table.writerows((verses[k], "old" if k < OLD_TESTAMENT else "new") for k in order)


def classes_of(folder):
    """The labels of the texts to train on, sorted."""
    found = {label.numpy().item() for label in tw.data.csv(str(folder / "train.csv"), {"label": "string"}).map(lambda row: row["label"])}
    if len(found) < 2:
        raise ValueError(f"{folder / 'train.csv'}: {len(found)} labels are too few")
    return sorted(found)


def batches(folder, seed):
    """The texts to train on, again and again, each time in another order."""
    return tw.data.csv(str(folder / "train.csv"), COLUMNS).shuffle(WINDOW, seed=seed).repeat().batch(BATCH)


# ---- The model ----

class Net(tw.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.vectors, self.head = tw.nn.Embedding(WORDS, WIDTH), tw.nn.Sequential(tw.nn.Dropout(0.2), tw.nn.Dense(classes))

    def forward(self, texts):
        """The logits of texts [n]."""
        plain = tw.ops.regex_replace(tw.ops.string_lower(texts), "[^a-z0-9]+", " ")
        places, words, shape = tw.ops.string_split_v2(plain, "")
        vectors = self.vectors(tw.ops.string_to_hash_bucket_fast(words, num_buckets=WORDS))
        sums = tw.ops.unsorted_segment_sum(vectors, places[:, 0], shape[0])
        counts = tw.ops.unsorted_segment_sum(tw.ops.ones_like(vectors[:, :1]), places[:, 0], shape[0])
        return self.head((sums / tw.ops.maximum(counts, 1.0)).reshape(-1, WIDTH))


class Model:
    def __init__(self, folder, classes, seed):
        tw.random.seed(seed)
        with tw.Graph() as self.graph:
            rows = batches(folder, seed).steps("position")
            self.start, net = rows.start, Net(len(classes))
            known = tw.ops.equal(tw.ops.expand_dims(rows.next["label"], 1), tw.ops.expand_dims(tw.constant(classes, "string"), 0))
            losses = tw.ops.sparse_softmax_cross_entropy_with_logits(net(rows.next["text"]), known.astype("int32").argmax(1)).loss
            self.loss, self.training = losses.mean(), tw.nn.training(self.graph)
            self.step = tw.train.Adam(0.01).minimize(self.loss)
            self.texts = tw.placeholder("string", [None], name="texts")
            self.answers = net(self.texts).argmax(1)
            self.init = tw.initializer(name="init")


def accuracy(session, model, folder, classes):
    """The share of the test's texts whose class is recognised."""
    right = total = 0
    for batch in tw.data.csv(str(folder / "test.csv"), COLUMNS).batch(512):
        answers = session.run(model.answers, {model.texts: batch["text"].numpy()})
        right += sum(classes[a] == label for a, label in zip(answers, batch["label"].numpy()))
        total += len(answers)
    return right / total


def train(session, model, options, log):
    """Goes on from the newest checkpoint up to that step."""
    with tw.Checkpointer(session, options.out / "checkpoints", every_steps=options.every, keep_last=2) as checkpoints:
        first, begun = checkpoints.restore(), time.monotonic()
        session.run(model.start)
        for step in range(first, options.steps):
            loss, _ = session.run([model.loss, model.step], {model.training: True})
            checkpoints.step(step + 1)
            if (step + 1) % options.every == 0:
                if log:
                    log.scalar("loss", loss, step + 1)
                if not options.quiet:
                    rate = (step + 1 - first) / (time.monotonic() - begun)
                    print(f"step {step + 1}/{options.steps}  loss {loss:.3f}  {rate * BATCH:.0f} texts/s", flush=True)


# ---- The command line ----

def main():
    parser = argparse.ArgumentParser(description="A classifier of texts learns from CSV files.")
    parser.add_argument("--make", metavar="TEXT", help="write the tables of --data from kjv.txt and end; tools/setup --print-data says where it is")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("verses"), help="folder of train.csv and test.csv")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("text_classifier"), help="folder for checkpoints; a run that finds "
                        "some there goes on from the newest")
    parser.add_argument("--steps", type=int, default=1500, help="training steps in all, runs before this one included")
    parser.add_argument("--every", type=int, default=100, help="steps between two checkpoints")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--logdir", type=pathlib.Path, help="folder for TensorBoard and thalweg plot: loss, accuracy, the graph")
    parser.add_argument("--quiet", action="store_true", help="only the last line")
    options = parser.parse_args()

    try:
        if options.make:
            make(options.make, options.data)
            return
        classes = classes_of(options.data)
        options.out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError, tw.Error) as e:
        parser.exit(1, f"text_classifier: {e}; --data says where the tables are, --make makes some\n")
    model = Model(options.data, classes, options.seed)
    with tw.Session(model.graph) as session:
        session.run(model.init)
        log = options.logdir and tw.SummaryWriter(options.logdir)
        if log:
            log.graph(model.graph)
        train(session, model, options, log)
        share = accuracy(session, model, options.data, classes)
        if log:
            log.scalar("accuracy", share, options.steps)
            log.close()
    print(f"text_classifier: test accuracy {100 * share:.2f} % after {options.steps} steps")


if __name__ == "__main__":
    main()
