"""Positions of trainers in a data service (shares), and how pipelines are split (splitting); without a cluster."""
import json
import random

import numpy as np
import pytest

import thalweg as tw
from thalweg import data
from thalweg.shares import Place, joined, order
from thalweg.splitting import Splitting
from thalweg.taken import Stream, Taken


class Trainer:
    """Takes elements as a trainer does that has `cycle` splits open. sizes: of the splits."""

    def __init__(self, place, sizes, cycle):
        self.place, self.sizes, self.cycle = place, sizes, cycle

    def begin(self, at):
        share = self.place.share(self.place.epoch)
        if self.place.begun < len(share):
            self.place.open.insert(at, list(share[self.place.begun]))
            self.place.begun += 1

    def take(self):
        """The next element, as (epoch, split, number); None at the end of the epoch."""
        place = self.place
        while len(place.open) < self.cycle and place.begun < len(place.share(place.epoch)):
            self.begin(len(place.open))
        while place.open:
            at = place.turn % len(place.open)
            split, count = place.open[at]
            if count < self.sizes[split]:
                place.open[at][1] += 1
                place.turn = at + 1
                return place.epoch, split, count
            del place.open[at]
            place.turn = at
            self.begin(at)
        return None


@pytest.mark.parametrize("trial", range(40))
def test_each_element_is_taken_once_whenever_the_number_of_trainers_changes(trial):
    drawn = random.Random(trial)
    sizes, seed, epochs, cycle = [drawn.randint(0, 5) for _ in range(drawn.randint(1, 9))], drawn.choice([None, 3]), 3, drawn.randint(1, 3)
    n, seen = drawn.randint(1, 4), []
    all = [Trainer(Place("d", len(sizes), seed, t, n), sizes, cycle) for t in range(n)]
    active = set(range(n))
    while active:
        if drawn.random() < 0.05:
            saved, n = [Place.from_bytes(t.place.to_bytes()) for t in all], drawn.randint(1, 4)
            drawn.shuffle(saved)
            all = [Trainer(joined(saved, t, n), sizes, cycle) for t in range(n)]
            active = set(range(n))
        k = drawn.choice(sorted(active))
        if (element := all[k].take()) is not None:
            seen.append(element)
        elif all[k].place.epoch + 1 < epochs:
            all[k].place = all[k].place.at(all[k].place.epoch + 1)
        else:
            active.discard(k)
    assert sorted(seen) == sorted((e, s, i) for e in range(epochs) for s, size in enumerate(sizes) for i in range(size))


def test_an_order_is_the_same_in_every_process_and_version():
    assert order(5, None, 3) == [0, 1, 2, 3, 4]
    assert order(8, 1, 0) == [6, 2, 3, 5, 7, 4, 0, 1] and order(8, 1, 1) == [4, 3, 6, 0, 2, 1, 5, 7]
    assert order(100, 1, 1) != order(100, 2, 1)


def place(**more):
    return Place(**{"dataset": "d", "splits": 4, "seed": None, "trainer": 0, "trainers": 2, **more})


@pytest.mark.parametrize("change", [dict(splits=0), dict(splits="4"), dict(trainer=2), dict(trainers=0), dict(begun=3), dict(begun=-1), dict(turn=1),
                                    dict(open=[[0, 1]]), dict(open=3), dict(begun=1, open=[[1, 0]]), dict(begun=1, open=[[0, 0], [0, 0]]),
                                    dict(begun=1, open=[[0, -1]]), dict(begun=1, open=[[0]]), dict(begun=1, open=[[[], 0]]), dict(epoch=True),
                                    dict(carried=[[0]]), dict(carried=[[0, [[4, 0]]]]), dict(carried={}), dict(dataset=1), dict(more=1),
                                    {"thalweg.data_service": 2}])
def test_damaged_positions_are_refused(change):
    record = {**json.loads(place().to_bytes()), **change}
    with pytest.raises(ValueError, match="position"):
        Place.from_bytes(json.dumps(record).encode())


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"{}", b"[" * 100_000])
def test_other_bytes_are_refused(data):
    with pytest.raises(ValueError, match="no position"):
        Place.from_bytes(data)


