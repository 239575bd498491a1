import inspect
import keyword
import os
import pathlib

import numpy as np
import pytest

import thalweg as tw
from thalweg.op_functions import snake_case
from thalweg.op_text import DEFAULTS


@pytest.mark.parametrize("name, snake", [("MatMul", "mat_mul"), ("Conv2D", "conv2d"), ("Conv2DBackpropInput", "conv2d_backprop_input"),
                                         ("BatchMatMulV2", "batch_mat_mul_v2"), ("L2Loss", "l2_loss"), ("Relu6Grad", "relu6_grad"),
                                         ("AddN", "add_n"), ("Log1p", "log1p"), ("Assert", "assert_"), ("_Send", "_send")])
def test_names_in_lower_case(name, snake):
    assert snake_case(name) == snake


def test_every_op_is_a_function_under_two_names(graph):
    known = graph.runtime.ops()
    assert len(known) > 100
    assert len({snake_case(op) for op in known}) == len(known)
    for op in known:
        function = getattr(tw.ops, op)
        assert getattr(tw.ops, snake_case(op)) is function
        assert function.__doc__.startswith(op) and not keyword.iskeyword(function.__name__)
        assert list(inspect.signature(function).parameters)[-1] == "name"
    assert dir(tw.ops) == sorted(snake_case(op) for op in known)  # completion offers each once


def test_signatures_and_text_come_from_the_schema():
    signature = inspect.signature(tw.ops.conv2d)
    assert list(signature.parameters)[:4] == ["input", "filter", "strides", "padding"]
    assert signature.parameters["strides"].default is inspect.Parameter.empty and signature.parameters["data_format"].default == "NHWC"
    assert signature.parameters["strides"].kind is inspect.Parameter.KEYWORD_ONLY
    assert "Not differentiable: an index has no derivative." in tw.ops.arg_max.__doc__


def test_answers_follow_the_outputs(graph):
    x = tw.placeholder("float32", [6, 4])
    assert isinstance(tw.ops.softmax(x), tw.Output)
    assert isinstance(tw.ops.no_op(), tw.Operation)
    parts = tw.ops.split(0, x, num_split=3)
    assert [p.name for p in parts] == ["Split:0", "Split:1", "Split:2"]
    found = tw.ops.sparse_softmax_cross_entropy_with_logits(x, [0] * 6)
    assert found._fields == ("loss", "backprop") and found.loss.shape == (6,)
    assert len(tw.ops.identity_n([x, 1])) == 2
    assert [t.dtype for t in tw.ops.restore_v2("p", ["a", "b"], ["", ""], dtypes=["float32", "int64"])] == ["float32", "int64"]


def test_inputs_by_name_and_lists_of_them(run):
    x = tw.constant([[1.0, 2], [3, 4]])
    product = tw.ops.mat_mul(a=x, b=x, transpose_b=True, name="mm")
    joined = tw.ops.concat_v2([x, [[5, 6]], np.ones((1, 2), np.float32)], axis=0)
    packed = tw.ops.pack([1, tw.constant(2), 3])
    assert product.name == "mm:0" and product.operation.attributes["transpose_b"] is True
    np.testing.assert_array_equal(run(product), [[5, 11], [11, 25]])
    np.testing.assert_array_equal(run(joined), [[1, 2], [3, 4], [5, 6], [1, 1]])
    np.testing.assert_array_equal(run(packed), [1, 2, 3])


def test_a_list_at_the_end_that_may_be_empty_may_be_left_out(run):
    x = tw.constant(np.eye(2, dtype=np.float32)[None, None])
    assert inspect.signature(tw.ops.scaled_dot_product_attention).parameters["bias"].default == ()
    attended = tw.ops.scaled_dot_product_attention(x, x, x, is_causal=True).output
    np.testing.assert_array_equal(run(attended), run(tw.ops.scaled_dot_product_attention(x, x, x, [], is_causal=True).output))
    with pytest.raises(TypeError, match="Pack lacks its input 'values'"):
        tw.ops.pack(axis=0)


def test_constants_take_the_type_that_the_op_can_use(graph):
    assert tw.ops.exp(2).dtype == "float32"
    assert tw.ops.fill([2, 3], 1.5).operation.attributes["index_type"] == tw.int32
    assert tw.ops.range(0, 10, 1).dtype == "int32"
    assert tw.ops.cast(np.float64(1), DstT="int8").dtype == "int8"
    assert tw.ops.string_join(["a", b"b"]).dtype == "string"
    assert tw.ops.sum([1.0, 2.0], []).operation.attributes["Tidx"] == tw.int32


