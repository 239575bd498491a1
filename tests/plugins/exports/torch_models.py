"""Models of torchvision and transformers, with random weights, for torch_exports.py.

MODELS: name -> function without arguments that returns (module, inputs in order of its arguments, axes of a dynamic size by argument)."""
import numpy as np
import torch
import torchvision.models as V

BATCH = {0: "batch"}


def _seeded(module):
    """Gives the normalisations weights that are no identities, and returns the module for inference."""
    for m in module.modules():
        if getattr(m, "running_mean", None) is not None:
            m.running_mean.normal_(0, 0.1)
            m.running_var.uniform_(0.8, 1.2)
        if isinstance(m, (torch.nn.BatchNorm2d, torch.nn.LayerNorm, torch.nn.GroupNorm)) and m.weight is not None:
            torch.nn.init.uniform_(m.weight, 0.8, 1.2)
            torch.nn.init.normal_(m.bias, 0, 0.1)
    return module.eval()


def _image(make, size=224, **options):
    def build():
        return _seeded(make(weights=None, **options)), (torch.randn(2, 3, size, size),), (BATCH,)
    return build


class Named(torch.nn.Module):
    """Chooses outputs of a module that returns a dict or a dataclass, so that both exporters see a tuple of tensors."""

    def __init__(self, inner, names, inputs=("input_ids",)):
        super().__init__()
        self.inner, self.names, self.inputs = inner, names, inputs

    def forward(self, *values):
        out = self.inner(**dict(zip(self.inputs, values))) if self.inputs else self.inner(*values)
        return tuple(out[name] for name in self.names)


def _segmentation(make, **options):
    def build():
        net = Named(make(weights=None, weights_backbone=None, num_classes=4, **options), ["out"], ())
        return _seeded(net), (torch.randn(2, 3, 64, 64),), (BATCH,)
    return build


