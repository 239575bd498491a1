"""Runs the node cases that PyPI's onnx generates, as onnx_cases.py runs those of Debian's package, and compares with onnx_generated_expected.txt.

usage: onnx_generated_peer.py [--into FOLDER] [OPTIONS of onnx_cases.py]
--into FOLDER: writes the cases there, unless they are there, and keeps them. Exit status: as onnx_cases.py, 77 without onnx."""
import importlib.util
import pathlib
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).parent


def serialised(value, declared):
    """Returns a value of a case as onnx's own writer of test data stores it."""
    from onnx import TensorProto, numpy_helper
    if isinstance(value, TensorProto):
        return value.SerializeToString()
    if declared.HasField("map_type"):
        return numpy_helper.from_dict(value).SerializeToString()
    if declared.HasField("sequence_type"):
        return numpy_helper.from_list(value).SerializeToString()
    if declared.HasField("optional_type"):
        return numpy_helper.from_optional(value).SerializeToString()
    return numpy_helper.from_array(value).SerializeToString()


def write(folder):
    """Writes every case: FOLDER/node/NAME/model.onnx and test_data_set_0. Returns how many there are."""
    from onnx.backend.test.case.node import collect_testcases
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        data = folder / "node" / case.name / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        (data.parent / "model.onnx").write_bytes(case.model.SerializeToString())
        for what, values, declared in (("input", case.data_sets[0][0], case.model.graph.input), ("output", case.data_sets[0][1], case.model.graph.output)):
            for i, value in enumerate(values):
                (data / f"{what}_{i}.pb").write_bytes(serialised(value, declared[i].type))
    return len(cases)


def main(arguments):
    if importlib.util.find_spec("onnx") is None:
        print("skipped: there is no onnx; tools/setup --peers installs it")
        return 77
    import onnx_cases
    into = pathlib.Path(arguments.pop(arguments.index("--into") + 1)) if "--into" in arguments else None
    if into:
        arguments.remove("--into")
    with tempfile.TemporaryDirectory() as made:
        folder = into or pathlib.Path(made)
        if not (folder / "node").is_dir():
            print(f"onnx generated {write(folder)} cases", flush=True)
        return onnx_cases.main(["--all", "--data", str(folder), "--expected", str(HERE / "onnx_generated_expected.txt"), *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