def test_constants_beside_a_reference_take_the_type_that_it_leads_to(run):
    reference = tw.ops.variable_v2(shape=[2], dtype="float32")
    assert reference.dtype == tw.float32
    assert run(tw.ops.assign(reference, [1, 2])).tolist() == [1, 2]


def test_attributes_of_every_kind_come_back(graph):
    def attributes(output):
        return output.operation.attributes

    conv = attributes(tw.ops.conv2d(np.ones((1, 4, 4, 1), np.float32), np.ones((2, 2, 1, 1), np.float32), strides=(1, 2, 2, 1),
                                    padding="SAME", use_cudnn_on_gpu=False))
    assert conv["strides"] == [1, 2, 2, 1] and conv["padding"] == "SAME" and conv["use_cudnn_on_gpu"] is False and conv["T"] == "float32"
    assert attributes(tw.placeholder("int8", [None, 2]))["shape"] == (None, 2)
    assert attributes(tw.placeholder("int8"))["shape"] is None
    np.testing.assert_array_equal(attributes(tw.constant([1, 2]))["value"].numpy(), [1, 2])
    assert attributes(tw.ops.identity_n([1, 2.5])[0])["T"] == [tw.int32, tw.float32]
    handle = tw.ops.var_handle_op(dtype="float32", shape=[2], shared_name="a\0b", allowed_devices=["x", "yz"])
    assert attributes(handle)["allowed_devices"] == ["x", "yz"] and attributes(handle)["shared_name"] == "a\0b"


def test_ops_of_a_plugin_are_there_once_it_is_loaded(run):
    with pytest.raises(AttributeError, match="no op is called 'twice'"):
        tw.ops.twice
    tw.load_plugin(pathlib.Path(os.environ["THALWEG_BINARY_DIR"]) / "examples/plugins/libtwice.so")
    x = tw.placeholder("float32", [2])
    y = tw.ops.twice(x)
    np.testing.assert_array_equal(run([y, x.graph.op("Twice", y), tw.gradients(y, x)], {x: [1, 2]}), [[2, 4], [4, 8], [2, 2]])


def test_ops_of_a_plugin_are_gone_once_it_is_unloaded():
    runtime = tw.Runtime(load_plugins=False)
    runtime.load_plugin(pathlib.Path(os.environ["THALWEG_BINARY_DIR"]) / "examples/plugins/libtwice.so")
    assert "Twice" in runtime.ops()
    runtime.unload_plugin(next(p.id for p in runtime.plugins() if p.path and p.path.endswith("libtwice.so")))
    assert "Twice" not in runtime.ops()


@pytest.mark.parametrize("call, error, message", [
    (lambda x: tw.ops.softmax(x, x), TypeError, "Softmax takes 1 inputs"),
    (lambda x: tw.ops.conv2d(x, strides=[1], padding="SAME"), TypeError, "Conv2D lacks its input 'filter'"),
    (lambda x: tw.ops.mat_mul(x, x, tranpose_a=True), TypeError, "no attribute 'tranpose_a'; did you mean 'transpose_a'"),
    (lambda x: tw.ops.mat_mul(x, x, transpose_a=1), TypeError, "'transpose_a' is of kind bool, not 1"),
    (lambda x: tw.ops.squeeze(x, squeeze_dims=0), TypeError, "'squeeze_dims' is a list of ints, not 0"),
    (lambda x: tw.ops.squeeze(x, squeeze_dims=[0.5]), TypeError, "no whole number"),
    (lambda x: tw.ops.add_n(x), TypeError, "'inputs' is a list of values"),
    (lambda x: tw.ops.identity(tw.ops.no_op()), TypeError, "is an operation, not a value"),
    (lambda x: tw.ops.split(0, x), tw.InvalidArgumentError, "'num_split' is missing"),
    (lambda x: tw.ops.concat([x, x], 0), TypeError, "Concat: input 'values' is a list of values; did you mean thalweg.ops.concat_v2"),
    (lambda x: tw.ops.concat([x, x], axis=0), TypeError, "Concat lacks its input 'values'; did you mean thalweg.ops.concat_v2"),
    (lambda x: tw.ops.nope, AttributeError, "no op is called 'nope'"),
    (lambda x: tw.ops.matmul(x, x), AttributeError, "no op is called 'matmul'; did you mean thalweg.ops.mat_mul"),
    (lambda x: x.graph.op("Sotfmax", x), AttributeError, "did you mean 'Softmax'"),
    (lambda x: tw.ops.mat_mul(x, np.ones((3, 3), np.float32)), tw.InvalidArgumentError, "inner dimensions differ"),
    (lambda x: tw.ops.mat_mul(x, np.ones((2, 3), complex)), TypeError, "MatMul: input 'b': .* is no float32"),
    (lambda x: tw.ops.mat_mul(x, tw.placeholder("float64", [2, 3])), tw.InvalidArgumentError, "double"),
])
def test_wrong_calls_say_what_is_wrong_and_add_nothing_of_theirs(graph, call, error, message):
    x = tw.placeholder("float32", [4, 2])
    with pytest.raises(error, match=message):
        call(x)
    assert not any(o.type in ("MatMul", "Conv2D", "Split", "Softmax", "AddN") for o in graph.operations())


