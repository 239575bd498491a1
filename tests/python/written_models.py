"""Models for the tests of what `tw.save` and `thalweg convert` write: nets of tw.nn, and uses of many ops.

NETS: name -> function without arguments that returns (inputs by name, outputs by name, fed arrays by name). It is called inside a graph. Batches
of the fed arrays are of 3 rows; sizes that a file leaves open are None. ONLY_TENSORFLOW: nets of loops, which no ONNX file is made of.
OWN_OPS: nets with an op that TensorFlow does not have, and that op."""
import numpy as np

import thalweg as tw


def floats(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def resnet():
    """Residual blocks with batch normalisation, strides, both pools and channels that change."""
    def block(channels, strides=1):
        return tw.nn.Sequential(tw.nn.Conv2D(channels, 3, strides=strides, padding="same", use_bias=False), tw.nn.BatchNorm(), tw.nn.relu,
                                tw.nn.Conv2D(channels, 3, padding="same", use_bias=False), tw.nn.BatchNorm())

    x = tw.placeholder("float32", [None, 31, 32, 3], name="x")
    h = tw.nn.MaxPool2D(3, 2, "same")(tw.nn.relu(tw.nn.BatchNorm()(tw.nn.Conv2D(8, 7, strides=2, padding="same")(x))))
    h = tw.nn.relu(h + block(8)(h))
    h = tw.nn.relu(tw.nn.Conv2D(12, 1, strides=2)(h) + block(12, 2)(h))
    h = tw.nn.AvgPool2D(3, 1, "same")(h)
    return {"image": x}, {"scores": tw.nn.softmax(tw.nn.Dense(10)(tw.nn.GlobalAvgPool()(h))), "features": h}, {"image": floats(3, 31, 32, 3)}


def gpt():
    """A decoder: embeddings, causal attention with rotations, layer normalisation, a tied output."""
    ids = tw.placeholder("int32", [None, None], name="ids")
    embedding = tw.nn.Embedding(40, 16)
    h = embedding(ids)
    for _ in range(2):
        h = h + tw.nn.MultiHeadAttention(4, rotary=True)(tw.nn.LayerNorm()(h), causal=True)
        h = h + tw.nn.Sequential(tw.nn.Dense(32, "gelu"), tw.nn.Dropout(0.2), tw.nn.Dense(16))(tw.nn.RMSNorm()(h))
    table = embedding.table.read()
    return {"ids": ids}, {"logits": tw.ops.mat_mul(h.reshape(-1, 16), table, transpose_b=True)}, {
        "ids": np.random.default_rng(5).integers(0, 40, (3, 7)).astype(np.int32)}


def sounds():
    """Convolutions and pools along one axis, transposed convolutions, group normalisation."""
    x = tw.placeholder("float32", [None, 24, 4], name="x")
    h = tw.nn.Conv1D(8, 3, strides=2, padding="same", activation="leaky_relu")(x)
    h = tw.nn.GroupNorm(2)(tw.nn.MaxPool1D(2)(h))
    return {"wave": x}, {"decoded": tw.nn.Conv1DTranspose(2, 4, strides=4, padding="same")(h), "mean": h.mean(1)}, {"wave": floats(3, 24, 4)}


def images():
    """Transposed, dilated, grouped and depthwise convolutions; resizing."""
    x = tw.placeholder("float32", [None, 8, 10, 4], name="x")
    wide = tw.nn.Conv2D(6, 3, dilations=2, padding="same", activation="silu")(x)
    deep = tw.ops.depthwise_conv2d_native(x, floats(3, 3, 4, 2, seed=3), strides=[1, 2, 2, 1], padding="VALID")
    grouped = tw.ops.conv2d(x, floats(3, 3, 2, 6, seed=4), strides=[1, 1, 1, 1], padding="SAME")
    up = tw.nn.Conv2DTranspose(3, 3, strides=2, padding="same")(wide)
    return {"x": x}, {
        "up": up, "deep": deep, "grouped": grouped, "bilinear": tw.ops.resize_bilinear(wide, [13, 7], half_pixel_centers=True),
        "corners": tw.ops.resize_bilinear(x, [5, 21], align_corners=True), "nearest": tw.ops.resize_nearest_neighbor(x, [16, 5], half_pixel_centers=True),
        "joined": tw.ops.concat_v2([wide, grouped], 3), "blocks": tw.ops.space_to_depth(x, block_size=2), "depth": tw.ops.depth_to_space(x, block_size=2),
        "spots": tw.ops.lrn(x, depth_radius=1), "volume": tw.ops.conv3d(x.reshape(-1, 4, 2, 10, 4), floats(2, 2, 2, 4, 3, seed=5),
                                                                          strides=[1, 1, 1, 1, 1], padding="SAME"),
    }, {"x": floats(3, 8, 10, 4)}


def shapes():
    """Slices, gathers, paddings and computed shapes at an unknown batch."""
    x, i = tw.placeholder("float32", [None, 6, 4], name="x"), tw.placeholder("int32", [None], name="i")
    o, batch = tw.ops, tw.ops.shape(x)[0]
    return {"x": x, "i": i}, {
        "strided": x[:, 1:-1:2, ::-1], "last": x[-1], "added": x[:, None, 2], "ellipsis": x[..., 1], "computed": x[i[0]:, i[0]],
        "slice": o.slice(x, [0, 1, 1], [-1, 3, 2]), "gathered": o.gather_v2(x, i, 1), "nd": o.gather_nd(x, [[0, 1], [2, 3]]),
        "flat": x.reshape(batch * 6, 4), "tiled": o.tile(x, [1, 2, 1]), "filled": o.fill(o.pack([batch, 2]), 7.0),
        "range": o.range(0, batch, 1), "padded": o.pad_v2(x, [[0, 0], [1, 2], [0, 1]], 3.0), "mirrored": o.mirror_pad(x, [[0, 0], [2, 1], [1, 0]], mode="REFLECT"),
        "one_hot": o.one_hot(i, 4, 5.0, -1.0), "top": o.top_kv2(x, 2)[0], "places": o.top_kv2(x, 2)[1], "argmax": o.arg_max(x, 1),
        "cumsum": o.cumsum(x, 1, exclusive=True, reverse=True), "reversed": o.reverse_v2(x, [1]), "where": o.where(o.greater(x, 0.0)),
        "halves": o.split(1, x, num_split=2)[1], "thirds": o.split_v(x, [1, -1, 2], 1, num_split=3)[1], "rows": o.unpack(x, num=6, axis=1)[3],
        "all": o.all(o.greater(x, -9.0), [1]), "any": o.any(o.greater(x, 1.5), [0, 2], keep_dims=True), "none": o.sum(x, np.zeros(0, np.int32)),
        "product": o.prod(x, [-1]), "einsum": o.einsum([x, x], equation="bij,bkj->bik"), "batched": o.batch_mat_mul_v2(x, x, adj_y=True),
        "zeros": o.zeros_like(x), "size": o.size(x), "squeezed": o.squeeze(o.expand_dims(x, 1), squeeze_dims=[1]),
    }, {"x": floats(3, 6, 4), "i": np.array([1, 3, 0], np.int32)}


def numbers():
    """Element-wise ops with broadcasting, of floats and integers."""
    x, y = tw.placeholder("float32", [None, 5], name="x"), tw.placeholder("int32", [None, 5], name="y")
    o, positive = tw.ops, tw.ops.abs(x) + 0.5
    out = {name: getattr(o, name)(x) for name in (
        "neg", "abs", "sign", "exp", "expm1", "tanh", "sigmoid", "relu", "relu6", "elu", "selu", "leaky_relu", "softplus", "softsign", "erf", "erfc", "sin",
        "cos", "tan", "sinh", "cosh", "asinh", "atan", "floor", "ceil", "rint", "square", "is_finite", "softmax", "log_softmax")}
    out.update({name: getattr(o, name)(positive) for name in ("log", "log1p", "sqrt", "rsqrt", "reciprocal")})
    out.update({"pow": o.pow(positive, x), "divided": x / positive, "floor_mod": o.floor_mod(x, -0.7), "floor_div": o.floor_div(x, 0.3),
                "int_mod": o.floor_mod(y, 3), "int_div": o.floor_div(y, -2), "cut": o.truncate_div(y, 2), "minimum": o.minimum(x, 0.1), "maximum": o.maximum(y, 1),
                "differs": o.not_equal(y, 1), "difference": o.squared_difference(x, floats(5)), "no_nan": o.div_no_nan(x, o.relu(x)),
                "chosen": o.select_v2(o.greater(x, 0.0), x, o.cast(y, DstT="float32")), "both": o.logical_and(o.less(x, 1.0), o.greater_equal(y, 0)),
                "clipped": o.clip_by_value(x, -0.5, 0.25), "sum": o.add_n([x, x, positive])})
    return {"x": x, "y": y}, out, {"x": floats(3, 5), "y": np.array([[-3, -2, -1, 0, 1], [2, 3, 4, 5, 6], [7, -8, 9, -10, 1]], np.int32)}


def recurrent():
    """Loops: an LSTM and a GRU."""
    x = tw.placeholder("float32", [None, None, 5], name="x")
    h, _ = tw.recurrent.LSTMCell(5, 6).loop(x)
    y, _ = tw.recurrent.GRUCell(6, 4).loop(h)
    return {"steps": x}, {"y": y}, {"steps": floats(7, 3, 5)}


NETS = {f.__name__: f for f in (resnet, gpt, sounds, images, shapes, numbers, recurrent)}
ONLY_TENSORFLOW = {"recurrent"}
OWN_OPS = {"gpt": "ScaledDotProductAttention"}


def write(name, path):
    """Saves the net. Returns what is fed and what its session answers, by name. Scales, means and variances are random, not 1 and 0."""
    weights = np.random.default_rng(8)
    with tw.Graph() as g:
        inputs, outputs, fed = NETS[name]()
        start = g.initializer()
        draw = [v.assign(weights.uniform(0.5, 1.5, v.shape).astype(np.float32)) for v in g.variables() if len(v.shape) == 1]
    with tw.Session(g) as s:
        s.run(start)
        s.run(draw)
        answers = dict(zip(outputs, s.run(list(outputs.values()), {inputs[k]: v for k, v in fed.items()})))
        tw.save(s, path, {"serving_default": (inputs, outputs)})
    return fed, answers
