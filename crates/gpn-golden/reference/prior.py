"""Cases i_prior: the graph prior, by dense linear algebra over the whole graph at once."""

import numpy as np

from .numbers import coarse, save

TIE = 0.05  # ties every class to the grand mean; an edge counts 1
# A graph with several parents and a way around: 26 classes, parent above child.
EDGES = [(0, c) for c in (1, 2, 3, 4)] + [(1, c) for c in (5, 6, 7)] + [(2, c) for c in (7, 8, 9, 10)]
EDGES += [(3, c) for c in (11, 12)] + [(4, c) for c in (13, 14, 15)] + [(5, 16), (5, 17), (8, 17), (8, 18), (11, 19)]
EDGES += [(19, 20), (20, 21), (13, 22), (13, 23), (14, 23), (14, 24), (22, 25)]
CLASSES = 26
NEW = [0, 3, 7, 17, 19, 20, 23, 25]  # classes without samples
HIDDEN = [[1, 5, 11, 16, 22, 9], [2, 4, 6, 8, 10, 12, 13, 14, 15, 18], [21, 24, 1, 12, 15]]
# Classes of one task and how many samples each has.
TASK = [(0, 1), (3, 2), (19, 0), (20, 3), (25, 1)]
SHRINKAGE, SCALE, NEAREST, SHARPNESS = 0.5, 1.5, 3, 10.0


def numpy(values):
    return values.numpy()


def whole_field(known, deviations):
    """The classes that are not known, their expected deviations given those of the known classes, and the covariance."""
    precision = TIE * np.eye(CLASSES)
    for p, c in EDGES:
        precision[[p, c], [p, c]] += 1
        precision[p, c] -= 1
        precision[c, p] -= 1
    unknown = [c for c in range(CLASSES) if c not in known]
    covariance = np.linalg.inv(precision[np.ix_(unknown, unknown)])
    return unknown, -covariance @ precision[np.ix_(unknown, known)] @ deviations[known], covariance


def field(known, y, deviations):
    """Expected deviation of class y given the deviations of the known classes, and its variance."""
    unknown, mean, covariance = whole_field(known, deviations)
    at = unknown.index(y)
    return mean[at], covariance[at, at]


def together(known, deviations, grand, weight, slope, within, rows):
    """Posterior means and variances of the classes of a task: all their samples as observations of one Gaussian."""
    unknown, mean, covariance = whole_field(known, deviations)
    at = [unknown.index(c) for c, _ in TASK]
    prior, covariance = grand + weight * mean[at], covariance[np.ix_(at, at)]
    owner = np.repeat(np.arange(len(TASK)), [shots for _, shots in TASK])
    after, spread = np.zeros_like(prior), np.zeros_like(prior)
    for d in range(len(within)):
        before = SCALE * slope[d] * covariance
        noisy = before[np.ix_(owner, owner)] + within[d] * np.eye(len(owner))
        gain = before[:, owner] @ np.linalg.inv(noisy)
        after[:, d] = prior[:, d] + gain @ (rows[:, d] - prior[owner, d])
        spread[:, d] = np.diag(before - gain @ before[owner])
    return after, spread


def above_noise(variance, noise):
    return np.maximum(np.maximum(variance - noise, 1e-3 * variance), 1e-3 * noise)


def pooled_share(means, known, counts, within):
    """Variance of every fourth class outside of the span of the others, over its variance anywhere."""
    dim = means.shape[1]
    kept = [c for i, c in enumerate(known) if i % 4 == 3]
    others = [c for c in known if c not in kept]
    deviations = means - means[others].mean(0)
    span = np.linalg.svd(deviations[others], full_matrices=False)
    basis = span[2][span[1] > 1e-6 * span[1][0]]
    if len(basis) == dim:
        return 0.0
    rest = deviations[kept] - deviations[kept] @ basis.T @ basis
    noise, outside = within.sum() * (1 / counts[kept]).sum(), (dim - len(basis)) / dim
    return min(1.0, ((rest**2).sum() - noise * outside) / ((deviations[kept] ** 2).sum() - noise) / outside)


def pooled(variance, within, share):
    return (1 - share) * variance + share * within * (variance / within).mean()


def text_prediction(texts, known, y, deviations):
    """Softmax of cosines over the classes of the nearest texts."""
    units = texts / np.linalg.norm(texts, axis=1, keepdims=True)
    near = sorted(known, key=lambda c: -(units[c] @ units[y]))[:NEAREST]
    weights = np.exp(SHARPNESS * units[near] @ units[y])
    return weights / weights.sum() @ deviations[near]


def whitened(x, labels, known, shrinkage):
    """Centred, of unit length, whitened within classes; its distances do not depend on how it is turned."""
    x = x - np.mean([x[labels == c].mean(0) for c in known], 0)
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    rest = np.concatenate([x[labels == c] - x[labels == c].mean(0) for c in known])
    within = rest.T @ rest / (len(rest) - len(known))
    within = (1 - shrinkage) * within + shrinkage * np.trace(within) / len(within) * np.eye(len(within))
    means = np.stack([x[labels == c].mean(0) for c in known])
    root = np.linalg.cholesky(np.linalg.inv(within))
    between = np.linalg.eigvalsh(root.T @ (means.T @ means / len(known)) @ root)[::-1]
    return x @ root, between


