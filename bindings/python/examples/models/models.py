"""The networks of this folder by name.

    model = models.load("resnet50")
    inputs, targets = model.example(batch=8)
    outputs = model.network()(*inputs)

README.md lists the names that each file has."""
import difflib
import importlib
import pathlib
import sys
import types

# The name of a network is that of its file, with hyphens.
MODELS = ("alexnet", "overfeat", "vgg-a", "googlenet", "inception-v3", "resnet50", "mobilenet-v2", "unet", "sparse-regression",
          "clusters", "lstm", "bert", "gpt", "seq2seq", "vae", "gan", "dqn")


def load(name: str) -> types.ModuleType:
    """Returns the module of a network. Raises ValueError, naming a similar one, if there is none of that name."""
    wanted = name.lower().replace("_", "-")
    if wanted not in MODELS:
        near = difflib.get_close_matches(wanted, MODELS, 1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise ValueError(f"there is no model '{name}'; {hint}there are: {', '.join(MODELS)}")
    folder = str(pathlib.Path(__file__).resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # the files import each other
    return importlib.import_module(wanted.replace("-", "_"))
