"""A training step of networks of bindings/python/examples/models in PyTorch, with torchvision's networks and equal weights, compared with
ours and with models_golden.npz. PyTorch computes it in double, so that only our rounding counts.

    tools/test -L peer                                                 compares; by hand, arguments are the names of some cases
    tools/cmake/peer-python tests/python/models_peer.py --update       writes models_golden.npz anew"""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(pathlib.Path(os.environ.get("THALWEG_BINARY_DIR", ROOT / "build/release")) / "python"), str(pathlib.Path(__file__).parent)]
try:
    import numpy as np
    import torch
    import torchvision
except ImportError as error:
    print(f"skipped: {error}; run tools/setup --peers")
    sys.exit(77)

import models_cases as cases

GOLDEN = pathlib.Path(__file__).with_name("models_golden.npz")
# Relative to the sizes of the changes. Batch normalisation over few values enlarges rounding: in float, PyTorch's own step of ResNet-50
# differs from its step in double by 2e-3, that of Inception-v3 by 2e-2.
TOLERANCE = {"alexnet": 1e-3, "vgg-a": 1e-3, "resnet50": 1e-2, "mobilenet-v2": 2e-3, "inception-v3": 2e-2}


def inception():
    """torchvision's, with our order of parts (the auxiliary head is last) and means over pixels that are there."""
    net = torchvision.models.inception_v3(weights=None, aux_logits=True, init_weights=False, dropout=0.0)
    head = net._modules.pop("AuxLogits")
    net.AuxLogits = head
    mean = torch.nn.functional.avg_pool2d
    import torchvision.models.inception as theirs
    theirs.F = type("Functional", (), {name: staticmethod(getattr(torch.nn.functional, name)) for name in ("relu", "max_pool2d", "adaptive_avg_pool2d")})
    theirs.F.avg_pool2d = staticmethod(lambda x, kernel_size, stride=None, padding=0: mean(x, kernel_size, stride, padding, count_include_pad=False))
    return net


def network(case):
    make = torchvision.models
    return {"alexnet": lambda: make.alexnet(dropout=0.0), "vgg-a": lambda: make.vgg11(dropout=0.0), "resnet50": make.resnet50,
            "mobilenet-v2": lambda: make.mobilenet_v2(width_mult=0.35, dropout=0.0), "inception-v3": inception}[case]()


def kinds(net):
    """Each parameter with its name in our layers, in the order of the modules."""
    found = []
    for module in net.modules():
        for name, parameter in module.named_parameters(recurse=False):
            norm = isinstance(module, torch.nn.BatchNorm2d)
            found.append(({"weight": "scale" if norm else "kernel", "bias": "offset" if norm else "bias"}[name], parameter))
    return found


def shape(parameter, pixels):
    """Of our variable. pixels: of the image that a matrix reads flattened; 1 otherwise."""
    s = tuple(parameter.shape)
    return (s[2], s[3], s[1], s[0]) if len(s) == 4 else s[::-1]


def theirs_of(ours, pixels):
    """Our array in PyTorch's layout. pixels: side of the image whose flattening a matrix reads: ours has channels last."""
    if ours.ndim == 4:
        return np.ascontiguousarray(ours.transpose(3, 2, 0, 1))
    if ours.ndim == 2:
        rows = ours.reshape(pixels, pixels, -1, ours.shape[1]).transpose(2, 0, 1, 3).reshape(ours.shape)
        return np.ascontiguousarray(rows.T)
    return ours


def ours_of(theirs, pixels):
    if theirs.ndim == 4:
        return theirs.transpose(2, 3, 1, 0)
    if theirs.ndim == 2:
        return theirs.T.reshape(-1, pixels, pixels, theirs.shape[0]).transpose(1, 2, 0, 3).reshape(theirs.shape[::-1])
    return theirs


def smoothed(logits, labels):
    return torch.nn.functional.cross_entropy(logits, labels, label_smoothing=0.1)


def theirs(case):
    torch.manual_seed(0)
    net, (x, y) = network(case).train().double(), cases.batch(cases.CASES[case][2])
    found = kinds(net)
    pixels = [1] * len(found)
    if case in ("alexnet", "vgg-a"):  # the first matrix; VGG's adaptive pool repeats its image of 2 x 2, so it is made to give it as it is
        side = 6 if case == "alexnet" else cases.CASES[case][2] // 32
        net.avgpool = torch.nn.Identity()
        first = next(i for i, (_, p) in enumerate(found) if p.dim() == 2)
        if case == "vgg-a":
            old = net.classifier[0]
            net.classifier[0] = torch.nn.Linear(512 * side * side, old.out_features).double()
            found = kinds(net)
        pixels[first] = side
    before = [cases.weight(i, kind, shape(p, n)) for i, ((kind, p), n) in enumerate(zip(found, pixels))]
    with torch.no_grad():
        for (_, p), w, n in zip(found, before, pixels):
            p.copy_(torch.tensor(theirs_of(w, n)))
    result, labels = net(torch.tensor(x.transpose(0, 3, 1, 2).astype(np.float64))), torch.tensor(y.astype(np.int64))
    if case == "inception-v3":
        loss = smoothed(result.logits, labels) + 0.4 * smoothed(result.aux_logits, labels)
    else:
        loss = torch.nn.functional.cross_entropy(result, labels)
    loss.backward()
    with torch.no_grad():
        after = [ours_of((p - cases.RATE * p.grad).numpy(), n) for (_, p), n in zip(found, pixels)]
    return cases.measures(loss.item(), before, after)


def main():
    if "--update" in sys.argv:
        found = {case: theirs(case) for case in cases.GOLDEN}
        np.savez_compressed(GOLDEN, **{f"{case}|{part}": array for case, parts in found.items() for part, array in parts.items()})
        print(f"{GOLDEN}: {len(found)} cases, {GOLDEN.stat().st_size} bytes")
        return 0
    golden, failures = np.load(GOLDEN), 0
    for case in sys.argv[1:] or cases.CASES:
        wanted = theirs(case)
        every = [("ours", cases.step(case))]
        if case in cases.GOLDEN:
            every.append(("models_golden.npz", {part: golden[f"{case}|{part}"] for part in wanted}))
        for who, got in every:
            try:
                cases.compare(case, got, wanted, TOLERANCE[case])
                print(f"{case}: {who}: equal", flush=True)
            except AssertionError as error:
                failures += 1
                print(f"FAILED {who}: {error}", flush=True)
    print(f"{failures} comparisons failed")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
