import gc

import numpy as np
import pytest

import thalweg as tw
from thalweg import _dlpack, tensor

LARGE = tensor.COPIED_BYTES // 4 + 16  # float32 elements of an array that is shared rather than copied


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                                   "uint64", "bool", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_arrays_come_back_as_they_went_in(dtype, shape):
    array = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    t = tw.Tensor(array)
    assert (t.dtype, t.shape, t.size) == (dtype, shape, array.size)
    np.testing.assert_array_equal(t.numpy(), array)
    assert t.numpy().dtype == array.dtype and t.numpy().shape == shape


def test_arrays_share_the_tensors_memory_and_keep_it():
    t = tw.Tensor(np.arange(LARGE, dtype=np.float32))
    a, b = t.numpy(), np.asarray(t)
    assert np.shares_memory(a, b)
    del t, b
    gc.collect()
    np.testing.assert_array_equal(a, np.arange(LARGE, dtype=np.float32))


def test_only_what_nobody_else_sees_is_writable():
    t = tw.Tensor(np.arange(4.0))
    assert t.numpy().flags.writeable
    other = t.reshape(2, 2)
    assert not t.numpy().flags.writeable and not other.numpy().flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        other.numpy()[0, 0] = 1


def test_without_copy_the_arrays_memory_is_shared_until_the_tensor_goes():
    array = np.arange(LARGE, dtype=np.float32)
    before = len(_dlpack._lent)
    t = tw.Tensor(array, copy=False)
    assert np.shares_memory(t.numpy(), array) and not t.numpy().flags.writeable and len(_dlpack._lent) == before + 1
    assert not np.shares_memory(tw.Tensor(array).numpy(), array)
    del t
    assert len(_dlpack._lent) == before


@pytest.mark.parametrize("make", [lambda a: a[::2], lambda a: a.reshape(4, -1).T, lambda a: a[::-1], lambda a: a.astype(">f4"),
                                  lambda a: np.frombuffer(b"x" + a.tobytes(), np.float32, offset=1)],
                         ids=["strided", "transposed", "reversed", "big-endian", "misaligned"])
def test_other_layouts_are_copied(make):
    array = make(np.arange(2 * LARGE, dtype=np.float32))
    t = tw.Tensor(array, copy=False)
    np.testing.assert_array_equal(t.numpy(), array)
    assert not np.shares_memory(t.numpy(), array)


def test_read_only_arrays_may_be_shared():
    array = np.frombuffer(bytes(8 * LARGE), np.float32)
    assert np.shares_memory(tw.Tensor(array, copy=False).numpy(), array)


def test_pythons_numbers_are_32_bits_wide_where_they_fit():
    assert tw.Tensor(1.5).dtype == "float32" and tw.Tensor([1, 2]).dtype == "int32" and tw.Tensor(2**40).dtype == "int64"
    assert tw.Tensor(True).dtype == "bool" and tw.Tensor(1j).dtype == "complex64"
    assert tw.Tensor(np.float64(1)).dtype == "float64" and tw.Tensor([]).dtype == "float32"


@pytest.mark.parametrize("value, dtype, message", [
    (1.5, "int32", "1.5 of type float64 is no int32"), (300, "uint8", "300 does not fit into uint8"), (-1, "uint32", "-1 does not fit"),
    (np.array([2**40]), "int32", "does not fit into int32"), ("a", "float32", "'a' is no float32"), (1, "string", "1 is no string"),
    (1j, "float32", "is no float32"), (np.zeros(1, "datetime64[s]"), None, "no element type")])
def test_values_that_a_type_cannot_hold_are_refused(value, dtype, message):
    with pytest.raises(TypeError, match=message):
        tw.Tensor(value, dtype)


def test_strings_are_bytes_in_and_out():
    t = tw.Tensor([["a", b"b\0c"], ["", "é"]])
    assert t.dtype == "string" and t.shape == (2, 2)
    assert t.numpy().tolist() == [[b"a", b"b\0c"], [b"", "é".encode()]]
    assert tw.Tensor(np.array(["x", "yz"])).numpy().tolist() == [b"x", b"yz"]
    with pytest.raises(TypeError, match="element 1 .* neither bytes nor text"):
        tw.Tensor(np.array(["a", 5], object))


