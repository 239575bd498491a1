"""Models of Keras for keras_exports.py: applications with random weights, and one small model for each kind of export.

APPLICATIONS: function names of keras.applications, small ones first. KINDS: name -> function without arguments that returns
(a Keras model or tf.Module, inputs by name). A module has its signature in `call`."""
import numpy as np
import tensorflow as tf
import keras
from keras import layers as L

APPLICATIONS = (
    "MobileNetV2", "MobileNet", "MobileNetV3Small", "MobileNetV3Large", "EfficientNetB0", "NASNetMobile", "DenseNet121", "EfficientNetV2B0",
    "EfficientNetB1", "EfficientNetV2B1", "ResNet50", "ResNet50V2", "InceptionV3", "Xception", "ConvNeXtTiny", "VGG16", "EfficientNetB2",
    "EfficientNetV2B2", "EfficientNetB3", "EfficientNetV2B3", "DenseNet169", "DenseNet201", "VGG19", "EfficientNetB4", "EfficientNetV2S",
    "ResNet101", "ResNet101V2", "ConvNeXtSmall", "InceptionResNetV2", "ResNet152", "ResNet152V2", "EfficientNetB5", "EfficientNetB6",
    "EfficientNetV2M", "ConvNeXtBase", "NASNetLarge", "EfficientNetB7", "ConvNeXtLarge", "EfficientNetV2L", "ConvNeXtXLarge")


def application(name):
    """Returns the net with ten classes and no softmax, and an input of one image of the net's own size."""
    keras.utils.set_random_seed(1)
    net = getattr(keras.applications, name)(weights=None, classes=10, classifier_activation=None)
    rng = np.random.default_rng(1)
    for layer in net._flatten_layers():
        _draw(layer, rng)
    size = [length or 224 for length in net.input_shape[1:]]  # nets for images of any size
    return net, {net.input_names[0] if hasattr(net, "input_names") else net.inputs[0].name: rng.uniform(0, 255, (1, *size)).astype(np.float32)}


def _draw(layer, rng):
    """Draws the weights so that a signal keeps its scale through the net, and outputs of different classes differ."""
    for v in layer.weights if not getattr(layer, "_layers", None) else []:
        shape, kind = v.shape, v.path.rsplit("/", 1)[-1]
        if kind in ("kernel", "depthwise_kernel", "pointwise_kernel"):
            fan_in = np.prod(shape[:2]) if kind == "depthwise_kernel" or "depthwise" in layer.__class__.__name__.lower() else np.prod(shape[:-1])
            v.assign(rng.normal(0, np.sqrt(1 / fan_in), shape))
        elif kind in ("bias", "beta"):
            v.assign(rng.normal(0, 0.1, shape))
        elif kind == "moving_mean":
            v.assign(rng.normal(0, 0.1, shape))
        elif kind in ("moving_variance", "gamma") and not ("normalization" in v.path and kind == "gamma" and shape == ()):
            if "layer_scale" not in v.path:
                v.assign(rng.uniform(0.8, 1.2, shape))


def floats(*shape, seed=2):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def transformer():
    x = keras.Input((None,), dtype="int32", name="tokens")
    h = L.Embedding(50, 16)(x)
    for _ in range(2):
        a = L.MultiHeadAttention(2, 8)(h, h, use_causal_mask=True)
        h = L.LayerNormalization()(h + a)
        h = L.LayerNormalization()(h + L.Dense(16)(L.Dense(32, activation="gelu")(h)))
    return keras.Model(x, L.Dense(50)(h)), {"tokens": np.arange(14, dtype=np.int32).reshape(2, 7) % 50}


def lstm_gru():
    x = keras.Input((None, 5), name="steps")
    h = L.Bidirectional(L.LSTM(6, return_sequences=True))(x)
    h = L.GRU(7, return_sequences=True)(h)
    return keras.Model(x, L.Dense(3)(L.SimpleRNN(4)(h))), {"steps": floats(2, 9, 5)}


def masked_lstm():
    x = keras.Input((None,), dtype="int32", name="tokens")
    h = L.Embedding(20, 6, mask_zero=True)(x)
    return keras.Model(x, L.Dense(3)(L.GRU(4)(L.LSTM(5, return_sequences=True)(h)))), {
        "tokens": np.array([[3, 4, 5, 0, 0, 0], [1, 2, 3, 4, 5, 6]], np.int32)}


