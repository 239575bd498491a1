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
    "inner": "(x * y).sum()", "vdot": "(x * y).sum()",
    "normalize": "x / ops.sqrt((x * x).sum(-1, keepdims=True))", "l2normalize": "x / ops.sqrt((x * x).sum(-1, keepdims=True))",
    "cosinesimilarity": "(x * y).sum(-1) / ops.sqrt((x * x).sum(-1) * (y * y).sum(-1))",
    "allclose": "(abs(x - y) <= 1e-5).all()", "eye": "constant(numpy.eye(n, dtype='float32'))", "identitymatrix": "constant(numpy.eye(n))",
    "meshgrid": "constant(numpy.meshgrid(...)[0])", "kron": "x[:, None, :, None] * y[None, :, None, :], and reshape it",
    "takealongaxis": "ops.gather_v2(x, indices, axis, batch_dims=axis)", "repeatinterleave": "ops.tile(x[:, None], [1, n]).reshape(-1)",
    "histogram": "ops.bincount", "searchsorted": "ops.bucketize(x, boundaries=[...])", "digitize": "ops.bucketize(x, boundaries=[...])",
    "interpolate": "ops.resize_bilinear(x, [height, width])", "upsample": "ops.resize_nearest_neighbor(x, [height, width])",
    "resize": "ops.resize_bilinear(x, [height, width])", "pixelshuffle": "ops.depth_to_space", "pixelunshuffle": "ops.space_to_depth",
    "numel": "ops.size", "cross": "ops.einsum",
    # Layers
    "attention": "ops.scaled_dot_product_attention", "dotproductattention": "ops.scaled_dot_product_attention",
    "multiheadattention": "nn.MultiHeadAttention", "avgpool2d": "nn.AvgPool2D", "averagepooling2d": "nn.AvgPool2D",
    "batchnorm": "nn.BatchNorm", "batchnormalization": "nn.BatchNorm", "conv": "nn.Conv2D",
    "convgeneraldilated": "ops.conv2d", "convtranspose": "ops.conv2d_backprop_input", "conv2dtranspose": "nn.Conv2DTranspose",
    "convtranspose2d": "nn.Conv2DTranspose", "convtranspose1d": "nn.Conv1DTranspose", "convtranspose3d": "nn.Conv3DTranspose",
    "depthwiseconv2d": "nn.Conv2D(channels, 3, groups=channels)", "separableconv2d": "nn.Sequential(nn.Conv2D(channels, 3, groups=channels), nn.Conv2D(n, 1))",
    "batchnorm1d": "nn.BatchNorm", "batchnorm3d": "nn.BatchNorm", "unitnormalization": "x / ops.sqrt((x * x).sum(-1, keepdims=True))",
    "adaptiveavgpool2d": "nn.GlobalAvgPool", "adaptivemaxpool2d": "nn.GlobalMaxPool", "globalmaxpooling2d": "nn.GlobalMaxPool",
    "globalaveragepooling1d": "nn.GlobalAvgPool", "averagepooling1d": "nn.AvgPool1D", "maxpooling1d": "nn.MaxPool1D",
    "rmsnormalization": "nn.RMSNorm", "groupnormalization": "nn.GroupNorm", "simplernn": "recurrent", "rnn": "recurrent", "lstmcell": "recurrent",
    "grucell": "recurrent", "rnncell": "recurrent", "timedistributed": "layer(x): layers apply to the last axis",
    "modulelist": "self.layers = [...], a list: a module owns the modules in its lists and dicts",
    "moduledict": "self.layers = {...}, a dict: a module owns the modules in its lists and dicts",
    "parameterlist": "self.weights = [...], a list: a module owns the variables in its lists",
    "transformerencoderlayer": "nn.Residual(nn.MultiHeadAttention(heads)), and one of the layers behind it; examples/models has whole models",
    "transformer": "nn.MultiHeadAttention; examples/models has BERT, GPT-2 and a translator", "prelu": "nn.leaky_relu", "functional": "ops",
    "init": "nn.INITIALIZERS, whose names layers take: nn.Dense(10, kernel='he_normal')", "syncbatchnorm": "nn.BatchNorm",
    "layer": "nn.Module", "lambda": "a function: nn.Sequential takes functions, too",
    "maxpool2d": "nn.MaxPool2D", "maxpooling2d": "nn.MaxPool2D",
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
    "globalaveragepooling2d": "nn.GlobalAvgPool",
    "labelsmoothing": "losses.smoothed_softmax",
    # Losses
    "categoricalcrossentropy": "ops.softmax_cross_entropy_with_logits", "crossentropy": "ops.sparse_softmax_cross_entropy_with_logits",
    "crossentropyloss": "ops.sparse_softmax_cross_entropy_with_logits", "softmaxcrossentropy": "ops.softmax_cross_entropy_with_logits",
    "sparsecategoricalcrossentropy": "ops.sparse_softmax_cross_entropy_with_logits",
    "binarycrossentropy": "ops.relu(x) - x * y + ops.softplus(-abs(x))", "bcewithlogitsloss": "(ops.relu(x) - x * y + ops.softplus(-abs(x))).mean()",
    "binarycrossentropywithlogits": "(ops.relu(x) - x * y + ops.softplus(-abs(x))).mean()",
    "sigmoidcrossentropywithlogits": "ops.relu(x) - x * y + ops.softplus(-abs(x))",
    "bceloss": "(ops.relu(x) - x * y + ops.softplus(-abs(x))).mean()", "nllloss": "ops.sparse_softmax_cross_entropy_with_logits",
    "kldiv": "(p * ops.log(p / q)).sum(-1).mean()", "kldivloss": "(p * ops.log(p / q)).sum(-1).mean()", "hinge": "ops.relu(1 - x * y).mean()",
    "huber": "ops.select_v2(abs(d) < 1, d * d / 2, abs(d) - 0.5).mean(), with d = x - y", "ctc": "ops.ctc_loss",
    "huberloss": "ops.select_v2(abs(d) < 1, d * d / 2, abs(d) - 0.5).mean(), with d = x - y", "mse": "((x - y) ** 2).mean()",
    "smoothl1loss": "ops.select_v2(abs(d) < 1, d * d / 2, abs(d) - 0.5).mean(), with d = x - y", "mae": "abs(x - y).mean()",
    "l1loss": "abs(x - y).mean()", "meanabsoluteerror": "abs(x - y).mean()",
    "mseloss": "((x - y) ** 2).mean()", "meansquarederror": "((x - y) ** 2).mean()",
    # Random numbers
    "categorical": "ops.multinomial", "normal": "ops.random_standard_normal", "randn": "ops.random_standard_normal",
    "randomnormal": "ops.random_standard_normal", "rand": "ops.random_uniform", "uniform": "ops.random_uniform",
    "randint": "ops.random_uniform_int", "randperm": "ops.random_shuffle", "shuffle": "ops.random_shuffle",
    "bernoulli": "ops.random_uniform(shape, dtype='float32') < p", "permutation": "ops.random_shuffle",
    "choice": "ops.multinomial", "key": "random.seed", "foldin": "random.seed",
    "manualseed": "random.seed", "prngkey": "random.seed", "setrandomseed": "random.seed", "setseed": "random.seed",
    # Names that are no ops
    "array": "constant", "asarray": "constant", "converttotensor": "constant", "detach": "ops.stop_gradient", "foriloop": "while_loop",
    "gradient": "gradients", "gradienttape": "Tape", "input": "placeholder", "jit": "function", "parameter": "Variable",
    "fromnumpy": "constant", "astensor": "constant", "cuda": "device", "backward": "gradients", "vjp": "value_and_grad",
    "customvjp": "custom_gradient", "customjvp": "custom_gradient",
    "numpyfunction": "py_function", "purecallback": "py_function", "iocallback": "py_function", "remat": "checkpoint",
    "recomputegrad": "checkpoint",
    "nograd": "ops.stop_gradient(x); without a Tape nothing is noted", "inferencemode": "ops.stop_gradient(x); without a Tape nothing is noted",
    "pmap": "train.AllReduce", "optim": "train", "optimizers": "train", "optimizer": "train.Optimizer", "keras": "nn", "linalg": "ops", "layers": "nn",
    "newaxis": "x[:, None]", "pi": "numpy.pi", "inf": "numpy.inf", "nan": "numpy.nan", "e": "numpy.e",
    "allgather": "ops.collective_gather_v2", "allreduce": "train.AllReduce",
    "seed": "random.seed", "statedict": "Saver", "loadstatedict": "weights.load",
    # Training
    "adam": "train.Adam", "adamw": "train.AdamW", "sgd": "train.SGD", "rmsprop": "train.RMSProp", "adagrad": "train.Adagrad",
    "steplr": "schedules.piecewise", "cosineannealinglr": "schedules.cosine", "clipgradnorm": "train.clip_by_global_norm",
    "nadam": "train.Adam", "radam": "train.Adam", "lamb": "train.AdamW", "lion": "train.AdamW",
    "exponentiallr": "schedules.exponential", "exponentialdecay": "schedules.exponential", "cosinedecay": "schedules.cosine", "linearlr": "schedules.polynomial",
    "cosineannealingwarmrestarts": "schedules.cosine_restarts", "cosinedecayrestarts": "schedules.cosine_restarts", "polynomiallr": "schedules.polynomial",
    "polynomialdecay": "schedules.polynomial", "piecewiseconstantdecay": "schedules.piecewise", "multisteplr": "schedules.piecewise", "warmup": "schedules.warm_up",
    "warmupcosinedecayschedule": "schedules.warm_up(schedules.cosine(...), steps)", "linearschedule": "schedules.polynomial",
    "lambdalr": "train.Adam(rate), where rate is any value, such as 0.1 / (1 + thalweg.schedules.global_step())",
    "reducelronplateau": "a callback: trainer.fit(data, callbacks=[...])", "gradscaler": "train.LossScale", "autocast": "train.LossScale",
    "modelcheckpoint": "trainer.fit(data, folder='run', keep_best=True), with trainer = thalweg.train.Trainer(...)",
    "tensorboard": "trainer.fit(data, logdir='run'), with trainer = thalweg.train.Trainer(...)", "compile": "train.Trainer",
    "distributeddataparallel": "train.AllReduce", "swa": "averages", "averagedmodel": "averages", "ema": "averages",
    # Metrics
    "f1": "2 * p * r / (p + r), of metrics.precision and metrics.recall", "f1score": "2 * p * r / (p + r), of metrics.precision and metrics.recall",
    "confusionmatrix": "metrics.confusion", "sparsecategoricalaccuracy": "metrics.accuracy", "categoricalaccuracy": "metrics.accuracy",
    "binaryaccuracy": "metrics.accuracy", "topkcategoricalaccuracy": "metrics.top_k", "auroc": "metrics.auc", "meaniou": "metrics.confusion",
    "r2": "1 - ((y - z) ** 2).sum() / ((y - y.mean()) ** 2).sum()", "r2score": "1 - ((y - z) ** 2).sum() / ((y - y.mean()) ** 2).sum()",
    # Data
    "fromtensorslices": "data.arrays", "fromgenerator": "data.generator",
    "iterabledataset": "data.generator", "csvdataset": "data.csv",
    "makecsvdataset": "data.csv", "autotune": "data.AUTO", "subset": "dataset.take(n) and dataset.skip(n)",
    "randomsplit": "dataset.shuffle(n, seed=1, each_pass=False), then take(n) and skip(n)", "listfiles": "data.files", "imagefolder": "data.arrays(names, labels), and map(...)",
    "tfrecordwriter": "data.RecordWriter", "evaluate": "train.Trainer", "predict": "train.Trainer", "dataloader": "data.arrays(x, y).shuffle(1000, seed=1).batch(32).prefetch()",
    "earlystopping": "trainer.fit(data, validation=0.2, patience=3), with trainer = thalweg.train.Trainer(...)",
}

# Names that mean something else in one module of thalweg, or that are those of ops. They count before NAMES.
OF_MODULES: dict[str, dict[str, str]] = {
    "nn": {"add": "x + y", "concatenate": "nn.Concat", "model": "nn.Module", "parameter": "Variable"},
    "data": {"tensordataset": "data.arrays", "tensorslicedataset": "data.arrays", "textlinedataset": "data.lines", "tfrecorddataset": "data.records"},
    "losses": {"cosine": "1 - (x * y).sum(-1) / ops.sqrt((x * x).sum(-1) * (y * y).sum(-1))"},
    "random": {"split": "random.seed"},
    "schedules": {"linear": "schedules.polynomial", "step": "schedules.piecewise", "constant": "a number"},
}

# Ops whose name means another op elsewhere; their inputs come in the order of the other libraries.
OLDER = {"Concat": "ops.concat_v2"}


def plain(name: str) -> str:
    """Converts a name to the form of the keys: "LayerNorm" and "layer_norm" become "layernorm"."""
    return name.lower().replace("_", "")


def is_name(found: str) -> bool:
    """Returns true if it is a name in thalweg, not a formula."""
    return found.replace(".", "").replace("_", "").isalnum() and not found.startswith("numpy.")
