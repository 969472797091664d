"""As deep as sure, and none of these: what `gpn predict --confidence` and `--unknown` are worth.

    pip install numpy scikit-learn
    python bench/sure.py GPN deep EMBEDDINGS.npz TAXONOMY.csv [--rows 20]
    python bench/sure.py GPN unknown EMBEDDINGS.npz TAXONOMY.csv [--other OTHER.npz] [--rows 20]

GPN is the command. A fifth of each class's rows are queries, and what is fitted is the rest, at most `--rows` of each class.

`deep` prints for each confidence the share of answers that are right (the class or one above it), their information gain (Deng et al.
2012: log2 of all leaves over those below the answer, of log2 of all leaves; a wrong answer gains nothing) and the share of answers that are
leaves.

`unknown` prints how well a score tells queries of fitted classes from others: the area under the curve of gpn's score beside that of the
distance to the nearest class mean and of its cosine. The others are a third of the classes, left out of the fit, or the rows of OTHER.npz.
"""

import argparse
import csv
import json
import math
import pathlib
import subprocess
import tempfile

import numpy as np
from sklearn.metrics import roc_auc_score

CONFIDENCES = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]


def divide(labels, most, rng):
    """Rows to fit and queries."""
    fit, queries = [], []
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        held = max(1, len(rows) // 5)
        queries.extend(rows[:held])
        fit.extend(rows[held:][:most])
    return np.array(fit), np.array(queries)


def fitted(gpn, folder, embeddings, labels, taxonomy):
    np.savez(folder / "train.npz", embeddings=embeddings, labels=labels)
    model = folder / "model.safetensors"
    command = [gpn, "fit", folder / "train.npz", "--taxonomy", taxonomy, "--out", model, "--force", "--json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return model, report


def predicted(gpn, model, embeddings, *options):
    file = model.parent / "query.npy"
    np.save(file, embeddings)
    command = [gpn, "predict", model, file, "--json", "--top", "1", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def leaves_below(taxonomy, leaves):
    """The leaves with samples below each class, itself among them."""
    parents = {}
    for row in csv.DictReader(open(taxonomy, encoding="utf-8")):
        parents.setdefault(row["child"], []).append(row["parent"])
    below = {}
    for leaf in leaves:
        above, seen = [leaf], set()
        while above:
            node = above.pop()
            if node not in seen:
                seen.add(node)
                below.setdefault(node, set()).add(leaf)
                above.extend(parents.get(node, []))
    return below


def deep(args, embeddings, labels, folder):
    fit, queries = divide(labels, args.rows, np.random.default_rng(0))
    model, _ = fitted(args.gpn, folder, embeddings[fit], labels[fit], args.taxonomy)
    below = leaves_below(args.taxonomy, set(labels))
    every = len(set(labels))
    print(f"{len(fit)} rows of {every} classes fitted, {len(queries)} asked")
    print("| confidence | right, % | information gain, % | answers that are leaves, % |\n|---|---|---|---|")
    answers = predicted(args.gpn, model, embeddings[queries])
    best = np.mean([answer["classes"][0]["id"] == truth for answer, truth in zip(answers, labels[queries])])
    print(f"| the likeliest leaf | {100 * best:.1f} | {100 * best:.1f} | 100.0 |")
    for confidence in CONFIDENCES:
        right, gain, deepest = [], [], []
        answers = predicted(args.gpn, model, embeddings[queries], "--confidence", str(confidence))
        for answer, truth in zip(answers, labels[queries]):
            path = answer["sure"]["path"]
            leaves = below[path[-1]["id"]] if path else set(labels)
            right.append(truth in leaves)
            gain.append((math.log2(every) - math.log2(len(leaves))) / math.log2(every) * right[-1])
            deepest.append(len(leaves) == 1)
        print(f"| {confidence} | {100 * np.mean(right):.1f} | {100 * np.mean(gain):.1f} | {100 * np.mean(deepest):.1f} |")


def unknown(args, embeddings, labels, folder):
    rng = np.random.default_rng(0)
    if args.other:
        others = np.load(args.other)["embeddings"]
        known = np.ones(len(labels), bool)
    else:
        classes = rng.permutation(np.unique(labels))
        known = ~np.isin(labels, classes[: len(classes) // 3])
        others = embeddings[~known]
    embeddings, labels = embeddings[known], labels[known]
    fit, queries = divide(labels, args.rows, rng)
    model, report = fitted(args.gpn, folder, embeddings[fit], labels[fit], args.taxonomy)
    asked = np.concatenate([embeddings[queries], others])
    truth = np.r_[np.zeros(len(queries)), np.ones(len(others))]
    answers = predicted(args.gpn, model, asked, "--unknown")
    score = np.array([answer["unknown"]["score"] for answer in answers])
    called = np.array([answer["unknown"]["is_unknown"] for answer in answers])
    means = np.stack([embeddings[fit][labels[fit] == label].mean(0) for label in np.unique(labels)])
    distance = np.sqrt(np.maximum(0, (asked**2).sum(1)[:, None] - 2 * asked @ means.T + (means**2).sum(1))).min(1)
    unit = lambda x: x / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = -(unit(asked) @ unit(means).T).max(1)
    print(f"{len(fit)} rows of {len(means)} classes fitted, {len(queries)} of them and {len(others)} others asked")
    print("| score | area under the curve |\n|---|---|")
    for name, values in [("gpn", score), ("distance to the nearest mean", distance), ("cosine to the nearest mean", cosine)]:
        print(f"| {name} | {roc_auc_score(truth, values):.3f} |")
    print(f"called unknown: {100 * called[truth == 0].mean():.1f}% of known, {100 * called[truth == 1].mean():.1f}% of others", end="; ")
    print(f"gpn chose `{report['unknown_score']}` and told {report['unknown_auroc'] or float('nan'):.3f} while fitting")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpn")
    parser.add_argument("what", choices=["deep", "unknown"])
    parser.add_argument("embeddings")
    parser.add_argument("taxonomy")
    parser.add_argument("--other")
    parser.add_argument("--rows", type=int, default=20)
    args = parser.parse_args()
    data = np.load(args.embeddings)
    with tempfile.TemporaryDirectory() as folder:
        {"deep": deep, "unknown": unknown}[args.what](args, data["embeddings"], data["labels"], pathlib.Path(folder))


if __name__ == "__main__":
    main()
