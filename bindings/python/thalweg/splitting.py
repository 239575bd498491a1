"""How a data service splits the sources of a pipeline: each split has some of the files, or some of the rows.

A service builds the pipeline in a graph that has a Splitting. Sources then give the elements of one split, whose number each step feeds,
and methods that count the elements of a whole pass refuse to be built."""
from typing import TYPE_CHECKING, Any, Optional

from .elements import Spec
from .output import Output
from .shares import MOST_SPLITS

if TYPE_CHECKING:
    from .graph import Graph

SHARDING = ("dynamic", "file", "off")
_ROWS = 64  # splits of a source of rows, unless the program or the number of rows says fewer


class Splitting:
    """The splits of the pipeline that is built in a graph. number, count: placeholders: of the split of a step, and of all splits."""

    def __init__(self, graph: "Graph", sharding: str):
        self.sharding = sharding
        self.number: Output = graph.placeholder("int64", [], name="split")
        self.count: Output = graph.placeholder("int64", [], name="splits")
        self._files: list[int] = []  # of each source, how many
        self._rows: list[int] = []
        graph.__dict__["_splitting"] = self

    @staticmethod
    def of(graph: "Graph") -> Optional["Splitting"]:
        """That of a graph; None if its pipelines are whole."""
        found: Optional[Splitting] = graph.__dict__.get("_splitting")
        return None if found is None or found.sharding == "off" else found

    def files(self, graph: "Graph", names: Output) -> Output:
        """The files of the split, of a constant text or vector of texts."""
        shape = names.shape
        if names.operation.type != "Const" or shape is None:
            raise ValueError("a data service splits a pipeline by its files, so their names must be known when it is built; give a list of "
                             "paths, or sharding='off'")
        total = 1 if shape == () else int(shape[0] or 0)
        self._files.append(total)
        vector = graph.op("Reshape", names, graph.constant([total], "int64"))
        one = graph.constant([1], "int64")
        return graph.op("StridedSlice", vector, graph.op("Reshape", self.number, one), graph.constant([total], "int64"),
                        graph.op("Reshape", self.count, one))

    def rows(self, graph: "Graph", dataset: Output, spec: Spec, total: int) -> Output:
        """The rows of the split."""
        if self.sharding == "file":
            raise ValueError("sharding is 'file', and a source of the pipeline has rows and no files; use sharding='dynamic'")
        self._rows.append(total)
        return graph.op("ShardDataset", dataset, self.count, self.number, output_types=spec.types, output_shapes=spec.shapes)

    def total(self, wanted: Optional[int]) -> int:
        """The number of splits, once the pipeline is built. wanted: by the program; None: the number of files, or up to 64 of rows."""
        if self.sharding == "off":
            if wanted is not None:
                raise ValueError(f"splits is {wanted}, and sharding='off' has no splits; leave one of them out")
            return 1
        if not self._files and not self._rows:
            raise ValueError("the pipeline has no source that a data service can split (files, records, lines, arrays, range); use "
                             "sharding='off'")
        if wanted is None:
            found = max(1, *self._files, *(min(n, _ROWS) for n in self._rows))
            if found > MOST_SPLITS:
                raise ValueError(f"the pipeline has {found} files, and a data service has at most {MOST_SPLITS} splits; give a number of splits")
            return found
        if self.sharding == "file":
            raise ValueError(f"splits is {wanted}, and with sharding='file' each file is a split; leave out splits, or use "
                             "sharding='dynamic'")
        if not isinstance(wanted, int) or not 1 <= wanted <= MOST_SPLITS:
            raise ValueError(f"splits is {wanted!r}; it must be a number from 1 to {MOST_SPLITS}")
        return wanted


def whole(graph: "Graph", what: str, instead: str) -> None:
    """Refuses a step of a pipeline that needs the whole pass, in a graph whose pipelines are split. what: its name.   instead: advice."""
    if Splitting.of(graph) is not None:
        raise ValueError(f"{what} needs the elements of the whole pass, and a data service reads a pipeline in splits; {instead}, or use "
                         "sharding='off'")


def split_files(graph: "Graph", names: Output) -> Output:
    """The names of files, or those of the split."""
    splitting = Splitting.of(graph)
    return names if splitting is None else splitting.files(graph, names)


def split_rows(graph: "Graph", dataset: Output, spec: Spec, total: Any) -> Output:
    """A dataset of rows, or those of the split."""
    splitting = Splitting.of(graph)
    return dataset if splitting is None else splitting.rows(graph, dataset, spec, int(total))
