"""Compares SaveV2, RestoreV2 and MergeV2Checkpoints with NumPy: whole tensors and slices of them, in one graph and through the files of
another; and missing tensors, tensors of another type, and invalid slices."""
import os
import pathlib
import tempfile

import numpy as np

import cases
import tw

TYPES = (np.float32, np.float64, np.float16, tw.bfloat16, np.int8, np.int64, np.uint16, np.bool_, np.complex64, tw.string)
rng = np.random.default_rng(7)


def texts(graph, values):
    return graph.constant(np.array([os.fsencode(v) for v in values], object))


def path_of(graph, path):
    return graph.constant(np.array(os.fsencode(path), object))


def save(path, tensors):
    """Saves tensors, each (name, slice text, array)."""
    graph = tw.Graph()
    names, slices, arrays = zip(*tensors)
    made = graph.add("SaveV2", path_of(graph, path), texts(graph, names), texts(graph, slices), *map(graph.constant, arrays), name="op",
                     dtypes=[x.dtype for x in arrays])
    graph.session().run([], targets=[made])


def restore(path, wanted):
    """Restores the tensors that `wanted` lists, each (name, slice text, type)."""
    graph = tw.Graph()
    names, slices, types = zip(*wanted)
    made = graph.add("RestoreV2", path_of(graph, path), texts(graph, names), texts(graph, slices), name="op",
                     dtypes=[np.dtype(t) for t in types])
    return graph.session().run(made.outputs)


def merge(paths, to, **attrs):
    graph = tw.Graph()
    made = graph.add("MergeV2Checkpoints", texts(graph, paths), path_of(graph, to), name="op", **attrs)
    graph.session().run([], targets=[made])


def some(dtype, shape):
    if dtype == tw.string:
        return np.array([b"%d" % v * v for v in range(int(np.prod(shape)))], object).reshape(shape)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.integers(0, 60, (*shape, np.dtype(dtype).itemsize), np.uint8).view(dtype).reshape(shape)  # bytes below 60 contain no NaN


def same(what, got, wanted):
    alike = got.dtype == wanted.dtype and got.shape == wanted.shape and got.tolist() == wanted.tolist()
    cases.holds(what, alike, f"{got!r} is not {wanted!r}")


def every_type(folder):
    tensors = [(f"{np.dtype(t)} {list(shape)}", "", some(t, shape)) for t in TYPES for shape in ((), (0, 3), (5,), (2, 3, 4))]
    save(folder / "types", tensors)
    for (name, _, x), got in zip(tensors, restore(folder / "types", [(name, "", x.dtype) for name, _, x in tensors])):
        same(name, got, x)


def slices(folder):
    """Saves tensors in slices and reads them whole and in other slices."""
    x, line = np.arange(60, dtype=np.int32).reshape(6, 10), np.arange(7.0)
    save(folder / "one", [("x", "6 10 0,4:-", x[:4]), ("line", "7 -", line)])
    save(folder / "two", [("x", "6 10 4,2:0,10", x[4:])])
    merge([folder / "one", folder / "two"], folder / "both")
    ways = (("", x), ("6 10 -:-", x), ("6 10 1,5:2,3", x[1:6, 2:5]), ("6 10 3,2:-", x[3:5]), ("6 10 6,0:-", x[6:]),
            ("6 10 0,6:10,0", x[:, 10:]))
    for text, wanted in ways:
        same(f"x as '{text}'", restore(folder / "both", [("x", text, np.int32)])[0], wanted)
    same("a slice that is all", restore(folder / "both", [("line", "7 2,3", np.float64)])[0], line[2:5])


def what_is_refused(folder):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    save(folder / "x", [("x", "", x)])

    def refuses(text, *parts, name="x", dtype=np.float32, path=folder / "x"):
        cases.refuses(f"'{text}'", lambda: restore(path, [(name, text, dtype)]), "RestoreV2 'op'", *parts)

    for text in ("0,1:-", "3 4", "3 4 -", "3 4 -:-:-", "3 4 0,1;-", "3 4 a,1:-", "3 4 -1,1:-", "3 4 0,1x:-", "3 x -:-", "-3 4 -:-", ":",
                 "3 4 0,99999999999999999999:-", "3 4 0:-", "3  4 -:-"):
        refuses(text, f"'{text}' is no slice")
    for text in ("3 4 4,0:-", "3 4 2,2:-", "3 4 -:0,5", "3 4 1,9223372036854775807:-"):
        refuses(text, f"'{text}' leaves the tensor")
    refuses("4 3 -:-", "x")
    refuses("", "none", name="none")
    refuses("", "x", "float, not int32", "dtypes", dtype=np.int32)
    refuses("", "nothing", path=folder / "nothing")
    cases.refuses("saving what is no slice", lambda: save(folder / "y", [("y", "3 4 0,3", x)]), "SaveV2 'op'", "no slice")
    cases.refuses("saving another shape", lambda: save(folder / "y", [("y", "3 4 0,2:-", x)]), "SaveV2 'op'")
    cases.refuses("merging what may be missing", lambda: merge([folder / "x"], folder / "z", allow_missing_files=True),
                  "allow_missing_files")
    cases.refuses("merging what is missing", lambda: merge([folder / "nothing"], folder / "z"), "nothing")
    left = sorted(path.name for path in folder.iterdir())
    cases.holds("nothing is left of what failed", all(name.startswith("x") for name in left), left)


for test in (every_type, slices, what_is_refused):
    with tempfile.TemporaryDirectory() as folder:
        try:
            test(pathlib.Path(folder))
        except tw.Error as error:
            cases.holds(test.__name__, False, error)
cases.finish()
