"""`gpn fit` and `gpn test` beside scikit-learn and HiClass on the same embeddings.

    pip install numpy scikit-learn hiclass
    python bench/own_classes.py GPN OUT/embeddings.npz OUT/taxonomy.csv [--seeds 3] [--new 30] [--slow]

GPN is the command. The embeddings and the taxonomy come from `embed_groceries.py` or `embed_clinc.py`. A tenth of each class's rows are
queries, at least one; what remains is learned from in four ways: everything, five rows of each class, one row of each class, and
everything of known classes beside one row of each of `--new` classes. Other programs are given raw embeddings and centred ones of length
1, logistic regression C = 1 and C = 100 besides; the best of these is shown, which favours it. Prints accuracy in % on all queries.
"""

import argparse
import collections
import csv
import json
import pathlib
import subprocess
import tempfile
import time
import warnings

import numpy as np
from hiclass import LocalClassifierPerParentNode
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid

warnings.filterwarnings("ignore")


def divide(labels, rng):
    """Rows to learn from, by class, in random order; and queries."""
    train, queries = {}, []
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        held = min(max(1, round(len(rows) / 10)), len(rows) - 1)
        queries.extend(rows[:held])
        train[label] = rows[held:]
    return train, np.array(queries)


def cases(train, new, rng):
    everything = np.concatenate(list(train.values()))
    later = set(rng.permutation(list(train))[:new])
    mixed = np.concatenate([rows[:1] if label in later else rows for label, rows in train.items()])
    yield "everything", everything, set()
    yield "five of each class", np.concatenate([rows[:5] for rows in train.values()]), set()
    yield "one of each class", np.concatenate([rows[:1] for rows in train.values()]), set()
    yield f"one of each of {new} new classes", mixed, later


def paths(taxonomy, labels):
    """The way from the first level to each label, as HiClass takes it."""
    parent = {row["child"]: row["parent"] for row in csv.DictReader(open(taxonomy, encoding="utf-8"))}
    tops = set(parent.values()) - set(parent)
    ways = []
    for label in labels:
        way = [label]
        while way[0] in parent and parent[way[0]] not in tops:
            way.insert(0, parent[way[0]])
        ways.append(way)
    depth = max(map(len, ways))
    return np.array([way + [""] * (depth - len(way)) for way in ways], dtype=object)


def by_gpn(command, folder, taxonomy, x, labels, rows, queries):
    for name, chosen in (("train", rows), ("test", queries)):
        np.savez(folder / f"{name}.npz", embeddings=x[chosen].astype(np.float32), labels=labels[chosen])
    start = time.time()
    model = folder / "model.safetensors"
    fit = [command, "fit", folder / "train.npz", "--taxonomy", taxonomy, "--out", model, "--force", "--json"]
    fitted = json.loads(subprocess.run(fit, capture_output=True, check=True).stdout)
    seconds = time.time() - start
    test = [command, "test", model, folder / "test.npz", "--json"]
    result = json.loads(subprocess.run(test, capture_output=True, check=True).stdout)
    by_class = {row["id"]: (row["right"], row["samples"]) for row in result["classes"]}
    return result["accuracy"], by_class, seconds, fitted["recipe"]


def others(x, labels, rows, queries, taxonomy, slow):
    centre = x[rows].mean(0)
    unit = (x - centre) / np.linalg.norm(x - centre, axis=1, keepdims=True)
    for name, space in (("raw", x), ("unit", unit)):
        yield "nearest centroid", NearestCentroid().fit(space[rows], labels[rows]).predict(space[queries])
        for c in (1, 100):
            model = LogisticRegression(C=c, max_iter=300).fit(space[rows], labels[rows])
            yield "logistic regression", model.predict(space[queries])
    if slow:
        model = LocalClassifierPerParentNode(local_classifier=LogisticRegression(C=100, max_iter=300))
        ways = paths(taxonomy, labels[rows])
        answers = model.fit(unit[rows], ways).predict(unit[queries])
        yield "HiClass", np.array([[part for part in row if part][-1] for row in answers])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpn")
    parser.add_argument("embeddings")
    parser.add_argument("taxonomy")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--new", type=int, default=30)
    parser.add_argument("--slow", action="store_true", help="HiClass, too")
    arguments = parser.parse_args()
    data = np.load(arguments.embeddings)
    x, labels = data["embeddings"].astype(np.float64), data["labels"]
    results = collections.defaultdict(list)
    for seed in range(arguments.seeds):
        rng = np.random.default_rng(seed)
        train, queries = divide(labels, rng)
        for case, rows, later in cases(train, arguments.new, rng):
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                accuracy, by_class, seconds, recipe = by_gpn(
                    arguments.gpn, folder, arguments.taxonomy, x, labels, rows, queries
                )
            results[case, "gpn"].append(accuracy)
            best = collections.defaultdict(float)
            for name, answers in others(x, labels, rows, queries, arguments.taxonomy, arguments.slow):
                best[name] = max(best[name], float(np.mean(answers == labels[queries])))
            for name, accuracy in best.items():
                results[case, name].append(accuracy)
            line = ", ".join(f"{name} {100 * values[-1]:.1f}" for (c, name), values in results.items() if c == case)
            if later:
                of_new = [by_class[label] for label in later if label in by_class]
                line += f" (new {100 * sum(r for r, _ in of_new) / sum(n for _, n in of_new):.1f})"
            print(f"seed {seed}, {case}: {line}; fit {seconds:.0f} s, {recipe}", flush=True)
    names = list(dict.fromkeys(name for _, name in results))
    print(f"\n| learned from | {' | '.join(names)} |\n|---{'|---' * len(names)}|")
    for case in dict.fromkeys(case for case, _ in results):
        cells = [f"{100 * np.mean(results[case, name]):.1f}" if results[case, name] else "" for name in names]
        print(f"| {case} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