def stft_net():
    x = keras.Input((400,), name="wave")
    h = L.Lambda(lambda w: keras.ops.stack(keras.ops.stft(w, 64, 32, 64), axis=-1))(x)
    return keras.Model(x, L.Dense(4)(L.GlobalAveragePooling2D()(L.Conv2D(5, 3, activation="relu")(h)))), {"wave": floats(2, 400)}


def mel_audio():
    x = keras.Input((800,), name="wave")
    h = L.MelSpectrogram(fft_length=128, sequence_stride=64, sampling_rate=8000, num_mel_bins=16)(x)
    return keras.Model(x, h), {"wave": floats(2, 800)}


def raw_audio():
    class Net(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, "wave")])
        def call(self, wave):
            stft = tf.signal.stft(wave, 128, 64)
            mel = tf.tensordot(tf.abs(stft), tf.signal.linear_to_mel_weight_matrix(12, 65, 8000), 1)
            return {"mfcc": tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(mel + 1e-6)), "wave": tf.signal.inverse_stft(stft, 128, 64)}
    net = Net()
    return net, {"wave": floats(2, 800)}


def conv_lstm():
    x = keras.Input((None, 8, 8, 2), name="film")
    h = L.ConvLSTM2D(4, 3, padding="same", return_sequences=True)(x)
    return keras.Model(x, L.Conv3D(2, 3, padding="same")(h)), {"film": floats(2, 4, 8, 8, 2)}


def vae():
    x = keras.Input((8, 8, 1), name="image")
    h = L.Dense(6)(L.Flatten()(L.Conv2D(4, 3, strides=2, activation="relu")(x)))
    y = L.Dense(16, activation="relu")(h)
    y = L.Conv2DTranspose(3, 3, strides=2, padding="same")(L.Reshape((4, 4, 1))(y))
    return keras.Model(x, [h, L.Activation("sigmoid")(y)]), {"image": floats(2, 8, 8, 1)}


def augmentation():
    x = keras.Input((16, 16, 3), name="image")
    h = L.Rescaling(1 / 255.)(x)
    for layer in (L.RandomFlip(), L.RandomRotation(0.1), L.RandomZoom(0.1), L.RandomContrast(0.1), L.RandomTranslation(0.1, 0.1)):
        h = layer(h)
    return keras.Model(x, L.Dense(3)(L.GlobalAveragePooling2D()(L.Conv2D(4, 3)(h)))), {"image": np.abs(floats(2, 16, 16, 3)) * 60}


def projective():
    class Net(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 9, 11, 2], tf.float32, "image")])
        def call(self, image):
            turns = tf.constant([[1.1, 0.2, -1.5, -0.1, 0.9, 0.5, 0.01, -0.02]])
            outs = {}
            for mode in ("REFLECT", "WRAP", "CONSTANT", "NEAREST"):
                for method in ("BILINEAR", "NEAREST"):
                    outs[f"{mode}_{method}".lower()] = tf.raw_ops.ImageProjectiveTransformV3(
                        images=image, transforms=turns, output_shape=[8, 12], fill_value=0.5, interpolation=method, fill_mode=mode)
            outs["v2"] = tf.raw_ops.ImageProjectiveTransformV2(images=image, transforms=turns, output_shape=[8, 12], interpolation="BILINEAR")
            return outs
    net = Net()
    return net, {"image": floats(2, 9, 11, 2)}


def crossing():
    a, b = keras.Input((1,), dtype="string", name="a"), keras.Input((1,), dtype="string", name="b")
    return keras.Model([a, b], L.HashedCrossing(num_bins=10, output_mode="one_hot")([a, b])), {
        "a": np.array([[b"x"], [b"y"], [b"z"]], object), "b": np.array([[b"u"], [b"v"], [b"u"]], object)}


def detector():
    x, s = keras.Input((20, 4), name="boxes"), keras.Input((20, 3), name="scores")

    class Choose(L.Layer):
        def call(self, boxes, scores):
            found = tf.image.combined_non_max_suppression(boxes[:, :, None, :], scores, 5, 10, 0.5, 0.1)
            return found.nmsed_boxes, found.nmsed_scores, found.nmsed_classes, found.valid_detections

        def compute_output_shape(self, *_):
            return (None, 10, 4), (None, 10), (None, 10), (None,)
    corner = np.abs(floats(2, 20, 2)) / 4
    boxes = np.concatenate([corner, corner + 0.1 + np.abs(floats(2, 20, 2, seed=3)) / 4], -1).astype(np.float32)
    return keras.Model([x, s], Choose()(x, s)), {"boxes": boxes, "scores": np.abs(floats(2, 20, 3, seed=4)) / 3}


