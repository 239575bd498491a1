"""Runs ONNX's test data, the 1,072 cases of Debian's package libonnx-testdata, through thalweg.load, and compares the set of failures with
onnx_cases_expected.txt: an unlisted failure is an error, and so is a listed case that passes.

usage: onnx_cases.py [--all] [--only PATTERN]... [--messages] [--data FOLDER --expected FILE]
  (nothing)     a selection of at most 60 cases
  --all         every case
  --only        cases whose name fits a pattern such as 'node/test_pad*'; may be repeated
  --messages    print each failure, also the expected ones
  --data, --expected    other cases, and the list of those that fail
Exit status: 0 as expected, 1 not, 2 wrong arguments, 77 the package is not installed.

A case passes if types and shapes are equal and numbers differ by at most 1e-5 + 1e-3 * |expected|, which is the tolerance of ONNX's own
runner. Ten cases have random results; onnx_random.py says what is compared there."""
import argparse
import fnmatch
import pathlib
import sys

import numpy as np
import thalweg as tw

import onnx_messages
import onnx_random
import onnx_values

DATA = pathlib.Path("/usr/share/libonnx-testdata/data")
HERE = pathlib.Path(__file__).parent
SELECTION = """abs add_bcast and_bcast4v3d argmax_negative_axis_keepdims_random averagepool_2d_same_upper batchnorm_epsilon bitshift_left_uint8
    cast_FLOAT_to_BFLOAT16 castlike_DOUBLE_to_FLOAT16 clip_default_int8_min compress_negative_axis concat_3d_axis_negative_2
    constantofshape_int_shape_zero convtranspose_pads cumsum_2d_negative_axis depthtospace_crd_mode dynamicquantizelinear einsum_batch_diagonal
    eyelike_populate_off_main_diagonal flatten_negative_axis3 gather_elements_negative_indices gathernd_example_int32_batch_dim1
    gemm_all_attributes gridsample_bicubic gru_seq_length if_seq layer_normalization_4d_axis_negative_2 loop13_seq lstm_with_peepholes
    maxpool_2d_same_lower maxunpool_export_with_output_shape mod_mixed_sign_float16 mvn nllloss_NCd1d2_with_weight_reduction_mean
    onehot_negative_indices optional_has_element_empty pow_types_int32_float32 qlinearconv range_float_type_positive_delta
    reduce_sum_empty_axes_input_noop_random reflect_pad reshape_allowzero_reordered resize_downsample_scales_cubic reversesequence_batch
    roialign_aligned_true scan9_sum scatter_elements_with_duplicate_indices sce_mean_weight_ii_4d_log_prob sequence_map_add_2_sequences
    shape_clip_start slice_neg_steps split_zero_size_splits stft_with_window strnormalizer_export_monday_insensintive_upper_twodim
    tfidfvectorizer_tf_uniandbigrams_skip5 top_k_smallest training_dropout_mask tril_out_neg unique_sorted_with_axis_3d
    where_long_example""".split()


# In these cases, the data gives input `like` another shape than the model declares. Only its element type matters.
WRONG_SHAPE = [f"node/test_castlike_{kinds}{form}" for kinds in ("BFLOAT16_to_FLOAT", "FLOAT_to_BFLOAT16") for form in ("", "_expanded")]


class Wrong(Exception):
    """A result that differs from the expected one."""


def names(root):
    """Returns the names of all cases: kind of case and folder, as in node/test_abs."""
    return sorted(str(model.parent.relative_to(root)) for model in root.glob("*/*/model.onnx"))


def files(folder, what):
    return [folder / f"{what}_{i}.pb" for i in range(len(list(folder.glob(f"{what}_*.pb"))))]


