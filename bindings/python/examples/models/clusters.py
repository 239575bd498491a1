"""Clusters without labels: k-means (Lloyd, 1982), and a mixture of Gaussians with diagonal covariances by expectation
maximisation (Dempster, Laird and Rubin, 1977). main() clusters digits."""
import contextlib

import numpy as np

import thalweg as tw
import training

LEAST = 1e-2  # variance of an axis, so that no Gaussian shrinks to a point


def kmeans_step(points, centers):
    """Returns the means of the points that are nearest to each centre, and the mean squared distance to the nearest one."""
    distances = (points * points).sum(1, keepdims=True) - 2 * (points @ centers.T) + (centers * centers).sum(1)
    nearest, k = distances.argmin(1), centers.shape[0]
    sums = tw.ops.unsorted_segment_sum(points, nearest, k)
    counts = tw.ops.unsorted_segment_sum(tw.ops.ones_like(points[:, :1]), nearest, k)
    means = tw.ops.select_v2(counts > 0, sums / tw.ops.maximum(counts, 1.0), centers)  # an empty cluster stays
    return means, distances.min(1).mean()


def mixture_step(points, means, variances, weights):
    """Returns means, variances and weights of the Gaussians after a step, and the mean log-likelihood of the points before it."""
    precise, squares = 1 / variances, points * points
    exponents = squares @ precise.T - 2 * (points @ (means * precise).T) + (means * means * precise).sum(1)
    logs = tw.ops.log(weights) - (exponents + tw.ops.log(2 * np.pi * variances).sum(1)) / 2
    most = logs.max(1, keepdims=True)
    likelihoods = most[:, 0] + tw.ops.log(tw.ops.exp(logs - most).sum(1))
    shares = tw.nn.softmax(logs)
    counts = shares.sum(0) + 1e-6
    means = (shares.T @ points) / counts.reshape(-1, 1)
    variances = (shares.T @ squares) / counts.reshape(-1, 1) - means * means
    return means, tw.ops.maximum(variances, 0.0) + LEAST, counts / counts.sum(), likelihoods.mean()


def fit(step, points, state, steps, tolerance=1e-6, log=None, **options):
    """Repeats a step until its measure stays. Returns the last state, and the measures of all steps."""
    with tw.Graph() as g:
        variables = [tw.Variable(np.asarray(s, points.dtype)) for s in state]
        *new, measure = step(tw.constant(points), *(v.read() for v in variables))
        update = tw.group(*(v.assign(n) for v, n in zip(variables, new)))
        start = g.initializer()
    measures = []
    with tw.Session(g, **options) as session:
        session.run(start)
        while len(measures) < steps and not (len(measures) > 1 and abs(measures[-1] - measures[-2]) <= tolerance * abs(measures[-1])):
            measures.append(float(session.run([measure, update])[0]))
            if log:
                log.scalars({step.__name__: measures[-1]}, len(measures))
        return session.run(variables), measures


def cluster(points, k, steps, seed=1, log=None, **options):
    """Returns the means that k-means and then the mixture find, and their measures; k-means begins at points that are drawn."""
    centers = points[np.random.default_rng(seed).choice(len(points), k, replace=False)]
    (centers,), distances = fit(kmeans_step, points, [centers], steps, log=log, **options)
    variances = np.tile(points.var(0) + LEAST, (k, 1))
    (means, *_), likelihoods = fit(mixture_step, points, [centers, variances, np.full(k, 1 / k)], steps, log=log, **options)
    return centers, means, distances, likelihoods


def main(arguments=None):
    given = training.parsed(training.options(__doc__, epochs=100), arguments)
    images, labels = training.digits(given.data)
    points = images.reshape(len(images), -1)
    with contextlib.ExitStack() as stack:
        log = given.logdir and tw.SummaryWriter(given.logdir)
        if log:
            stack.callback(log.close)
        centers, _, distances, likelihoods = cluster(points, 10, given.epochs, given.seed, log, threads=given.threads)
    nearest = ((points[:, None] - centers) ** 2).sum(2).argmin(1)
    purity = sum(np.bincount(labels[nearest == i]).max(initial=0) for i in range(10)) / len(labels)
    print(f"k-means: distance {distances[0]:.4f}, then {distances[-1]:.4f}; mixture: log-likelihood {likelihoods[0]:.2f}, then {likelihoods[-1]:.2f}")
    training.said("clusters", "purity", purity, len(distances))
    return purity


if __name__ == "__main__":
    main()