def crops():
    class Net(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 12, 12, 2], tf.float32, "image"), tf.TensorSpec([None, 4], tf.float32, "boxes"),
                                      tf.TensorSpec([None], tf.float32, "scores")])
        def call(self, image, boxes, scores):
            kept = tf.image.non_max_suppression(boxes, scores, 4, 0.4)
            kept_soft, soft = tf.image.non_max_suppression_with_scores(boxes, scores, 4, 0.9, 0.1, 0.5)
            best = tf.gather(boxes, kept)
            return {"crops": tf.image.crop_and_resize(image, best, tf.zeros_like(kept), [5, 5]), "kept": kept, "kept_soft": kept_soft, "soft": soft}
    net = Net()
    return net, {"image": floats(1, 12, 12, 2), "boxes": detector()[1]["boxes"][0], "scores": np.abs(floats(20, seed=9))}


def tcn():
    x = keras.Input((None, 3), name="steps")
    h = x
    for rate in (1, 2, 4):
        h = L.Conv1D(6, 3, dilation_rate=rate, padding="causal", activation="relu")(h)
    return keras.Model(x, L.Dense(2)(h)), {"steps": floats(2, 20, 3)}


def unet2d():
    x = keras.Input((16, 16, 2), name="image")
    a = L.Conv2D(4, 3, padding="same", activation="relu")(x)
    b = L.Conv2D(8, 3, padding="same", dilation_rate=2, activation="relu")(L.MaxPooling2D()(a))
    u = L.Concatenate()([L.UpSampling2D(interpolation="bilinear")(b), a, L.Conv2DTranspose(4, 2, strides=2)(b)])
    return keras.Model(x, L.Conv2D(1, 1)(u)), {"image": floats(2, 16, 16, 2)}


def unet3d():
    x = keras.Input((8, 8, 8, 1), name="volume")
    a = L.Conv3D(3, 3, padding="same", activation="relu")(x)
    b = L.Conv3D(5, 3, padding="same", dilation_rate=2, activation="relu")(L.MaxPooling3D()(a))
    b = L.AveragePooling3D(2, 1, "same")(b)
    u = L.Concatenate()([L.UpSampling3D()(b), a, L.Conv3DTranspose(2, 2, strides=2)(b)])
    return keras.Model(x, L.Conv3D(1, 1)(u)), {"volume": floats(1, 8, 8, 8, 1)}


def resize():
    x = keras.Input((9, 11, 2), name="image")
    kinds = ("nearest", "bilinear", "bicubic", "area", "lanczos3", "lanczos5")
    return keras.Model(x, [L.Resizing(14, 6, interpolation=k)(x) for k in kinds]), {"image": floats(2, 9, 11, 2)}


def tabular():
    age, job, code = keras.Input((1,), name="age"), keras.Input((1,), dtype="string", name="job"), keras.Input((1,), dtype="int64", name="code")
    norm, table, ids = L.Normalization(), L.StringLookup(output_mode="one_hot"), L.IntegerLookup(output_mode="one_hot")
    norm.adapt(np.array([[20.], [30.], [50.]]))
    table.adapt(np.array([["cook"], ["smith"], ["cook"]]))
    ids.adapt(np.array([[3], [7], [7]]))
    parts = [norm(age), table(job), ids(code), L.CategoryEncoding(4, output_mode="one_hot")(L.Discretization(bin_boundaries=[25., 35., 45.])(age)),
             L.Hashing(5, output_mode="one_hot")(job)]
    return keras.Model([age, job, code], L.Dense(3)(L.Concatenate()(parts))), {
        "age": np.array([[22.], [33.], [44.]], np.float32), "job": np.array([[b"cook"], [b"king"], [b"smith"]], object),
        "code": np.array([[3], [4], [7]], np.int64)}


WORDS = ["the cat sat on the mat", "a dog, a CAT and the end!", "", "mat mat mat"]


