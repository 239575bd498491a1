"""Files of other programs against the pixels and samples that Pillow, TensorFlow and libsndfile decode, as media_peer.py wrote them down."""
import numpy as np
import pytest

import media_cases
import thalweg as tw

KERNELS = {name: op["kernels"] for name, op in tw.Runtime.default().ops().items()}
if not KERNELS.get("DecodeGif"):
    pytest.skip("built without the libraries of images and sound", allow_module_level=True)


@pytest.mark.parametrize("case,file,want", [pytest.param(*case, id=case[0]) for case in media_cases.cases()])
def test_others_decode_the_same(case, file, want):
    got = media_cases.ours(case, file)
    assert got.dtype == want.dtype and np.array_equal(got, want)
