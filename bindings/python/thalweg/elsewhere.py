"""Equivalents of names of PyTorch, Keras, NumPy and JAX, for messages to a program that uses one of them. Keys are in lower case
without underscores; a value is a name in thalweg, or a formula."""

NAMES: dict[str, str] = {
    # Products, sums, elements
    "bmm": "ops.batch_mat_mul_v3", "clamp": "ops.clip_by_value", "clip": "ops.clip_by_value", "divide": "ops.real_div",
    "truedivide": "ops.real_div", "dot": "ops.mat_mul", "expit": "ops.sigmoid", "mm": "ops.mat_mul", "multiply": "ops.mul",
    "gammainc": "ops.igamma", "gammaincc": "ops.igammac",
    "negative": "ops.neg", "power": "ops.pow", "remainder": "ops.floor_mod", "subtract": "ops.sub", "tensordot": "ops.einsum",
    "absolute": "ops.abs", "norm": "ops.euclidean_norm", "tril": "ops.matrix_band_part", "triu": "ops.matrix_band_part",
    "logsumexp": "m + ops.log(ops.exp(x - m).sum()), with m = x.max()",
    "outer": "x[:, None] * y",
    "var": "((x - x.mean()) ** 2).mean()", "variance": "((x - x.mean()) ** 2).mean()", "std": "((x - x.mean()) ** 2).mean() ** 0.5",
    # Shapes and picking
    "arange": "ops.range", "cat": "ops.concat_v2", "concatenate": "ops.concat_v2", "embedding": "nn.Embedding",
    "embeddinglookup": "ops.gather_v2", "flip": "ops.reverse_v2", "full": "ops.fill", "ones": "ops.fill", "permute": "ops.transpose",
    "sort": "ops.top_kv2", "stack": "ops.pack", "take": "ops.gather_v2", "topk": "ops.top_kv2", "unbind": "ops.unpack",
    "unsqueeze": "ops.expand_dims", "unstack": "ops.unpack", "zeros": "ops.fill",
    "flatten": "x.reshape(-1), or x.reshape(n, -1) to keep the first of its sizes, n",
    "view": "x.reshape(...)",
    "argsort": "ops.top_kv2", "chunk": "ops.split", "expand": "ops.broadcast_to", "indexselect": "ops.gather_v2", "nonzero": "ops.where",
    "repeat": "ops.tile",
    "maskedfill": "ops.select_v2(mask, value, x)", "maskedselect": "ops.gather_nd(x, ops.where(mask))",
    "det": "ops.matrix_determinant", "eigh": "ops.self_adjoint_eig_v2", "solve": "ops.matrix_solve",
    "inner": "(x * y).sum()",
    # Layers
    "attention": "ops.scaled_dot_product_attention", "dotproductattention": "ops.scaled_dot_product_attention",
    "multiheadattention": "nn.MultiHeadAttention", "avgpool2d": "nn.AvgPool2D", "averagepooling2d": "nn.AvgPool2D",
    "batchnorm": "nn.BatchNorm", "batchnormalization": "nn.BatchNorm", "conv": "nn.Conv2D",
    "convgeneraldilated": "ops.conv2d", "convtranspose": "ops.conv2d_backprop_input", "conv2dtranspose": "ops.conv2d_backprop_input",
    "convtranspose2d": "ops.conv2d_backprop_input", "maxpool2d": "nn.MaxPool2D", "maxpooling2d": "nn.MaxPool2D",
    "gru": "nn.GRU", "lstm": "nn.LSTM",
    "dense": "nn.Dense", "linear": "nn.Dense",
    "dropout": "nn.Dropout",
    "gelu": "nn.gelu",
    "layernorm": "nn.LayerNorm",
    "layernormalization": "nn.LayerNorm",
    "rmsnorm": "nn.RMSNorm",
    "silu": "nn.silu", "swish": "nn.silu", "mish": "nn.mish", "hardswish": "nn.hard_swish",
    "batchnorm2d": "nn.BatchNorm", "groupnorm": "nn.GroupNorm", "instancenorm": "nn.GroupNorm",
    "sequential": "nn.Sequential", "module": "nn.Module",
    "globalaveragepooling2d": "x.mean([1, 2])",
    "labelsmoothing": "losses.smoothed_softmax",
    # Losses
    "categoricalcrossentropy": "ops.softmax_cross_entropy_with_logits", "crossentropy": "ops.sparse_softmax_cross_entropy_with_logits",
    "crossentropyloss": "ops.sparse_softmax_cross_entropy_with_logits", "softmaxcrossentropy": "ops.softmax_cross_entropy_with_logits",
    "sparsecategoricalcrossentropy": "ops.sparse_softmax_cross_entropy_with_logits",
    "binarycrossentropy": "ops.relu(x) - x * y + ops.softplus(-abs(x))", "bcewithlogitsloss": "(ops.relu(x) - x * y + ops.softplus(-abs(x))).mean()",
    "binarycrossentropywithlogits": "(ops.relu(x) - x * y + ops.softplus(-abs(x))).mean()",
    "sigmoidcrossentropywithlogits": "ops.relu(x) - x * y + ops.softplus(-abs(x))",
    "l1loss": "abs(x - y).mean()", "meanabsoluteerror": "abs(x - y).mean()",
    "mseloss": "((x - y) ** 2).mean()", "meansquarederror": "((x - y) ** 2).mean()",
    # Random numbers
    "categorical": "ops.multinomial", "normal": "ops.random_standard_normal", "randn": "ops.random_standard_normal",
    "randomnormal": "ops.random_standard_normal", "rand": "ops.random_uniform", "uniform": "ops.random_uniform",
    "randint": "ops.random_uniform_int", "randperm": "ops.random_shuffle", "shuffle": "ops.random_shuffle",
    "manualseed": "random.seed", "prngkey": "random.seed", "setrandomseed": "random.seed", "setseed": "random.seed",
    # Names that are no ops
    "array": "constant", "asarray": "constant", "converttotensor": "constant", "detach": "ops.stop_gradient", "foriloop": "while_loop",
    "gradient": "gradients", "gradienttape": "Tape", "input": "placeholder", "jit": "function", "parameter": "Variable",
    "fromnumpy": "constant", "astensor": "constant", "cuda": "device", "backward": "gradients", "vjp": "value_and_grad",
    "customvjp": "custom_gradient", "customjvp": "custom_gradient",
    "numpyfunction": "py_function", "purecallback": "py_function", "iocallback": "py_function", "remat": "checkpoint",
    "recomputegrad": "checkpoint",
    "seed": "random.seed", "statedict": "Saver", "loadstatedict": "weights.load",
    # Training
    "adam": "train.Adam", "adamw": "train.AdamW", "sgd": "train.SGD", "rmsprop": "train.RMSProp", "adagrad": "train.Adagrad",
    "steplr": "schedules.piecewise", "cosineannealinglr": "schedules.cosine", "clipgradnorm": "train.clip_by_global_norm",
    "evaluate": "train.Trainer", "predict": "train.Trainer", "dataloader": "train.Batches",
    "earlystopping": "trainer.fit(data, validation=0.2, patience=3), with trainer = thalweg.train.Trainer(...)",
}

# Ops whose name means another op elsewhere; their inputs come in the order of the other libraries.
OLDER = {"Concat": "ops.concat_v2"}


def plain(name: str) -> str:
    """Converts a name to the form of the keys: "LayerNorm" and "layer_norm" become "layernorm"."""
    return name.lower().replace("_", "")


def is_name(found: str) -> bool:
    """Returns true if it is a name in thalweg, not a formula."""
    return found.replace(".", "").replace("_", "").isalnum()