def near(got, expected, where):
    """Raises Wrong unless the value is the expected one."""
    if isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            raise Wrong(f"{where} is {got!r}; expected a sequence of {len(expected)}")
        for i, (g, e) in enumerate(zip(got, expected)):
            near(g, e, f"{where}[{i}]")
        return
    if expected is onnx_messages.EMPTY or got is onnx_messages.EMPTY:
        if got is not expected:
            raise Wrong(f"{where} is {got!r}; expected {expected!r}")
        return
    if got.dtype != expected.dtype or got.shape != expected.shape:
        raise Wrong(f"{where} is {got.dtype}{list(got.shape)}; expected {expected.dtype}{list(expected.shape)}")
    if expected.dtype.kind not in "fc":
        fits = got == expected
    else:
        with np.errstate(all="ignore"):
            fits = (got == expected) | (np.abs(got - expected) <= 1e-5 + 1e-3 * np.abs(expected)) | (np.isnan(got) & np.isnan(expected))
    fits = np.asarray(fits, bool)
    if not fits.all():
        at = tuple(int(i) for i in np.argwhere(~fits)[0])
        raise Wrong(f"{where}: {int((~fits).sum())} of {fits.size} elements differ, first {list(at)}: {got[at]!r}, expected {expected[at]!r}")


def run(name, root=DATA):
    """Runs a case. Raises Wrong, or the error of the runtime."""
    folder = root / name
    inputs, outputs = onnx_messages.interface((folder / "model.onnx").read_bytes())
    model = tw.load(folder / "model.onnx")
    data = folder / "test_data_set_0"
    fed = {key: onnx_messages.value(file.read_bytes(), kind) for (key, kind), file in zip(inputs, files(data, "input"))}
    if name in WRONG_SHAPE and root == DATA:
        fed["like"] = np.broadcast_to(fed["like"], fed["input"].shape).copy()
    results = model.run({key: onnx_values.to_runtime(fed[key], kind) for key, kind in inputs if key in fed}, as_tensors=True)
    got, expected = {}, {}
    for (key, kind), file in zip(outputs, files(data, "output")):
        expected[key] = onnx_messages.value(file.read_bytes(), kind)
        got[key] = onnx_values.from_runtime(results[key], kind)
    if onnx_random.is_random(name):
        onnx_random.check(name, fed, got, expected)
        return
    for key in expected:
        near(got[key], expected[key], f"output '{key}'")


def expected_failures(file):
    """Returns the reasons of the cases that fail: {name: reason}."""
    found = {}
    for line in file.read_text().splitlines():
        if line and not line.startswith("#"):
            name, reason = line.split(": ", 1)
            found[name] = reason
    return found


def main(words=None):
    arguments = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    arguments.add_argument("--all", action="store_true")
    arguments.add_argument("--only", action="append", default=[])
    arguments.add_argument("--messages", action="store_true")
    arguments.add_argument("--data", type=pathlib.Path, default=DATA)
    arguments.add_argument("--expected", type=pathlib.Path, default=HERE / "onnx_cases_expected.txt")
    wanted = arguments.parse_args(words)
    if not wanted.data.is_dir():
        print(f"skipped: there is no {wanted.data}; tools/setup installs libonnx-testdata")
        return 77
    listed, everything = expected_failures(wanted.expected), names(wanted.data)
    selected = SELECTION if wanted.data == DATA else []
    if unknown := sorted(set(listed) - set(everything)) + [n for n in selected if f"node/test_{n}" not in everything]:
        print(f"no such cases: {', '.join(unknown)}")
        return 1
    chosen = everything
    if wanted.only:
        chosen = [n for n in everything if any(fnmatch.fnmatchcase(n, p) for p in wanted.only)]
    elif not wanted.all:
        chosen = [f"node/test_{n}" for n in selected]
    failures, unexpected = {}, []
    for name in chosen:
        try:
            run(name, wanted.data)
        except Exception as e:  # whatever the runtime refuses, and whatever the harness cannot convert
            failures[name] = f"{type(e).__name__}: {e}"
            if wanted.messages or name not in listed:
                print(f"{name}: {failures[name]}", flush=True)
            if name not in listed:
                unexpected.append(name)
    passing = [name for name in chosen if name in listed and name not in failures]
    for name in passing:
        print(f"{name}: passes, but {wanted.expected.name} lists it as: {listed[name]}")
    print(f"{len(chosen) - len(failures)} of {len(chosen)} cases pass; {len(failures) - len(unexpected)} fail as listed, "
          f"{len(unexpected)} fail unlisted, {len(passing)} are listed and pass")
    return 1 if unexpected or passing or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
