"""Exports models of Keras and TensorFlow as SavedModels, each with TensorFlow's own answers.

usage: keras_exports.py FOLDER [NAME ...]
FOLDER/NAME/model: the SavedModel. FOLDER/NAME/inputs.npz, outputs.npz: inputs and outputs by the signature's names. FOLDER/NAME/wiggle.json:
by output, how far it moves, relative to its largest element, when each float of the input moves by 2e-7 of itself. Without NAME: all models.
An export that is there already is kept. Exit status: 0, or 1 if an export failed; each is tried."""
import json
import os
import pathlib
import sys
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf

import keras_models


def array(value):
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def stored(arrays):
    """Strings of bytes have no fixed length in NumPy; npz files hold them as fixed ones if that loses nothing."""
    out = {}
    for name, value in arrays.items():
        value = np.asarray(value)
        if value.dtype == object:
            fixed = value.astype(bytes)
            if not all(a == b for a, b in zip(value.ravel(), fixed.ravel())):
                fixed = np.array([v.hex().encode() for v in value.ravel()]).reshape(value.shape)
                name += "#hex"
            value = fixed
        out[name] = value
    return out


def answers(folder, inputs):
    """Returns inputs and outputs of the default signature, by name, run in TensorFlow from the file."""
    loaded = tf.saved_model.load(str(folder))
    f = loaded.signatures["serving_default"]
    specs = f.structured_input_signature[1]
    fed = {}
    for name, value in inputs.items():
        if isinstance(value, tf.RaggedTensor):
            parts = tf.nest.flatten(value, expand_composites=True)
            fed.update(zip(list(specs), parts))
        else:
            key = name if name in specs else next(iter(specs))
            fed[key] = tf.constant(value, dtype=specs[key].dtype)
    return fed, f(**fed)


def make(folder, model, inputs):
    path = folder / "model"
    if isinstance(model, tf.keras.Model):
        model.export(str(path), verbose=False)
    else:
        tf.saved_model.save(model, str(path), signatures={"serving_default": model.call})
    fed, got = answers(path, inputs)
    rng = np.random.default_rng(7)
    moved = {k: v * (1 + 2e-7 * rng.choice([-1.0, 1.0], v.shape)).astype(np.float32) if v.dtype == tf.float32 else v for k, v in fed.items()}
    again = tf.saved_model.load(str(path)).signatures["serving_default"](**moved)
    wiggle = {}
    for key, value in got.items():
        a, b = array(value), array(again[key])
        if a.dtype.kind == "f" and a.size and a.shape == b.shape:
            wiggle[key] = float(np.nanmax(np.abs(a.astype(np.float64) - b)) / max(np.nanmax(np.abs(a)), 1e-30))
    np.savez(folder / "inputs.npz", **stored({k: array(v) for k, v in fed.items()}))
    np.savez(folder / "outputs.npz", **stored({k: array(v) for k, v in got.items()}))
    (folder / "wiggle.json").write_text(json.dumps(wiggle, indent=1) + "\n")


def main(out, names):
    tf.config.threading.set_intra_op_parallelism_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    tf.config.threading.set_inter_op_parallelism_threads(1)
    bad = 0
    for name in names or [*keras_models.KINDS, *keras_models.APPLICATIONS]:
        folder = pathlib.Path(out) / name
        if (folder / "wiggle.json").is_file():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        try:
            tf.keras.backend.clear_session()
            tf.keras.utils.set_random_seed(1)
            made = keras_models.KINDS[name]() if name in keras_models.KINDS else keras_models.application(name)
            make(folder, *made)
            print(f"{name}: exported", flush=True)
        except Exception:
            bad += 1
            print(f"{name}: not exported\n{traceback.format_exc()}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
