"""The speed of the Python package beside scikit-learn, HiClass and PyTorch.

    pip install numpy scikit-learn hiclass torch gpn
    python bench/python_speed.py [fit] [episodes] [threads] [--out bench/runs/DATE/python.json]

`fit`: 100,000 embeddings of 384 numbers, 1,000 classes in 50 groups, half of the rows to fit on and half to predict, each program
in turn: `GraphFewShotClassifier`, scikit-learn's `NearestCentroid` and `LogisticRegression`, HiClass's `LocalClassifierPerParentNode`
with logistic regression. Times are of one run; accuracies are on the rows to predict.

`episodes`: training on 10,000 five-way one-shot episodes (15 queries a class) of the same 100,000 embeddings: `gpn.Run` with the backbone
`mlp` (384, 512, 256) and the method `protonet`, against a PyTorch loop with the same network, optimiser and tasks' shape, in which sampling is vectorised and
tasks go through the network as one batch each. PyTorch runs with one thread and with two (two are much slower where other work has the
second core), 20 s each at most; episodes are compared by the time of one.

`threads`: two threads that call `predict` on one model at once, against one thread with all the calls; in turn, five times, median.

Prints a table, and writes the raw numbers as JSON.
"""

import argparse
import json
import os
import platform
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROWS, DIM, CLASSES, GROUPS = 100_000, 384, 1_000, 50
ROUNDS = 5
TORCH_SECONDS = 20


