"""A convolutional net learns classes of pictures from JPEG files on disk, with augmentation.

    python3 image_classifier.py --make digits.csv --data digits      # a folder of JPEG files for each digit
    python3 image_classifier.py --data digits --out digits_net

The folder of --data has a folder for each class, with its .jpg files; every fifth file of a class is for the test. Each picture is moved,
scaled and changed in brightness and contrast at random. The random numbers follow from the seed and the number of the picture in the
training, and the pipeline's position is part of the checkpoint. So a run that was stopped in the middle of an epoch goes on as if it had
not been, bit for bit. Read it in this order: pictures, augmented, Model, train, main."""
import argparse
import pathlib
import time

import numpy as np

import thalweg as tw

SIDE, BATCH = 28, 50    # pixels of a picture's side, and pictures of a step
MOVED = 3               # pixels by which a picture is moved at most


# ---- Data ----

def make(source, folder):
    """Writes the digits of a table, 64 pixels of 0 to 16 and a label in each line, as JPEG files of 32x32 pixels."""
    table = np.loadtxt(source, delimiter=",", dtype=np.float32)
    if table.ndim != 2 or table.shape[1] != 65:
        raise ValueError(f"{source}: there must be 65 numbers in each line")
    for k, row in enumerate(table):
        large = tw.ops.resize_bilinear(row[:64].reshape(1, 8, 8, 1) * (255 / 16), np.int32([32, 32]))
        path = folder / str(int(row[64])) / f"{k:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tw.ops.encode_jpeg(tw.ops.cast(large[0], DstT="uint8"), quality=90).numpy().item())


def files(folder):
    """The names of the classes, and (files, labels) to train on and to test with."""
    classes = sorted(p.name for p in folder.iterdir() if p.is_dir())
    sides = ([], []), ([], [])
    for label, name in enumerate(classes):
        for k, path in enumerate(sorted((folder / name).glob("*.jpg"))):
            names, labels = sides[k % 5 == 0]
            names.append(str(path))
            labels.append(label)
    if len(classes) < 2 or len(sides[0][0]) < BATCH:
        raise ValueError(f"{folder}: {len(classes)} classes with {len(sides[0][0])} files to train on are too few")
    return classes, *((np.array(names, object), np.int32(labels)) for names, labels in sides)


def decoded(name):
    """The picture of a file: SIDE x SIDE pixels from 0 to 1."""
    grey = tw.ops.decode_jpeg(tw.ops.read_file(name), channels=1)
    return tw.ops.resize_area(tw.ops.expand_dims(grey, 0), np.int32([SIDE, SIDE]))[0] / 255.0


def augmented(picture, seed, number):
    """The picture, changed by random numbers of the training's picture `number`."""
    key = tw.ops.cast(tw.ops.expand_dims(number, 0), DstT="uint64")
    u = tw.ops.stateless_random_uniform_v2(np.int32([5]), key, np.array([seed, 0], np.uint64), np.int32(1))
    scale = 0.9 + 0.2 * u[0]
    inside = (1 - scale) * (SIDE / 2)
    moved = (2 * u[1:3] - 1) * MOVED + inside
    corner = tw.ops.concat_v2([moved, moved + scale * (SIDE - 1)], 0) / (SIDE - 1.0)
    seen = tw.ops.crop_and_resize(tw.ops.expand_dims(picture, 0), tw.ops.expand_dims(corner, 0), np.int32([0]), np.int32([SIDE, SIDE]))[0]
    return tw.ops.clip_by_value((seen - 0.5) * (0.8 + 0.4 * u[3]) + 0.5 + 0.2 * (u[4] - 0.5), 0.0, 1.0)


def pictures(names, labels, seed):
    """Batches of changed pictures and their labels, without end. scan counts the pictures, so its number is in the position, too."""
    d = tw.data.arrays(names, labels).shuffle(seed=seed).repeat()
    d = d.scan(np.int64(0), lambda count, *element: (count + 1, (count, *element)))
    return d.map(lambda number, name, label: (augmented(decoded(name), seed, number).reshape(SIDE, SIDE, 1), label)).batch(BATCH)


