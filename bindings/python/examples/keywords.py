"""A recogniser of spoken words: spectrograms, a GRU, and connectionist temporal classification over letters.

    python3 keywords.py --make --data spoken             # espeak-ng speaks the words; apt-get install espeak-ng
    python3 keywords.py --data spoken --out keywords

The folder of --data has train/ and test/ with files WORD-ANYTHING.wav. --make varies voice, speed and pitch; none of the test's voices is
trained on. Noise is added while the files are read. The net gives letters for the pieces of a sound, and no word of a list: it learns
where in a sound a letter is from the spelling alone. The word that is recognised is the one of the list whose spelling is the most
likely. A run that was stopped goes on as if it had not been. Read it in this order: sounds, Model, train, main."""
import argparse
import pathlib
import shutil
import subprocess
import time

import numpy as np

import thalweg as tw

WORDS = "yes no up down left right on off stop go".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"            # classes; the one behind them is the blank
TRAINED = ["en-gb", "en-us", "en-gb+f1", "en-us+f2", "en-gb+f3", "en-us+m1", "en-gb+m2", "en-us+m3", "en-gb+m5", "en-us+f5", "en-us+klatt2",
           "en-gb+m7"]
HELD_OUT = ["en-us+m4", "en-gb+f4", "en-us+m6", "en-gb+klatt3"]
SPEEDS, PITCHES = (130, 160, 190), (30, 50, 70)   # words a minute, and espeak-ng's scale from 0 to 99
RATE = 22050                                      # samples a second that espeak-ng writes
FRAME, STRIDE, FEATURES = 512, 220, 20            # samples of a piece of sound and between two; numbers that describe a piece
STACKED = 2                                       # pieces that the net reads at once
CELLS, BATCH, EDGES = 64, 32, [32, 44, 56]        # EDGES: the lengths between which sounds are batched together


# ---- Data ----

def make(folder):
    """Lets espeak-ng speak all words in all ways, as files of sound."""
    speaker = shutil.which("espeak-ng")
    if not speaker:
        raise OSError("espeak-ng is not there; apt-get install espeak-ng")
    for side, voices in (("train", TRAINED), ("test", HELD_OUT)):
        (folder / side).mkdir(parents=True, exist_ok=True)
        for word in WORDS:
            for voice in voices:
                for speed in SPEEDS:
                    for pitch in PITCHES:
                        path = folder / side / f"{word}-{voice}-{speed}-{pitch}.wav"
                        subprocess.run([speaker, "-v", voice, "-s", str(speed), "-p", str(pitch), "-w", path, word], check=True)


def files(folder):
    """The names of the files of a folder, and the numbers of their words."""
    names = sorted(str(p) for p in folder.glob("*.wav"))
    words = [pathlib.Path(name).name.split("-")[0] for name in names]
    unknown = sorted(set(words) - set(WORDS))
    if unknown or len(names) < BATCH:
        raise ValueError(f"{folder}: {len(names)} files" + (f", and {unknown[0]} is no word of the list" if unknown else " are too few"))
    return np.array(names, object), np.int32([WORDS.index(w) for w in words])


def features(name, number, seed, noise):
    """What describes a sound: [time, STACKED * FEATURES]. number: of the sound in the training, from which its noise follows."""
    samples, _ = tw.ops.decode_wav(tw.ops.read_file(name), desired_channels=1)
    key = tw.ops.cast(tw.ops.expand_dims(number, 0), DstT="uint64")
    strength = noise * tw.ops.stateless_random_uniform_v2(np.int32([]), key, np.array([seed, 0], np.uint64), np.int32(1))
    hiss = tw.ops.stateless_random_normal_v2(tw.ops.shape(samples), key, np.array([seed, 1], np.uint64), np.int32(1))
    pieces = tw.ops.audio_spectrogram(samples + hiss * strength, window_size=FRAME, stride=STRIDE, magnitude_squared=True)
    about = tw.ops.mfcc(pieces, np.int32(RATE), dct_coefficient_count=FEATURES)[0]
    whole = tw.ops.shape(about)[0] // STACKED * STACKED
    return tw.ops.reshape(about[:whole], np.int32([-1, STACKED * FEATURES]))


def sounds(names, words, seed, noise, training):
    """Batches (features [n, time, ..], lengths [n], words [n]) of sounds of similar lengths. scan counts the sounds for their noise."""
    d = tw.data.arrays(names, words)
    if training:
        d = d.shuffle(seed=seed).repeat()
    d = d.scan(np.int64(0), lambda count, *element: (count + 1, (count, *element)))

    def described(number, name, word):
        x = features(name, number, seed, noise)
        return x, tw.ops.shape(x)[0], word
    d = d.map(described)
    if training:
        return d.bucket_by_sequence_length(lambda x, length, word: length, EDGES, [BATCH] * (len(EDGES) + 1))
    return d.padded_batch(BATCH)


