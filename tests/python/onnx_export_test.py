"""`thalweg convert` to ONNX: the file, loaded again, gives what the session gave; what ONNX has no twin of is listed. exports_peer.py compares
with ONNX Runtime."""
import os
import subprocess

import numpy as np
import pytest

import thalweg as tw
import written_models

COMMAND = os.path.join(os.environ.get("THALWEG_BINARY_DIR", "build/release"), "bin", "thalweg")


def convert(*arguments, status=0):
    done = subprocess.run([COMMAND, "convert", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(set(written_models.NETS) - written_models.ONLY_TENSORFLOW))
def test_a_file_of_onnx_gives_what_the_session_gave(name, tmp_path):
    fed, answers = written_models.write(name, tmp_path / "net.tw")
    assert "1 signature" in convert(tmp_path / "net.tw", tmp_path / "net.onnx")
    model = tw.load(tmp_path / "net.onnx")
    got = model.run(fed)
    assert set(got) == set(answers)
    for key, wanted in answers.items():
        assert got[key].dtype == wanted.dtype and got[key].shape == wanted.shape, key
        np.testing.assert_allclose(got[key], wanted, rtol=2e-5, atol=2e-6, err_msg=key)


def test_what_onnx_has_no_twin_of_is_listed(tmp_path):
    written_models.write("recurrent", tmp_path / "net.tw")
    said = convert(tmp_path / "net.tw", tmp_path / "net.onnx", status=1)
    assert "ONNX has no twin of: " in said and said.count("While '") == 2, said
    assert not (tmp_path / "net.onnx").exists()


def test_one_signature_is_chosen(tmp_path):
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None], name="x")
        y = x * 2.0
    with tw.Session(g) as s:
        tw.save(s, tmp_path / "net.tw", {"one": ({"x": x}, {"y": y}), "two": ({"x": x}, {"z": y + 1.0})})
    assert "choose by --signature" in convert(tmp_path / "net.tw", tmp_path / "net.onnx", status=2)
    convert(tmp_path / "net.tw", tmp_path / "net.onnx", "--signature", "two")
    np.testing.assert_array_equal(tw.load(tmp_path / "net.onnx")(x=np.float32([3]))["z"], [7])
