"""A catalogue with new classes: what scikit-learn and HiClass make of frozen embeddings.

    pip install numpy scikit-learn hiclass
    python bench/catalogue.py OUT/embeddings.npz OUT/taxonomy.csv --new 30 --divisions OUT/divisions.json --json OUT/sklearn.json

The embeddings and the taxonomy come from `embed_groceries.py` (`--new 30`) or `embed_clinc.py` (`--new 50`).

A division makes some leaves new and leaves the others known. A fifth of each leaf's rows are queries. Of what remains, known
leaves have everything and new ones the first K of 20 rows in random order. Measured on the same rows for every method:
- all leaves at once: accuracy (%) on the queries of new leaves, of known leaves, on all, and the harmonic mean of new and known;
- tasks of 5 new leaves with K samples each and 15 queries each: accuracy (%) of the nearest mean.
Inputs: `raw`, or `unit`: less the mean of the known leaves' training rows, then scaled to unit length.

`--divisions` is read where it exists, else drawn by `--seed` and written, so that other programs are measured on the very
same rows. It is a list, one entry for each division: `known` and `new` (leaves), `train` (rows of known leaves), `support` (20
rows of each new leaf, the first K are used), `query` (rows), `tasks` (`classes`, `support` 20 rows each, `query`).
The quick methods run on all divisions, the slow ones (logistic regression, HiClass) on the first `--slow`.

Prints the two tables in Markdown, with 95% intervals (over tasks; over five divisions or more). `--json` keeps the result of each division
and of each task.
"""

import argparse
import json
import pathlib
import time

import numpy as np
from embedding_files import read_rows
from hiclass import LocalClassifierPerParentNode
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

SHOTS, SUPPORT, TASK_QUERIES, WAY, QUERY_SHARE = (1, 2, 5, 10, 20), 20, 15, 5, 0.2


def draw_divisions(labels, new_leaves, count, tasks, seed):
    rows_of = {leaf: np.flatnonzero(labels == leaf) for leaf in np.unique(labels)}
    return [draw_division(rows_of, new_leaves, tasks, [seed, index]) for index in range(count)]


def draw_division(rows_of, new_leaves, tasks, seed):
    rng = np.random.default_rng(seed)
    leaves = sorted(rows_of)
    new = sorted(rng.choice(leaves, new_leaves, replace=False).tolist())
    known = [leaf for leaf in leaves if leaf not in new]
    train, support, query = [], {}, []
    for leaf in leaves:
        rows = rng.permutation(rows_of[leaf]).tolist()
        held_out = max(1, round(QUERY_SHARE * len(rows)))
        query += rows[:held_out]
        if leaf in new:
            support[leaf] = rows[held_out:][:SUPPORT]
            assert len(support[leaf]) == SUPPORT, f"{leaf} has {len(rows)} rows, too few for {SUPPORT} samples and queries"
        else:
            train += rows[held_out:]
    return {
        "known": known,
        "new": new,
        "train": sorted(train),
        "support": support,
        "query": sorted(query),
        # Each task has a generator of its own: more tasks do not change the first ones.
        "tasks": [draw_task(rows_of, new, [*seed, index]) for index in range(tasks)],
    }


def draw_task(rows_of, leaves, seed):
    rng = np.random.default_rng(seed)
    classes = rng.choice(leaves, WAY, replace=False).tolist()
    rows = [rng.permutation(rows_of[leaf])[: SUPPORT + TASK_QUERIES].tolist() for leaf in classes]
    return {"classes": classes, "support": [r[:SUPPORT] for r in rows], "query": [r[SUPPORT:] for r in rows]}


def prepare(embeddings, division, form):
    if form == "raw":
        return embeddings
    centred = embeddings - embeddings[division["train"]].mean(0)
    return centred / np.linalg.norm(centred, axis=1, keepdims=True)


class Hierarchical:
    """HiClass with a logistic regression at each inner class; answers with leaves."""

    def __init__(self, taxonomy, c):
        self.parent = {row["child"]: row["parent"] for row in taxonomy}
        base = LogisticRegression(C=c, class_weight="balanced", max_iter=1000)
        self.model = LocalClassifierPerParentNode(local_classifier=base)

    def path(self, leaf):
        path = [leaf]
        while self.parent.get(path[0], "root") != "root":
            path.insert(0, self.parent[path[0]])
        return path

    def fit(self, rows, labels):
        paths = {leaf: self.path(leaf) for leaf in set(labels)}
        depth = max(map(len, paths.values()))
        self.model.fit(rows, np.array([paths[leaf] + [""] * (depth - len(paths[leaf])) for leaf in labels], dtype=object))
        return self

    def predict(self, rows):
        return np.array([[step for step in path if step][-1] for path in self.model.predict(rows)])