# ---- The model ----

SPELLED = np.array([[LETTERS.index(c) for c in w] + [-1] * (5 - len(w)) for w in WORDS], np.int32)


def losses(logits, lengths, words):
    """Minus the logarithm of the probability that each sound has the letters of its word."""
    letters = tw.ops.gather_v2(SPELLED, words, 0)
    places = tw.ops.where(letters >= 0)
    return tw.ops.ctc_loss(logits, places, tw.ops.gather_nd(letters, places), lengths).loss


class Net(tw.nn.Module):
    def __init__(self):
        super().__init__()
        self.recurrent = tw.nn.Bidirectional(lambda reverse: tw.nn.GRU(CELLS, sequences=True, reverse=reverse))
        self.head = tw.nn.Dense(len(LETTERS) + 1)

    def forward(self, x, lengths):
        """The logits [time, n, letters and the blank] of sounds [n, time, ..]."""
        hidden = self.recurrent(x * 0.1, lengths)
        return self.head(hidden).transpose(1, 0, 2)


class Model:
    def __init__(self, names, words, seed, noise):
        tw.random.seed(seed)
        with tw.Graph() as self.graph:
            batch, net = sounds(names, words, seed, noise, True).steps("position"), Net()
            self.start, (x, lengths, wanted) = batch.start, batch.next
            self.loss = losses(net(x, lengths), lengths, wanted).mean()
            self.step = tw.train.Adam(0.003).minimize(self.loss, clip=1.0)

            self.x, self.lengths = tw.placeholder("float32", [None, None, STACKED * FEATURES]), tw.placeholder("int32", [None])
            logits = net(self.x, self.lengths)
            each = [losses(logits, self.lengths, tw.ops.fill(tw.ops.shape(self.lengths), np.int32(k))) for k in range(len(WORDS))]
            self.answers = tw.ops.pack(each, axis=1).argmin(1)
            self.init = tw.initializer(name="init")


def accuracy(session, model, names, words, seed, noise):
    """The share of sounds whose word is recognised."""
    right = 0
    for x, lengths, wanted in sounds(names, words, seed + 1, noise, False):
        answers = session.run(model.answers, {model.x: x.numpy(), model.lengths: lengths.numpy()})
        right += int(np.sum(answers == wanted.numpy()))
    return right / len(words)


def train(session, model, options, log):
    """Goes on from the newest checkpoint up to that step."""
    with tw.Checkpointer(session, options.out / "checkpoints", every_steps=options.every, keep_last=2) as checkpoints:
        first, begun = checkpoints.restore(), time.monotonic()
        session.run(model.start)
        for step in range(first, options.steps):
            loss, _ = session.run([model.loss, model.step])
            checkpoints.step(step + 1)
            if (step + 1) % options.every == 0:
                if log:
                    log.scalar("loss", loss, step + 1)
                if not options.quiet:
                    rate = (step + 1 - first) / (time.monotonic() - begun)
                    print(f"step {step + 1}/{options.steps}  loss {loss:.3f}  {rate * BATCH:.0f} words/s", flush=True)


# ---- The command line ----

def main():
    parser = argparse.ArgumentParser(description="A recogniser of spoken words: spectrograms, a GRU, connectionist temporal classification.")
    parser.add_argument("--make", action="store_true", help="let espeak-ng speak the words into --data, and end")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("spoken"), help="folder with train/ and test/, of WORD-ANYTHING.wav")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("keywords"), help="folder for checkpoints; a run that finds some there "
                        "goes on from the newest")
    parser.add_argument("--steps", type=int, default=600, help="training steps in all, runs before this one included")
    parser.add_argument("--every", type=int, default=50, help="steps between two checkpoints")
    parser.add_argument("--noise", type=float, default=0.02, help="the strongest noise, of sounds from -1 to 1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--logdir", type=pathlib.Path, help="folder for TensorBoard and thalweg plot: loss, accuracy, the graph")
    parser.add_argument("--quiet", action="store_true", help="only the last line")
    options = parser.parse_args()

    try:
        if options.make:
            make(options.data)
            return
        names, words = files(options.data / "train")
        test = files(options.data / "test")
        options.out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError, subprocess.CalledProcessError) as e:
        parser.exit(1, f"keywords: {e}; --data says where the sounds are, --make makes some\n")
    model = Model(names, words, options.seed, options.noise)
    with tw.Session(model.graph) as session:
        session.run(model.init)
        log = options.logdir and tw.SummaryWriter(options.logdir)
        if log:
            log.graph(model.graph)
        train(session, model, options, log)
        share = accuracy(session, model, *test, options.seed, options.noise)
        if log:
            log.scalar("accuracy", share, options.steps)
            log.close()
    print(f"keywords: {100 * share:.2f} % of the words of other voices after {options.steps} steps")


if __name__ == "__main__":
    main()