def embeddings(rows=ROWS, classes=CLASSES, groups=GROUPS, seed=0):
    """Embeddings of unit length around a mean for each class, near those of its group; labels; pairs (group, class)."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(groups, DIM))
    means = centres[np.arange(classes) % groups] + 0.7 * random.normal(size=(classes, DIM))
    labels = np.arange(rows) % classes
    X = means[labels] + 1.5 * random.normal(size=(rows, DIM))
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    edges = [("root", f"g{group}") for group in range(groups)]
    edges += [(f"g{number % groups}", f"c{number}") for number in range(classes)]
    return X, np.array([f"c{label}" for label in labels]), edges


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def fit_and_predict(rows):
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import NearestCentroid

    import gpn

    X, y, edges = embeddings(rows)
    train, test = np.arange(rows) % 2 == 0, np.arange(rows) % 2 == 1
    # Rows and classes alternate alike: shift so that every class is on both sides.
    order = np.random.default_rng(1).permutation(rows)
    X, y = X[order], y[order]
    group_of = {child: parent for parent, child in edges}
    paths = np.array([[group_of[label], label] for label in y])
    results = []

    def run(name, model, targets):
        fitting, _ = timed(lambda: model.fit(X[train], targets[train]))
        predicting, answers = timed(lambda: model.predict(X[test]))
        answers = np.asarray(answers)
        leaf = answers[:, -1] if answers.ndim == 2 else answers
        accuracy = float((leaf == y[test]).mean())
        results.append({"name": name, "fit_s": fitting, "predict_s": predicting, "accuracy": accuracy})
        print(f"{name:45} fit {fitting:8.2f} s   predict {predicting:8.2f} s   accuracy {100 * accuracy:5.1f} %", flush=True)

    run("gpn GraphFewShotClassifier", gpn.GraphFewShotClassifier(edges), y)
    run("scikit-learn NearestCentroid", NearestCentroid(), y)
    run("scikit-learn LogisticRegression", LogisticRegression(max_iter=100), y)
    try:
        from hiclass import LocalClassifierPerParentNode
    except ImportError:
        print("HiClass is not installed")
    else:
        local = LocalClassifierPerParentNode(local_classifier=LogisticRegression(max_iter=100))
        run("HiClass LocalClassifierPerParentNode", local, paths)
    return results


def episodes(count, way=5, shot=1, queries=15):
    """Training on few-shot tasks of embeddings: ours, then PyTorch's."""
    import gpn

    X, y, edges = embeddings()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        bench = gpn.Benchmark.from_arrays(X, y, edges, images_per_leaf=ROWS // CLASSES)
        settings = {
            "model.backbone": "mlp",
            "validation.tasks": 0,
            "task.way": way,
            "task.shot": shot,
            "task.queries": queries,
            "schedule.auxiliary": False,
            "train.checkpoint_every": count,
        }
        run = gpn.Run.start(Path(folder) / "run", bench, method="protonet", settings=settings, episodes=count)
        seconds, _ = timed(run.train)
        results.append({"name": "gpn.Run", "episodes": count, "seconds": seconds})
        print(f"gpn.Run             {count} episodes in {seconds:8.2f} s", flush=True)
        weights = sorted(_weights(Path(folder) / "run" / "model.safetensors").items())
        # Without the classifier of auxiliary batches, which no episode uses.
        shapes = [value.shape for name, value in weights if name.startswith("emb.layers.") and value.ndim == 2]
        assert shapes and shapes[0][1] == DIM
    ours = seconds / count
    for threads in (1, 2):
        done, seconds = _pytorch(X, y, shapes, count, way, shot, queries, threads)
        name = f"PyTorch, {threads} thread{'s' * (threads > 1)}"
        ratio = seconds / done / ours
        shapes_given = [list(shape) for shape in shapes]
        results.append({"name": name, "episodes": done, "seconds": seconds, "times_gpn": ratio, "shapes": shapes_given})
        print(f"{name:19} {done} episodes in {seconds:8.2f} s: {ratio:.1f} times as long for each", flush=True)
    return results


def _weights(path):
    from safetensors.numpy import load_file

    return load_file(path)


def _pytorch(X, y, shapes, count, way, shot, queries, threads):
    """Episodes done, `count` or as many as TORCH_SECONDS allow, and the seconds they took."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(threads)
    layers = []
    for outputs, inputs in shapes:
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    network = nn.Sequential(*layers[:-1])
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-5)
    classes, numbers = np.unique(y, return_inverse=True)
    by_class = torch.tensor(np.argsort(numbers, kind="stable").reshape(len(classes), -1))
    samples, labels = torch.tensor(X), torch.arange(way).repeat_interleave(queries)

    def train():
        end = time.perf_counter() + TORCH_SECONDS
        for done in range(count):
            if time.perf_counter() > end:
                return done
            chosen = torch.randperm(len(classes))[:way]
            columns = torch.rand(way, by_class.shape[1]).argsort(1)[:, : shot + queries]
            rows = by_class[chosen].gather(1, columns)
            task = network(samples[rows.flatten()]).view(way, shot + queries, -1)
            prototypes, asked = task[:, :shot].mean(1), task[:, shot:].reshape(way * queries, -1)
            loss = F.cross_entropy(-torch.cdist(asked, prototypes).pow(2), labels)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
        return count

    seconds, done = timed(train)
    return done, seconds


def threads(calls, rows=16):
    """Calls of predict with a few rows each, by one thread and by two."""
    import gpn

    X, y, edges = embeddings(5_000, 1_000, 50)
    model = gpn.GraphFewShotClassifier(edges).fit(X, y)
    model.predict(X[:rows])

    def ask(count):
        for number in range(count):
            start = number * rows % (len(X) - rows)
            model.predict(X[start : start + rows])

    def both():
        workers = [threading.Thread(target=ask, args=(calls // 2,)) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    # In turn, so that other work on the machine weighs on both alike.
    times = [(timed(lambda: ask(calls))[0], timed(both)[0]) for _ in range(ROUNDS)]
    ratios = [one / two for one, two in times]
    ratio = float(np.median(ratios))
    one, two = (float(np.median(column)) for column in zip(*times))
    print(f"predict, {calls} calls of {rows} rows: one thread {one:.2f} s, two {two:.2f} s: {ratio:.2f} times (median of {ROUNDS})", flush=True)
    return {"calls": calls, "rows": rows, "one_s": [one for one, _ in times], "two_s": [two for _, two in times], "times": ratio}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["fit", "episodes", "threads"])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    measured = {"python": platform.python_version(), "machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    # Other work on the machine: about 0 where it has none.
    measured["load_before"] = os.getloadavg()[0]
    if "fit" in arguments.what:
        measured["fit"] = fit_and_predict(arguments.rows)
    if "episodes" in arguments.what:
        measured["episodes"] = episodes(arguments.episodes)
    if "threads" in arguments.what:
        measured["threads"] = threads(arguments.calls)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