def _text(**options):
    layer = L.TextVectorization(**options)
    layer.adapt(WORDS)
    x = keras.Input((), dtype="string", name="text")
    return keras.Model(x, layer(x)), {"text": np.array([b"The cat, the dog", b"unknown words end", b""], object)}


def text():
    return _text(output_sequence_length=8)


def text_free():
    return _text()


def text_ngrams():
    return _text(ngrams=2, output_mode="int")


def text_multi_hot():
    return _text(ngrams=2, output_mode="multi_hot")


def text_count():
    return _text(output_mode="count", pad_to_max_tokens=True, max_tokens=30)


def text_tf_idf():
    return _text(output_mode="tf_idf")


def text_characters():
    return _text(split="character", output_sequence_length=12)


def text_ragged():
    class Net(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
        def call(self, text):
            words = tf.strings.split(text)
            bi = tf.strings.ngrams(words, 2)
            letters = tf.strings.unicode_decode(text, "UTF-8")
            return {"joined": tf.strings.reduce_join(words, axis=-1, separator="_"), "bigrams": bi.to_tensor(""), "letters": letters.to_tensor(-1),
                    "back": tf.strings.unicode_encode(letters, "UTF-8"), "lengths": words.row_lengths(), "lower": tf.strings.lower(text),
                    "split_letters": tf.strings.unicode_split(text, "UTF-8").to_tensor("")}
    net = Net()
    return net, {"text": np.array([s.encode() for s in ("The cat, the dog", "Grüße an alle", "x")], object)}


def mutable_table():
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
            self.table.insert(["a", "b"], [4, 7])
            self.static = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "c"]), tf.constant([1., 2.])), -1.)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "key")])
        def call(self, key):
            return {"value": self.table.lookup(key), "static": self.static.lookup(key)}
    net = Net()
    return net, {"key": np.array([b"a", b"b", b"c"], object)}


def vocabulary_file():
    import tempfile
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
        file.write("cat\ndog\nmouse\n")

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(
                file.name, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 2)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "word")])
        def call(self, word):
            return {"id": self.table.lookup(word)}
    net = Net()
    return net, {"word": np.array([b"dog", b"mouse", b"horse"], object)}


def attention():
    q, v = keras.Input((5, 8), name="query"), keras.Input((6, 8), name="value")
    h = L.Concatenate()([L.Attention(use_scale=True)([q, v]), L.AdditiveAttention()([q, v]), L.GroupQueryAttention(4, 4, 2)(q, v)])
    return keras.Model([q, v], h), {"query": floats(2, 5, 8), "value": floats(2, 6, 8, seed=5)}


def norms():
    x = keras.Input((6, 6, 8), name="image")
    h = L.Concatenate()([L.BatchNormalization()(x), L.LayerNormalization()(x), L.GroupNormalization(4)(x), L.UnitNormalization()(x),
                         L.SpectralNormalization(L.Conv2D(3, 1))(x), L.RMSNormalization()(x)])
    return keras.Model(x, h), {"image": floats(2, 6, 6, 8)}


def random_module():
    class Net(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([2], tf.int32, "seed")])
        def call(self, seed):
            return {"normal": tf.random.stateless_normal([3, 4], seed), "uniform": tf.random.stateless_uniform([5], seed),
                    "int": tf.random.stateless_uniform([6], seed, 3, 17, tf.int32), "cut": tf.random.stateless_truncated_normal([4], seed),
                    "class": tf.random.stateless_categorical(tf.math.log([[0.2, 0.5, 0.3]]), 6, seed)}
    net = Net()
    return net, {"seed": np.array([3, 9], np.int32)}


def random_distributions():
    class Net(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([2], tf.int32, "seed")])
        def call(self, seed):
            return {"gamma": tf.random.stateless_gamma([5], seed, 2.0), "poisson": tf.random.stateless_poisson([5], seed, 3.0),
                    "shuffle": tf.random.experimental.stateless_shuffle(tf.range(7), seed)}
    net = Net()
    return net, {"seed": np.array([3, 9], np.int32)}


def bytes_image():
    class Net(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "png")])
        def call(self, png):
            one = lambda b: tf.image.resize(tf.image.convert_image_dtype(tf.io.decode_image(b, 3, expand_animations=False), tf.float32), [8, 8])
            image = tf.map_fn(one, png, fn_output_signature=tf.TensorSpec([8, 8, 3], tf.float32))
            return {"image": image, "grey": tf.image.rgb_to_grayscale(image), "hue": tf.image.adjust_hue(image, 0.2),
                    "contrast": tf.image.adjust_contrast(image, 1.5), "standard": tf.image.per_image_standardization(image)}
    net = Net()
    picture = np.random.default_rng(6).integers(0, 255, (2, 12, 10, 3), dtype=np.uint8)
    return net, {"png": np.array([tf.io.encode_png(p).numpy() for p in picture], object)}