def test_positions_of_other_trainers_are_refused():
    with pytest.raises(ValueError, match="trainers 0; give those of all 2"):
        joined([place()], 0, 1)
    with pytest.raises(ValueError, match="differ in 'seed'"):
        joined([place(), place(trainer=1, seed=5)], 0, 1)
    with pytest.raises(ValueError, match="trainers 0, 0; give"):
        joined([place(), place()], 0, 1)


def test_a_failed_stream_fails_each_call_whatever_others_have():
    taken, good, bad = Taken(2, 100), Stream(), Stream()
    assert taken.reserve(good) and taken.reserve(bad)
    taken.add(good, [])
    assert taken.next_of_any([good, bad], 1) == []
    assert taken.reserve(good)
    taken.add(good, [])
    taken.end(bad, tw.UnavailableError("it is lost"))
    for _ in range(3):
        with pytest.raises(tw.UnavailableError, match="it is lost"):
            taken.next_of_any([good, bad], 1)


def split_elements(dataset, sharding="dynamic", wanted=None):
    """The elements of each split of a dataset, run in this process."""
    graph = tw.Graph()
    splitting = Splitting(graph, sharding)
    value, spec = dataset._in(graph)
    attrs = dict(output_types=spec.types, output_shapes=spec.shapes)
    iterator = graph.op("IteratorV2", shared_name="", container="", **attrs)
    start, got = graph.op("MakeIterator", value, iterator), graph.op("IteratorGetNext", iterator, **attrs)
    total, found = splitting.total(wanted), []
    with tw.Session(graph) as session:
        for k in range(total):
            session.run(start, {splitting.number: np.int64(k), splitting.count: np.int64(total)})
            found.append([])
            try:
                while True:
                    found[-1].append(session.run(got[0]))
            except tw.OutOfRangeError:
                pass
    return found


def test_rows_are_split():
    found = split_elements(data.range(10).map(lambda x: x * 2), wanted=3)
    assert found == [[0, 6, 12, 18], [2, 8, 14], [4, 10, 16]]
    assert len(split_elements(data.range(1000))) == 64 and len(split_elements(data.arrays(np.arange(3)))) == 3
    assert split_elements(data.range(0)) == [[]]


def test_files_are_split(tmp_path):
    names = []
    for k in range(3):
        (tmp_path / f"{k}.txt").write_text(f"{k}a\n{k}b\n")
        names.append(str(tmp_path / f"{k}.txt"))
    assert split_elements(data.lines(names)) == [[b"0a", b"0b"], [b"1a", b"1b"], [b"2a", b"2b"]]
    assert split_elements(data.lines(names), wanted=2) == [[b"0a", b"0b", b"2a", b"2b"], [b"1a", b"1b"]]
    assert split_elements(data.lines(names[0]), wanted=2) == [[b"0a", b"0b"], []]
    inner = data.arrays(np.array(names, object)).flat_map(data.lines)
    assert sum(split_elements(inner), []) == [b"0a", b"0b", b"1a", b"1b", b"2a", b"2b"], "files inside a function are whole"
    both = data.lines(names).concatenate(data.lines(names[:1]))
    assert sorted(sum(split_elements(both, "file"), [])) == sorted([b"0a", b"0b", b"1a", b"1b", b"2a", b"2b", b"0a", b"0b"])


FOUR = data.range(4)


@pytest.mark.parametrize("pipeline", [FOUR.take(1), FOUR.skip(1), FOUR.shard(2, 1), FOUR.repeat(), FOUR.cache(), FOUR.scan(0, lambda s, x: (s, x)),
                                      FOUR.take_while(lambda x: x < 2), data.zip(FOUR, FOUR), data.generator(lambda: [1], "int64", ())])
def test_pipelines_that_need_the_whole_pass_are_refused(pipeline):
    with pytest.raises(ValueError, match="split|data service"):
        split_elements(pipeline)


def test_wrong_splits_are_refused():
    for wanted in (0, -1, 1.5, "2"):
        with pytest.raises(ValueError, match="splits is"):
            split_elements(data.range(4), wanted=wanted)
    with pytest.raises(ValueError, match="rows and no files"):
        split_elements(data.range(4), "file")
    with pytest.raises(ValueError, match="each file is a split"):
        split_elements(data.lines("a"), "file", 3)
    with pytest.raises(ValueError, match="has no splits"):
        split_elements(data.range(4), "off", 3)