# ---- The model ----

class Model:
    def __init__(self, classes, names, labels, seed):
        tw.random.seed(seed)
        with tw.Graph() as self.graph:
            batch = pictures(names, labels, seed).steps("position")
            net = tw.nn.Sequential(tw.nn.Conv2D(16, 3, "relu"), tw.nn.MaxPool2D(), tw.nn.Conv2D(32, 3, "relu"), tw.nn.MaxPool2D(), tw.nn.Flatten(),
                                   tw.nn.Dropout(0.3), tw.nn.Dense(len(classes)))
            self.start, self.training, (self.seen, wanted) = batch.start, tw.nn.training(self.graph), batch.next
            self.loss = tw.ops.sparse_softmax_cross_entropy_with_logits(net(self.seen.reshape(-1, SIDE, SIDE, 1)), wanted).loss.mean()
            self.step = tw.train.Adam(0.002).minimize(self.loss)
            self.pictures = tw.placeholder("float32", [None, SIDE, SIDE, 1], name="pictures")
            self.answers = net(self.pictures).argmax(1)
            self.init = tw.initializer(name="init")


def accuracy(session, model, names, labels):
    """The share of the test's pictures whose class is recognised."""
    right = 0
    for batch, wanted in tw.data.arrays(names, labels).map(lambda name, label: (decoded(name), label)).batch(200):
        right += int(np.sum(session.run(model.answers, {model.pictures: batch.numpy()}) == wanted.numpy()))
    return right / len(labels)


def train(session, model, options, log):
    """Goes on from the newest checkpoint up to that step."""
    with tw.Checkpointer(session, options.out / "checkpoints", every_steps=options.every, keep_last=2) as checkpoints:
        first, begun = checkpoints.restore(), time.monotonic()
        session.run(model.start)
        for step in range(first, options.steps):
            loss, seen, _ = session.run([model.loss, model.seen, model.step], {model.training: True})
            checkpoints.step(step + 1)
            if (step + 1) % options.every == 0:
                if log:
                    log.scalar("loss", loss, step + 1)
                    log.images("pictures", seen, step + 1)
                if not options.quiet:
                    rate = (step + 1 - first) / (time.monotonic() - begun)
                    print(f"step {step + 1}/{options.steps}  loss {loss:.3f}  {rate * BATCH:.0f} pictures/s", flush=True)


# ---- The command line ----

def main():
    parser = argparse.ArgumentParser(description="A convolutional net learns classes of pictures from JPEG files.")
    parser.add_argument("--make", metavar="TABLE", help="write the files of --data from digits.csv and end; tools/setup --print-data says where it is")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("digits"), help="folder with a folder of .jpg files for each class")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("image_classifier"), help="folder for checkpoints; a run that finds "
                        "some there goes on from the newest")
    parser.add_argument("--steps", type=int, default=600, help="training steps in all, runs before this one included")
    parser.add_argument("--every", type=int, default=50, help="steps between two checkpoints")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--logdir", type=pathlib.Path, help="folder for TensorBoard and thalweg plot: loss, pictures, accuracy, the graph")
    parser.add_argument("--quiet", action="store_true", help="only the last line")
    options = parser.parse_args()

    try:
        if options.make:
            make(options.make, options.data)
            return
        classes, (names, labels), test = files(options.data)
        options.out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as e:
        parser.exit(1, f"image_classifier: {e}; --data says where the pictures are, --make makes some\n")
    model = Model(classes, names, labels, options.seed)
    with tw.Session(model.graph) as session:
        session.run(model.init)
        log = options.logdir and tw.SummaryWriter(options.logdir)
        if log:
            log.graph(model.graph)
        train(session, model, options, log)
        share = accuracy(session, model, *test)
        if log:
            log.scalar("accuracy", share, options.steps)
            log.close()
    print(f"image_classifier: test accuracy {100 * share:.2f} % after {options.steps} steps")


if __name__ == "__main__":
    main()
