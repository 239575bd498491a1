"""Everything that is public has a docstring and types, is told by its name when it is printed, and is found where others have it."""
import importlib
import inspect
import operator
import pkgutil
import re
import types

import numpy as np
import pytest

import thalweg as tw
from thalweg.elsewhere import NAMES, OF_MODULES, is_name, plain

MODULES = [m.name for m in pkgutil.iter_modules(tw.__path__) if not m.name.startswith("_")]


def members(name, it):
    """(name, object) of what is public of an object of this package, itself included."""
    yield name, it
    if inspect.isclass(it):
        for key, value in vars(it).items():
            if not key.startswith("_") and (inspect.isroutine(value) or isinstance(value, (property, classmethod, staticmethod))):
                yield f"{name}.{key}", value


def public():
    found = {}
    for module in [tw, tw.train, tw.schedules, tw.losses, tw.recurrent, tw.averages, tw.random, tw.log]:
        names = getattr(module, "__all__", None) or [n for n, x in vars(module).items()
                                                      if not n.startswith("_") and getattr(x, "__module__", "") == module.__name__]
        for n in names:
            it = getattr(module, n)
            if not isinstance(it, types.ModuleType) and str(getattr(it, "__module__", "")).startswith("thalweg"):
                found.update(members(f"{module.__name__}.{n}", it))
    return found


def code_of(it):
    return it.fget if isinstance(it, property) else it.__func__ if isinstance(it, (classmethod, staticmethod)) else it


def test_all_names_are_there_and_all_modules_are_documented():
    assert not [n for n in tw.__all__ if not hasattr(tw, n)]
    assert not [m for m in MODULES if not importlib.import_module(f"thalweg.{m}").__doc__]
    assert len(public()) > 250


def test_every_public_thing_has_a_docstring():
    lacking = [n for n, it in public().items() if not code_of(it).__doc__ and not isinstance(it, tw.DType)]
    assert not lacking


def test_every_public_thing_has_types():
    lacking = []
    for name, it in public().items():
        what = it.__init__ if inspect.isclass(it) else code_of(it)
        if not inspect.isfunction(what):
            continue
        signature = inspect.signature(what)
        lacking += [f"{name}({p.name})" for p in signature.parameters.values() if p.name not in ("self", "cls") and p.annotation is p.empty]
        lacking += [name] if signature.return_annotation is inspect.Signature.empty and not inspect.isclass(it) else []
    assert not lacking


@pytest.mark.parametrize("name, told", [("Sesion", "did you mean thalweg.Session?"), ("matmul", "did you mean thalweg.ops.mat_mul?"),
                                        ("Adam", "it is thalweg.train.Adam"), ("reduce_mean", "did you mean thalweg.ops.mean?"),
                                        ("zeros", "did you mean thalweg.ops.fill?"), ("LayerNorm", "did you mean thalweg.nn.LayerNorm?"),
                                        ("manual_seed", "did you mean thalweg.random.seed?"), ("Dense", "did you mean thalweg.nn.Dense?"),
                                        ("multi_head_attention", "did you mean thalweg.nn.MultiHeadAttention?")])
def test_a_name_that_is_elsewhere_is_told_where(name, told):
    with pytest.raises(AttributeError, match=f"module 'thalweg' has no attribute '{name}'; {re.escape(told)}"):
        getattr(tw, name)


def test_a_name_that_is_nowhere_is_an_attribute_error():
    for name in ("xyzzy", "__wrapped__", "_nothing"):
        with pytest.raises(AttributeError, match=f"module 'thalweg' has no attribute '{name}'$"):
            getattr(tw, name)


def test_names_of_other_libraries_lead_to_what_there_is_and_hide_nothing():
    for name, found in NAMES.items():
        assert name == plain(name) and (not is_name(found) or operator.attrgetter(found)(tw)), name
    hidden = {plain(op) for op in dir(tw.ops)} | {plain(n) for n in tw.__all__}
    assert all(is_name(found) is False or operator.attrgetter(found)(tw) for names in OF_MODULES.values() for found in names.values())
    assert not hidden.intersection(NAMES) and not hidden.intersection(plain(n) for n in ("layer_norm", "dropout", "gelu", "attention"))


X, Y = np.array([[0.5, -2, 3], [1, 0, -4]], np.float32), np.array([[1, 0, 1], [0, 1, 1]], np.float32)
FORMULAS = {
    "logsumexp": np.log(np.exp(X).sum()), "var": X.var(),
    "std": X.std(),
    "mseloss": ((X - Y) ** 2).mean(), "l1loss": np.abs(X - Y).mean(),
    "sigmoidcrossentropywithlogits": -Y * np.log(1 / (1 + np.exp(-X))) - (1 - Y) * np.log(1 / (1 + np.exp(X))), "flatten": X.reshape(-1)}


