import numpy as np
import pytest

import thalweg as tw


@pytest.mark.parametrize("text, other", [("float32", "float"), ("float64", "double"), ("float16", "half"), ("int64", np.int64),
                                         ("bool", bool), ("string", str), ("string", bytes), ("float32", float), ("int32", int),
                                         ("complex64", complex), ("uint8", np.dtype("uint8")), ("bfloat16", tw.bfloat16)])
def test_many_spellings_of_one_type(text, other):
    assert tw.as_dtype(text) == tw.as_dtype(other)
    assert tw.as_dtype(text).name == text


def test_types_know_their_numpy_type():
    for name in ("float32", "int8", "bool", "complex128", "uint64"):
        assert tw.as_dtype(name).numpy == np.dtype(name)
    assert tw.string.numpy == np.dtype(object)


def test_unknown_types_are_told_with_those_that_exist():
    with pytest.raises(TypeError, match="'flaot32' is no element type; there are: float32"):
        tw.as_dtype("flaot32")
    with pytest.raises(TypeError, match="no element type"):
        tw.as_dtype(np.dtype("datetime64[s]"))
    with pytest.raises(TypeError, match="no element type"):
        tw.as_dtype(None)


def test_types_without_numpy_type_say_what_to_do():
    with pytest.raises(TypeError, match="as_tensors=True"):
        tw.resource.numpy
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(TypeError, match="install the package ml_dtypes"):
            tw.bfloat16.numpy
    else:
        assert tw.bfloat16.numpy == np.dtype(ml_dtypes.bfloat16)


def test_types_are_equal_to_their_names_and_hash_alike():
    assert tw.float32 == "float32" and tw.float32 != "int32" and tw.float32 != 7.5
    assert {tw.float32: 1}[tw.as_dtype("float")] == 1