def case(name, seed, dim):
    rng = np.random.default_rng(seed)
    known = [c for c in range(CLASSES) if c not in NEW]
    # Means wander along the edges, so that the graph foretells something.
    truth = np.zeros((CLASSES, dim))
    for p, c in EDGES:
        truth[c] = truth[p] + rng.normal(0, 1, dim)
    counts = np.array([0 if c in NEW else 3 + c % 5 for c in range(CLASSES)])
    labels = np.repeat(np.arange(CLASSES), counts)
    stretch = np.linspace(0.5, 1.5, dim)
    x = numpy(coarse(truth[labels] + stretch * rng.normal(0, 1, (len(labels), dim)), 2**-6))
    texts = numpy(coarse(truth[:, :3] + rng.normal(0, 0.5, (CLASSES, 3)), 2**-6))
    samples = numpy(coarse(truth[NEW[2]] + rng.normal(0, 1, (3, dim)), 2**-6))

    means = np.zeros((CLASSES, dim))
    for c in known:
        means[c] = x[labels == c].mean(0)
    within = sum(((x[labels == c] - means[c]) ** 2).sum(0) for c in known) / (len(labels) - len(known))
    grand = means[known].mean(0)
    deviations = means - grand
    share = pooled_share(means, known, counts, within)
    between = (deviations[known] ** 2).mean(0)
    between = pooled(above_noise(between, within * (1 / counts[known]).mean()), within, share)

    truths, predicted, distance, noise, by_text = [], [], [], [], []
    for hidden in HIDDEN:
        left = [c for c in known if c not in hidden]
        for y in hidden:
            mean, variance = field(left, y, deviations)
            truths.append(deviations[y])
            predicted.append(mean)
            distance.append(variance)
            noise.append(1 / counts[y])
            by_text.append(text_prediction(texts, left, y, deviations))
    truths, predicted, by_text = np.array(truths), np.array(predicted), np.array(by_text)
    inverse = 1 / np.array(distance)[:, None]
    weight = (inverse * truths * predicted).sum() / (inverse * predicted**2).sum()
    residual = (inverse * (truths - weight * predicted) ** 2).mean(0)
    slope = pooled(above_noise(residual, within * (inverse[:, 0] * noise).mean()), within, share)
    text_weight = (truths * by_text).sum() / (by_text**2).sum()
    text_variance = above_noise(((truths - text_weight * by_text) ** 2).mean(0), within * np.mean(noise))
    text_variance = pooled(text_variance, within, share)

    arrays = {"edges": np.array(EDGES), "labels": labels, "x": x, "texts": texts, "samples": samples}
    arrays |= {f"hidden{i}": np.array(hidden) for i, hidden in enumerate(HIDDEN)}
    arrays |= {"new": np.array(NEW), "within": within, "between": between, "share": np.array(share)}
    arrays |= {"weight": np.array(weight), "slope": slope}
    arrays |= {"text_weight": np.array(text_weight), "text_variance": text_variance}
    around = [field(known, y, deviations) for y in NEW]
    prior_mean = np.stack([grand + weight * mean for mean, _ in around])
    prior_variance = np.stack([variance * slope for _, variance in around])
    text_mean = np.stack([grand + text_weight * text_prediction(texts, known, y, deviations) for y in NEW])
    arrays |= {"prior_mean": prior_mean, "prior_variance": prior_variance, "text_mean": text_mean}
    # Text and place of the third new class, then its posterior with none to three samples.
    mean, variance = prior_mean[2], prior_variance[2]
    joined = (mean / variance + text_mean[2] / text_variance) / (1 / variance + 1 / text_variance)
    arrays |= {"joined_mean": joined, "joined_variance": 2 / (1 / variance + 1 / text_variance)}
    for shots in range(4):
        own = SCALE * variance / (SCALE * variance + within / shots) if shots else np.zeros(dim)
        sample_mean = samples[:shots].mean(0) if shots else np.zeros(dim)
        arrays[f"prototype{shots}"] = own * sample_mean + (1 - own) * mean
        arrays[f"variance{shots}"] = 1 / (1 / (SCALE * variance) + shots / within)
    rows, spectrum = whitened(x, labels, known, SHRINKAGE)
    arrays["distances"] = ((rows[:8, None] - rows[None, :8]) ** 2).sum(-1)
    arrays["spectrum"] = spectrum
    rows = numpy(coarse(truth[np.repeat(*zip(*TASK))] + rng.normal(0, 1, (sum(k for _, k in TASK), dim)), 2**-6))
    after, spread = together(known, deviations, grand, weight, slope, within, rows)
    arrays |= {"task": np.array(TASK), "task_samples": rows, "task_prototypes": after, "task_variances": spread}
    save(name, arrays)


def write():
    case("i_prior_3", 11, 3)
    case("i_prior_20", 12, 20)
