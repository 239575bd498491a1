from optimizers import mild, optimizer


def gradient_descent(var, g, alpha):
    return [(var - alpha * g, abs(var) + abs(alpha * g))]


optimizer("ResourceApplyGradientDescent ApplyGradientDescent", "", gradient_descent, domain=dict(var=mild, delta=mild))
