from optimizers import mild, optimizer


def momentum(var, accum, g, lr, momentum, use_nesterov):
    kept, size = accum * momentum + g, abs(accum * momentum) + abs(g)
    step, reach = (g + momentum * kept, abs(g) + momentum * size) if use_nesterov else (kept, size)
    return [(var - lr * step, abs(var) + lr * reach), (kept, size)]


def keras_momentum(var, accum, g, lr, momentum, use_nesterov):
    kept, size = accum * momentum - lr * g, abs(accum * momentum) + abs(lr * g)
    step, reach = (momentum * kept - lr * g, momentum * size + abs(lr * g)) if use_nesterov else (kept, size)
    return [(var + step, abs(var) + reach), (kept, size)]


more = dict(asks=["use_nesterov"], domain=dict(var=mild, accum=mild, grad=mild))
optimizer("ResourceApplyMomentum ApplyMomentum", "ResourceSparseApplyMomentum", momentum, **more)
optimizer("ResourceApplyKerasMomentum", "ResourceSparseApplyKerasMomentum", keras_momentum, **more)