def test_names_that_people_bring_along_get_a_suggestion():
    """The names that programs for PyTorch, Keras and JAX use most, of which each has an equivalent."""
    names = ("relu softmax layer_norm dropout attention gelu silu swish mish conv1d conv2d conv3d Linear Dense Embedding LSTM GRU Sequential Module Parameter "
             "Adam AdamW SGD RMSprop Adagrad backward jit custom_vjp custom_jvp fori_loop stop_gradient detach einsum matmul bmm where nonzero "
             "argsort sort cumsum topk gather index_select masked_fill masked_select one_hot arange ones zeros full zeros_like rand randn randint "
             "normal uniform manual_seed PRNGKey tensor from_numpy as_tensor cuda DataLoader evaluate predict state_dict StepLR CosineAnnealingLR EarlyStopping "
             "BatchNorm2d LayerNorm GroupNorm MaxPool2d AvgPool2d GlobalAveragePooling2D Flatten CrossEntropyLoss BCEWithLogitsLoss MSELoss L1Loss "
             "binary_cross_entropy mse_loss clip_grad_norm GradientTape squeeze unsqueeze permute transpose reshape view cat stack split chunk tile "
             "repeat expand flip roll pad clamp mean std var norm dot outer inner det solve svd qr eigh cholesky fft rfft logsumexp categorical "
             "shuffle Input MultiheadAttention sigmoid tanh log_softmax softplus elu").split()
    silent = []
    for name in names:
        try:
            getattr(tw, name)
        except AttributeError as e:
            if "did you mean thalweg." not in str(e) and "write " not in str(e) and "it is thalweg." not in str(e):
                silent.append(name)
    assert not silent


BROUGHT = {
    "nn": "Linear Conv2d ConvTranspose2d BatchNorm2d MaxPool2d ReLU GELU LeakyReLU Softmax Identity MultiheadAttention TransformerEncoderLayer "
          "CrossEntropyLoss MSELoss BCELoss NLLLoss KLDivLoss HuberLoss SmoothL1Loss ModuleList ModuleDict ParameterList Parameter "
          "AdaptiveAvgPool2d GlobalAveragePooling2D DepthwiseConv2D SeparableConv2D TimeDistributed Lambda Concatenate Activation InstanceNorm PReLU "
          "RNN LSTMCell Upsample PixelShuffle functional init Layer Model Input",
    "train": "RMSprop Nadam Lion EarlyStopping ModelCheckpoint TensorBoard CosineAnnealingLR LambdaLR ReduceLROnPlateau StepLR DataLoader GradScaler "
             "clip_grad_norm_ DistributedDataParallel",
    "data": "DataLoader TensorDataset IterableDataset from_tensor_slices from_generator TFRecordDataset TextLineDataset CsvDataset AUTOTUNE Subset random_split",
    "losses": "CrossEntropyLoss mse MSELoss binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy huber kl_div hinge ctc",
    "metrics": "Accuracy AUC F1 F1Score Mean Precision Recall confusion_matrix mean_iou r2 SparseCategoricalAccuracy",
    "random": "normal uniform randint key PRNGKey permutation shuffle choice bernoulli truncated_normal",
    "schedules": "ExponentialDecay CosineDecay PolynomialDecay PiecewiseConstantDecay CosineAnnealingLR MultiStepLR warmup",
    "ops": "normalize cosine_similarity nll_loss bce_loss no_grad eye meshgrid repeat_interleave take_along_axis pixel_shuffle interpolate allclose histogram",
}


@pytest.mark.parametrize("module", BROUGHT)
def test_every_module_knows_the_names_that_people_bring_along(module):
    for name in BROUGHT[module].split():
        with pytest.raises(AttributeError, match=f"'{name}'.*(did you mean thalweg[.]|write )") as caught:
            getattr(getattr(tw, module), name)
        meant = re.search(r"did you mean thalweg[.]([\w.]+)[?]", str(caught.value))
        assert meant is None or operator.attrgetter(meant[1])(tw) is not None
    with pytest.raises(AttributeError, match="xyzzy"):
        getattr(getattr(tw, module), "xyzzy")


def test_modules_offer_what_has_a_name_like_it():
    for module, name, meant in (("nn", "Conv2DTranpose", "nn.Conv2DTranspose"), ("train", "Trianer", "train.Trainer"), ("data", "jsonlines", "data.json_lines"),
                                ("nn", "Adam", "train.Adam"), ("train", "cosine", "schedules.cosine"), ("metrics", "top_K", "metrics.top_k")):
        with pytest.raises(AttributeError, match=rf"module 'thalweg.{module}' has no attribute '{name}'; did you mean thalweg.{meant}[?]"):
            getattr(getattr(tw, module), name)


@pytest.mark.parametrize("name", FORMULAS)
def test_the_formulas_that_stand_for_names_compute_them(run, name):
    formula, _, let = NAMES[name].split(", or ")[0].partition(", with ")
    known = {"x": tw.constant(X), "y": tw.constant(Y), "ops": tw.ops}
    if let:
        exec(let, known)
    np.testing.assert_allclose(run(eval(formula, known)), FORMULAS[name], rtol=2e-5, atol=1e-6)


def test_completion_offers_what_is_public_and_no_modules_that_the_package_uses():
    for module in (tw, tw.train, tw.schedules, tw.losses, tw.recurrent, tw.averages, tw.random, tw.log, tw.nn, tw.data, tw.metrics, tw.text,
                   tw.weights, tw.generation):
        offered = [n for n in dir(module) if not n.startswith("_")]
        assert set(offered) == set(module.__all__)
        strangers = [n for n in offered if isinstance(getattr(module, n), types.ModuleType) and n not in dir(tw)]
        assert not strangers and not {"np", "ctypes", "build", "graph", "attributes"}.intersection(offered)


def test_what_is_printed_names_it(graph):
    x = tw.placeholder("float32", [], name="x")
    queue, session = tw.FIFOQueue(2, ["float32", "int64"]), tw.Session(graph)
    assert repr(queue) == "<FIFOQueue 'FIFOQueueV2' of float32, int64>"
    assert repr(session) == "<Session of <Graph of 2 operations>>" and repr(session.callable(x, [x])) == "<Callable(x:0)>"