def test_an_empty_list_is_of_strings_where_those_are_wanted():
    assert tw.Tensor([], dtype="string").shape == (0,) and tw.Tensor([[], []], dtype="string").dtype == "string"
    with pytest.raises(TypeError, match="is no string"):
        tw.Tensor(np.zeros(0), dtype="string")


@pytest.mark.skipif(not hasattr(np.dtypes if hasattr(np, "dtypes") else np, "StringDType"), reason="NumPy has had StringDType since 2.0")
def test_numpys_own_strings_are_strings():
    texts = np.array(["a", "\u00fc"], np.dtypes.StringDType())
    assert np.asarray(tw.Tensor(texts)).tolist() == [b"a", "\u00fc".encode()]


def test_reshape_shares_and_refuses_other_sizes():
    t = tw.Tensor(np.arange(6))
    assert np.shares_memory(t.reshape(2, 3).numpy(), t.numpy()) and t.reshape([3, 2]).shape == (3, 2)
    with pytest.raises(tw.InvalidArgumentError):
        t.reshape(4, 2)


def test_text_shows_values_shape_and_type():
    assert repr(tw.Tensor([[1, 2], [3, 4]])) == "Tensor([[1, 2], [3, 4]], shape=[2, 2], dtype=int32)"
    assert len(tw.Tensor([1, 2, 3])) == 3
    with pytest.raises(TypeError):
        len(tw.Tensor(1))


# ---- DLPack ----

def test_numpy_takes_a_tensor_by_dlpack_without_copying():
    t = tw.Tensor(np.arange(10.0))
    array = np.from_dlpack(t)
    assert np.shares_memory(array, t.numpy())
    del t
    gc.collect()
    np.testing.assert_array_equal(array, np.arange(10.0))


def test_a_tensor_takes_an_array_by_dlpack_without_copying():
    array = np.arange(10.0)
    t = tw.from_dlpack(array)
    assert np.shares_memory(t.numpy(), array) and not t.numpy().flags.writeable
    np.testing.assert_array_equal(tw.from_dlpack(np.arange(6)[::2]).numpy(), [0, 2, 4])


def test_capsules_have_the_form_that_was_asked_for():
    t = tw.Tensor(np.arange(3))
    assert '"dltensor"' in repr(t.__dlpack__()) and '"dltensor_versioned"' in repr(t.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(t.__dlpack__(max_version=(0, 8)))
    assert t.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(tw.from_dlpack(t).numpy(), [0, 1, 2])  # the versioned form, through our own reader


def test_a_capsule_that_nobody_takes_gives_its_tensor_back():
    array, before = np.arange(LARGE, dtype=np.float32), len(_dlpack._lent)
    for max_version in (None, (1, 0)):
        t = tw.Tensor(array, copy=False)
        capsule = t.__dlpack__(max_version=max_version)
        del t
        assert len(_dlpack._lent) == before + 1
        del capsule
        assert len(_dlpack._lent) == before


def test_a_capsule_is_taken_once():
    class Once:
        def __init__(self):
            self.capsule = np.arange(3).__dlpack__()

        def __dlpack__(self):
            return self.capsule

    source = Once()
    tw.from_dlpack(source)
    with pytest.raises(BufferError, match="no DLPack capsule"):
        tw.from_dlpack(source)


def test_what_dlpack_has_no_form_for_is_refused():
    with pytest.raises(tw.InvalidArgumentError, match="string"):
        tw.Tensor(["a"]).__dlpack__()
    with pytest.raises(BufferError, match="a list gives no DLPack"):
        tw.from_dlpack([1, 2])
    with pytest.raises(BufferError, match="not a copy"):
        tw.Tensor([1]).__dlpack__(copy=True)


def test_bfloat16_through_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1, 2.5, -3], ml_dtypes.bfloat16)
    t = tw.Tensor(array)
    assert t.dtype == "bfloat16" and t.numpy().dtype == array.dtype and (t.numpy() == array).all()
    assert tw.Tensor([1.5, 2], "bfloat16").dtype == "bfloat16"


def test_bytes_keep_zeros_at_their_end():
    for value in (b"a\0", b"\0\0", "a\0", [b"a\0", b"\0"], [[b"\0", b""], [b"b\0\0", b"c"]]):
        assert tw.constant(value).numpy().tolist() == (value.encode() if isinstance(value, str) else value)