def parse_example():
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[1.0], [2.0]])

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
        def call(self, examples):
            found = tf.io.parse_example(examples, {"x": tf.io.FixedLenFeature([2], tf.float32), "id": tf.io.VarLenFeature(tf.int64),
                                                   "tag": tf.io.FixedLenFeature([], tf.string, "none")})
            return {"y": found["x"] @ self.w, "id": tf.sparse.to_dense(found["id"]), "tag": found["tag"]}
    net = Net()

    def example(x, ids):
        return tf.train.Example(features=tf.train.Features(feature={
            "x": tf.train.Feature(float_list=tf.train.FloatList(value=x)), "id": tf.train.Feature(int64_list=tf.train.Int64List(value=ids))})).SerializeToString()
    return net, {"examples": np.array([example([1, 2], [5]), example([3, 4], [6, 7])], object)}


def loops():
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.count = tf.Variable(0.0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
        def call(self, x):
            out = tf.TensorArray(tf.float32, 0, True)
            for i in tf.range(tf.size(x)):
                if x[i] > 0:
                    out = out.write(i, x[i] * 2)
                else:
                    out = out.write(i, -x[i])
            return {"y": out.stack(), "sorted": tf.sort(x), "top": tf.math.top_k(x, 2)[0], "cum": tf.cumsum(x), "sum": tf.scan(lambda a, b: a * 0.5 + b, x)}
    net = Net()
    return net, {"x": floats(6)}


def linear_algebra():
    class Net(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 4, 4], tf.float32, "a"), tf.TensorSpec([None, 4, 2], tf.float32, "b")])
        def call(self, a, b):
            s = tf.matmul(a, a, transpose_b=True) + tf.eye(4)
            return {"cholesky": tf.linalg.cholesky(s), "solve": tf.linalg.solve(s, b), "inverse": tf.linalg.inv(s), "det": tf.linalg.det(s),
                    "values": tf.linalg.eigvalsh(s), "singular": tf.linalg.svd(a, compute_uv=False), "logdet": tf.linalg.logdet(s),
                    "triangular": tf.linalg.triangular_solve(s, b)}
    net = Net()
    return net, {"a": floats(2, 4, 4), "b": floats(2, 4, 2, seed=3)}


def embedding_bag():
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.rows = tf.Variable(floats(10, 4))

        @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int64, 1)])
        def call(self, ids):
            sparse = ids.to_sparse()
            return {"mean": tf.nn.safe_embedding_lookup_sparse(self.rows, sparse), "sum": tf.nn.embedding_lookup_sparse(self.rows, sparse, None, combiner="sum"),
                    "dense": tf.reduce_mean(tf.gather(self.rows, ids), axis=1)}
    net = Net()
    return net, {"ids": tf.ragged.constant([[1, 2], [3], [4, 5, 6]], dtype=tf.int64)}


def separable():
    x = keras.Input((12, 12, 4), name="image")
    h = L.SeparableConv2D(6, 3, activation="swish")(L.ZeroPadding2D(1)(x))
    h = L.DepthwiseConv2D(3, depth_multiplier=2)(L.Conv2D(8, 3, groups=2)(h))
    h = L.PReLU()(L.LeakyReLU()(L.Cropping2D(1)(h)))
    return keras.Model(x, [L.GlobalMaxPooling2D()(h), L.AveragePooling2D(2)(h)]), {"image": floats(2, 12, 12, 4)}


KINDS = {f.__name__: f for f in (
    transformer, lstm_gru, masked_lstm, stft_net, mel_audio, raw_audio, conv_lstm, vae, augmentation, projective, crossing, detector, crops, tcn, unet2d,
    unet3d, resize, tabular, text, text_free, text_ngrams, text_multi_hot, text_count, text_tf_idf, text_characters, text_ragged, mutable_table,
    vocabulary_file, attention, norms, random_module, random_distributions, bytes_image, parse_example, loops, linear_algebra, embedding_bag, separable)}