class Detector(torch.nn.Module):
    """A detector of torchvision for a batch of one: boxes, scores, labels."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, image):
        found = self.inner([image])[0]
        return found["boxes"], found["scores"], found["labels"]


def _detector(make, **options):
    def build():
        torch.manual_seed(3)
        return _seeded(Detector(make(weights=None, weights_backbone=None, num_classes=3, **options))), (torch.rand(3, 96, 96),), ({},)
    return build


TEXT = {0: "batch", 1: "length"}


def _text(kind, names, inputs=("input_ids", "attention_mask"), decoder=False, length=9, **config):
    def build():
        import transformers
        made = getattr(transformers, kind + "Config")(**config)
        made._attn_implementation = "eager"
        if hasattr(made, "use_cache"):
            made.use_cache = False
        model = getattr(transformers, names[0])(made)
        ids = torch.arange(2 * length).reshape(2, length) % 40 + 1
        mask = torch.ones_like(ids)
        mask[1, length - 3:] = 0
        given = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": ids[:, :4] + 1, "token_type_ids": torch.zeros_like(ids)}
        return _seeded(Named(model, list(names[1:]), inputs)), tuple(given[i] for i in inputs), tuple(
            {0: "batch", 1: "steps"} if i == "decoder_input_ids" else TEXT for i in inputs)
    return build


SMALL = dict(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=64)


def _vision(kind, names, **config):
    def build():
        import transformers
        made = getattr(transformers, kind + "Config")(**config)
        made._attn_implementation = "eager"
        size = config.get("image_size", 64)
        return _seeded(Named(getattr(transformers, names[0])(made), list(names[1:]), ("pixel_values",))), (torch.randn(2, 3, size, size),), (BATCH,)
    return build


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(5, 7, 2, batch_first=True, bidirectional=True)
        self.gru, self.rnn = torch.nn.GRU(14, 6, batch_first=True), torch.nn.RNN(6, 4, batch_first=True)

    def forward(self, x):
        h, _ = self.lstm(x)
        h, _ = self.gru(h)
        return self.rnn(h)[0]


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
        self.encoder, self.attention = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x):
        h = self.encoder(x)
        return self.attention(h, x, x, need_weights=False)[0]


class Assorted(torch.nn.Module):
    """Functions of torch that nets of others use."""

    def forward(self, x):
        import torch.nn.functional as F
        grid = F.affine_grid(torch.eye(2, 3).expand(x.shape[0], 2, 3) * 0.8, [x.shape[0], 3, 8, 8], align_corners=False)
        return (F.grid_sample(x, grid, align_corners=False), F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False),
                F.pixel_shuffle(F.pad(x, (1, 1, 2, 2), mode="reflect").repeat(1, 4, 1, 1), 2), F.unfold(x, 3), torch.topk(x.flatten(1), 5)[0],
                torch.cumsum(x, 2), F.adaptive_avg_pool2d(x, 4), torch.einsum("nchw,ncij->nhi", x, x), torch.where(x > 0, x, x.exp()),
                torch.linalg.norm(x, dim=1), F.normalize(x), torch.roll(x, 2, 3), x.argmax(1), F.instance_norm(x), F.silu(x) + F.mish(x) + F.hardswish(x))


MODELS = {
    "resnet18": _image(V.resnet18, 64), "mobilenet_v2": _image(V.mobilenet_v2, 64), "mobilenet_v3_small": _image(V.mobilenet_v3_small, 64),
    "squeezenet1_1": _image(V.squeezenet1_1, 64), "shufflenet_v2_x0_5": _image(V.shufflenet_v2_x0_5, 64), "mnasnet0_5": _image(V.mnasnet0_5, 64),
    "efficientnet_b0": _image(V.efficientnet_b0, 64), "densenet121": _image(V.densenet121, 64), "regnet_y_400mf": _image(V.regnet_y_400mf, 64),
    "regnet_x_400mf": _image(V.regnet_x_400mf, 64), "googlenet": _image(V.googlenet, 96, init_weights=False, aux_logits=False),
    "inception_v3": _image(V.inception_v3, 128, init_weights=False, aux_logits=False), "resnet50": _image(V.resnet50, 64),
    "resnext50_32x4d": _image(V.resnext50_32x4d, 64), "alexnet": _image(V.alexnet, 64), "vgg11_bn": _image(V.vgg11_bn, 64),
    "mobilenet_v3_large": _image(V.mobilenet_v3_large, 64), "convnext_tiny": _image(V.convnext_tiny, 64), "swin_t": _image(V.swin_t, 64),
    "swin_v2_t": _image(V.swin_v2_t, 64), "maxvit_t": _image(V.maxvit_t, 224), "vit_b_32": _image(V.vit_b_32, 224, num_classes=10),
    "efficientnet_v2_s": _image(V.efficientnet_v2_s, 64), "wide_resnet50_2": _image(V.wide_resnet50_2, 64),
    "lraspp_mobilenet_v3_large": _segmentation(V.segmentation.lraspp_mobilenet_v3_large), "deeplabv3_mobilenet_v3_large":
    _segmentation(V.segmentation.deeplabv3_mobilenet_v3_large), "fcn_resnet50": _segmentation(V.segmentation.fcn_resnet50),
    "ssdlite320_mobilenet_v3_large": _detector(V.detection.ssdlite320_mobilenet_v3_large), "retinanet_resnet50_fpn":
    _detector(V.detection.retinanet_resnet50_fpn, min_size=96, max_size=96), "fasterrcnn_mobilenet_v3_large_320_fpn":
    _detector(V.detection.fasterrcnn_mobilenet_v3_large_320_fpn, min_size=96, max_size=96),
    "r3d_18": lambda: (_seeded(V.video.r3d_18(weights=None)), (torch.randn(1, 3, 4, 32, 32),), (BATCH,)),
    "recurrent": lambda: (Recurrent().eval(), (torch.randn(2, 6, 5),), ({0: "batch", 1: "steps"},)),
    "transformer_encoder": lambda: (Transformer().eval(), (torch.randn(2, 6, 16),), ({0: "batch", 1: "steps"},)),
    "assorted": lambda: (Assorted(), (torch.randn(2, 3, 10, 12),), (BATCH,)),
    "bert": _text("Bert", ["BertModel", "last_hidden_state", "pooler_output"], **SMALL),
    "distilbert": _text("DistilBert", ["DistilBertForSequenceClassification", "logits"], vocab_size=50, dim=32, n_layers=2, n_heads=4, hidden_dim=48),
    "roberta": _text("Roberta", ["RobertaModel", "last_hidden_state"], **SMALL),
    "albert": _text("Albert", ["AlbertModel", "last_hidden_state"], embedding_size=16, **SMALL),
    "electra": _text("Electra", ["ElectraForTokenClassification", "logits"], embedding_size=16, **SMALL),
    "mpnet": _text("MPNet", ["MPNetModel", "last_hidden_state"], **SMALL),
    "deberta_v2": _text("DebertaV2", ["DebertaV2Model", "last_hidden_state"], relative_attention=True, pos_att_type=["p2c", "c2p"], **SMALL),
    "gpt2": _text("GPT2", ["GPT2LMHeadModel", "logits"], vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=64),
    "gpt_neox": _text("GPTNeoX", ["GPTNeoXForCausalLM", "logits"], **SMALL),
    "opt": _text("OPT", ["OPTForCausalLM", "logits"], vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48,
                 max_position_embeddings=64, word_embed_proj_dim=32),
    "llama": _text("Llama", ["LlamaForCausalLM", "logits"], num_key_value_heads=2, **SMALL),
    "mistral": _text("Mistral", ["MistralForCausalLM", "logits"], num_key_value_heads=2, sliding_window=4, **SMALL),
    "qwen2": _text("Qwen2", ["Qwen2ForCausalLM", "logits"], num_key_value_heads=2, **SMALL),
    "gemma": _text("Gemma", ["GemmaForCausalLM", "logits"], num_key_value_heads=2, head_dim=8, **SMALL),
    "t5": _text("T5", ["T5ForConditionalGeneration", "logits"], ("input_ids", "attention_mask", "decoder_input_ids"), vocab_size=50, d_model=32, d_kv=8,
                d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0),
    "bart": _text("Bart", ["BartForConditionalGeneration", "logits"], ("input_ids", "attention_mask", "decoder_input_ids"), vocab_size=50, d_model=32,
                  encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
                  max_position_embeddings=64),
    "vit_hf": _vision("ViT", ["ViTForImageClassification", "logits"], hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                      image_size=32, patch_size=8),
    "deit": _vision("DeiT", ["DeiTModel", "last_hidden_state"], hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                    image_size=32, patch_size=8),
    "clip_vision": _vision("CLIPVision", ["CLIPVisionModel", "last_hidden_state", "pooler_output"], hidden_size=32, num_hidden_layers=2,
                           num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8),
    "segformer": _vision("Segformer", ["SegformerForSemanticSegmentation", "logits"], depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 16, 32],
                         decoder_hidden_size=16, num_labels=4, image_size=64),
    "resnet_hf": _vision("ResNet", ["ResNetForImageClassification", "logits"], embedding_size=16, hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 1, 1]),
}
