import numpy as np

from declare import op, refuses

# The axes of an image in the order batch, channels (groups of four), height, width, four channels.
ORDERS = {"NHWC": (0, 3, 1, 2), "NCHW": (0, 1, 2, 3), "NCHW_VECT_C": (0, 1, 2, 3, 4)}


def image(d, space):
    """Draws an image whose height and width (or else whose channels) are multiples of the block."""
    n, h, w, c = ((2, 7, 9, 40) if d.large else (d.integer(0, 3), d.integer(0, 3), d.integer(1, 3), d.integer(1, 3)))
    block, form = d.attrs["block_size"], d.attrs["data_format"]
    by_meaning = (n, c, h * block, w * block, 4) if space else (n, c * block**2, h, w, 4)
    return [d("input", [by_meaning[ORDERS[form].index(k)] for k in range(len(ORDERS[form]))])]


def ordered(x, form):
    """Returns x as [batch, channels, height, width]."""
    x = x.transpose(ORDERS[form])
    return x if x.ndim == 4 else np.moveaxis(x, 4, 2).reshape(x.shape[0], 4 * x.shape[1], *x.shape[2:4])


def restored(x, form):
    if form == "NCHW_VECT_C":
        return np.moveaxis(x.reshape(x.shape[0], x.shape[1] // 4, 4, *x.shape[2:]), 2, 4)
    return x.transpose(np.argsort(ORDERS[form]))


def to_depth(x, *, block_size, data_format):
    n, c, h, w = (x := ordered(x, data_format)).shape
    b = block_size
    blocks = x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return restored(blocks.reshape(n, b * b * c, h // b, w // b), data_format)


def to_space(x, *, block_size, data_format):
    n, c, h, w = (x := ordered(x, data_format)).shape
    b = block_size
    blocks = x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    return restored(blocks.reshape(n, c // b**2, h * b, w * b), data_format)


op("SpaceToDepth", to_depth, lambda d: image(d, True), attrs=dict(block_size=[2, 3]), given=dict(block_size=2))
op("DepthToSpace", to_space, lambda d: image(d, False), attrs=dict(block_size=[2, 3]), given=dict(block_size=2))

x = np.zeros((1, 4, 6, 8), np.float32)
for name in ("SpaceToDepth", "DepthToSpace"):
    for block in (1, 0, -1, -2**63):
        refuses(name, [x], "block_size", block, block_size=block)
    for block in (2**31, 2**32, 2**62, 2**63 - 1):
        refuses(name, [x], block_size=block)
    refuses(name, [x], "data_format", "HWNC", block_size=2, data_format="HWNC")
    refuses(name, [x[0]], "[4, 6, 8]", block_size=2)
    refuses(name, [x], "input", block_size=2, data_format="NCHW_VECT_C")
    refuses(name, [x[..., None]], "[1, 4, 6, 8, 1]", "4", block_size=2, data_format="NCHW_VECT_C")
refuses("SpaceToDepth", [x], "height", "[1, 4, 6, 8]", "3", block_size=3)
refuses("SpaceToDepth", [x], "width", "[1, 4, 6, 8]", "4", block_size=4)
refuses("SpaceToDepth", [x], "height", "[1, 4, 6, 8]", block_size=4, data_format="NCHW")
refuses("DepthToSpace", [x], "channels", "[1, 4, 6, 8]", "9", block_size=3)
refuses("DepthToSpace", [x[:, :3]], "channels", "[1, 3, 6, 8]", block_size=2, data_format="NCHW")