def methods(taxonomy):
    """(name, input, slow, maker of the classifier)."""

    def logistic(c):
        return lambda: LogisticRegression(C=c, class_weight="balanced", max_iter=1000)

    return [
        ("nearest mean", "raw", False, NearestCentroid),
        ("nearest mean", "unit", False, NearestCentroid),
        ("1 nearest neighbour", "unit", False, lambda: KNeighborsClassifier(1, algorithm="brute")),
        ("5 nearest neighbours", "unit", False, lambda: KNeighborsClassifier(5, weights="distance", algorithm="brute")),
        *((f"logistic regression, C={c}", "unit", True, logistic(c)) for c in (0.1, 1, 10, 100)),
        ("HiClass per parent, C=10", "unit", True, lambda: Hierarchical(taxonomy, 10)),
    ]


def all_at_once(classifier, rows, labels, division, shots):
    """Accuracy in % on new, known and all queries, and the harmonic mean of the first two."""
    train = division["train"] + [row for leaf in division["new"] for row in division["support"][leaf][:shots]]
    query = division["query"]
    correct = classifier.fit(rows[train], labels[train]).predict(rows[query]) == labels[query]
    is_new = np.isin(labels[query], division["new"])
    new, known = 100 * correct[is_new].mean(), 100 * correct[~is_new].mean()
    harmonic = 2 * new * known / max(new + known, 1e-9)
    return {"new": new, "known": known, "all": 100 * correct.mean(), "harmonic": harmonic}


def task_accuracy(rows, task, shots):
    """Accuracy in % of the nearest mean."""
    means = np.stack([rows[support[:shots]].mean(0) for support in task["support"]])
    right = []
    for index, query in enumerate(task["query"]):
        distances = ((rows[query][:, None] - means) ** 2).sum(2)
        right.append(distances.argmin(1) == index)
    return 100 * np.concatenate(right).mean()


def with_interval(values, digits):
    """The mean, with a 95% interval where there are enough values for one."""
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean}±{1.96 * np.std(values, ddof=1) / len(values) ** 0.5:.{digits}f}" if len(values) >= 5 else mean


def print_catalogue(results):
    print("\n| method | input | K | divisions | new | known | all | harmonic |\n|---|---|---|---|---|---|---|---|")
    for key in dict.fromkeys((r["method"], r["input"], r["k"]) for r in results):
        chosen = [r for r in results if (r["method"], r["input"], r["k"]) == key]
        cells = [with_interval([r[column] for r in chosen], 1) for column in ("new", "known", "all", "harmonic")]
        print(f"| {key[0]} | {key[1]} | {key[2]} | {len(chosen)} | {' | '.join(cells)} |")


def print_tasks(results):
    print("\n| 5-way tasks, nearest mean | " + " | ".join(f"K={k}" for k in SHOTS) + " |\n|" + "---|" * (len(SHOTS) + 1))
    for form in dict.fromkeys(r["input"] for r in results):
        cells = [with_interval(r["accuracies"], 2) for r in results if r["input"] == form]
        print(f"| {form} ({len(results[0]['accuracies'])} tasks) | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("embeddings", help=".npz with embeddings and labels")
    parser.add_argument("taxonomy", help="CSV with child, parent")
    parser.add_argument("--divisions", required=True, help="JSON, read if it exists, else written")
    parser.add_argument("--json", required=True, help="results to write")
    parser.add_argument("--new", type=int, default=30, help="new leaves")
    parser.add_argument("--count", type=int, default=20, help="divisions")
    parser.add_argument("--slow", type=int, default=5, help="divisions for the slow methods")
    parser.add_argument("--tasks", type=int, default=30, help="tasks of each division")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="run the methods whose name contains this anew, keep the others' results")
    args = parser.parse_args()

    with np.load(args.embeddings) as file:
        embeddings, labels = file["embeddings"], file["labels"]
    taxonomy, store = read_rows(args.taxonomy), pathlib.Path(args.divisions)
    if not store.exists():
        store.write_text(json.dumps(draw_divisions(labels, args.new, args.count, args.tasks, args.seed)))
    divisions = json.loads(store.read_text())

    tasks = [{"input": form, "k": shots, "accuracies": []} for form in ("raw", "unit") for shots in SHOTS]
    for division in divisions:
        rows = {form: prepare(embeddings, division, form) for form in ("raw", "unit")}
        for entry in tasks:
            entry["accuracies"] += [task_accuracy(rows[entry["input"]], task, entry["k"]) for task in division["tasks"]]
    print_tasks(tasks)

    chosen = [method for method in methods(taxonomy) if not args.only or args.only in method[0]]
    results = []
    if args.only and pathlib.Path(args.json).exists():
        results = json.loads(pathlib.Path(args.json).read_text())["catalogue"]
        results = [result for result in results if args.only not in result["method"]]
    for name, form, slow, make in chosen:
        for shots in SHOTS[:-1] if slow else SHOTS:
            for index, division in enumerate(divisions[: args.slow] if slow else divisions):
                started = time.perf_counter()
                result = all_at_once(make(), prepare(embeddings, division, form), labels, division, shots)
                seconds = time.perf_counter() - started
                results.append({"method": name, "input": form, "k": shots, "division": index, **result, "seconds": seconds})
        pathlib.Path(args.json).write_text(json.dumps({"tasks": tasks, "catalogue": results}, indent=1))
    print_catalogue(results)


if __name__ == "__main__":
    main()