def test_values_of_two_graphs_do_not_mix(graph):
    with tw.Graph():
        other = tw.placeholder("float32")
    with pytest.raises(ValueError, match="<Output .* is a value of another graph"):
        tw.placeholder("float32") + other


def test_axes_steps_on_and_off_have_the_defaults_of_others(run):
    array, labels = np.arange(6, dtype=np.float32).reshape(2, 3) + 1, [2, 0]
    known, unknown = tw.placeholder("float32", [2, 3]), tw.placeholder("float32")
    feeds = {known: array, unknown: array}
    for x in (known, unknown, array):
        got = run([tw.ops.sum(x), tw.ops.mean(x, None), tw.ops.prod(input=x), tw.ops.max(x), tw.ops.min(x), tw.ops.euclidean_norm(x),
                   tw.ops.sum(x, keep_dims=True), tw.ops.all(x == array), tw.ops.transpose(x), tw.ops.sum(x, 0)], feeds)
        want = [21, 3.5, 720, 6, 1, np.linalg.norm(array), [[21]], True, array.T, array.sum(0)]
        for g, w in zip(got, want):
            np.testing.assert_allclose(g, w, rtol=1e-6)
    np.testing.assert_array_equal(run(tw.ops.sum([known[0], known[1]]), feeds), 21)
    hot = [tw.ops.one_hot(labels, 3), tw.ops.one_hot(labels, 3, 5), tw.ops.one_hot(labels, depth=3, off_value=-1),
           tw.ops.one_hot(labels, 3, T="int64"), tw.ops.one_hot(labels, 3, off_value=0.5), tw.ops.one_hot(labels, 3, tw.constant(2, "int8"))]
    eye = np.eye(3)[labels]
    for g, w, dtype in zip(run(hot), [eye, 5 * eye, 2 * eye - 1, eye, 0.5 + eye / 2, 2 * eye], "fiilfb"):
        np.testing.assert_array_equal(g, w)
        assert g.dtype.char == dtype
    got = run([tw.ops.concat_v2([known, array]), tw.ops.gather_v2(known, [1]), tw.ops.range(2, 5),
               tw.ops.concat_v2([known, known], axis=1)], feeds)
    for g, w in zip(got, [np.concatenate([array, array]), array[[1]], [2, 3, 4], np.concatenate([array, array], 1)]):
        np.testing.assert_array_equal(g, w)


def test_defaults_stand_in_signatures_and_text():
    parameters = inspect.signature(tw.ops.one_hot).parameters
    assert [parameters[p].default for p in ("on_value", "off_value")] == [1, 0] and parameters["depth"].default is inspect.Parameter.empty
    assert inspect.signature(tw.ops.sum).parameters["reduction_indices"].default is None
    assert "reduction_indices: Tidx = all axes" in tw.ops.sum.__doc__ and "axis: Tidx = 0" in tw.ops.concat_v2.__doc__
    for op, defaults in DEFAULTS.items():
        assert set(defaults) <= {a["name"] for a in tw.Runtime.default().op(op)["inputs"]}
    for wrong, told in ((tw.ops.sum, "Sum lacks its input 'input'"), (lambda: tw.ops.one_hot([1]), "OneHot lacks its input 'depth'"),
                        (lambda: tw.ops.sum([1.0], 0, 1), "Sum takes 2 inputs"),
                        (lambda: tw.ops.sum([1.0], input=[1.0]), "no attribute 'input'")):
        with pytest.raises(TypeError, match=told), tw.Graph():
            wrong()
