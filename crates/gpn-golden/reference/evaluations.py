"""Case h: tasks over new classes, their place in the graph known or not."""

import numpy as np
import torch

from .graphs import among, contracted, random_hierarchy, reached
from .numbers import MARGIN, IllConditioned, coarse, digits, save_json
from .propagation import make_weights, propagate
from .task import best_class, minus_distances, task_trees


def percent(queries, prototypes):
    """Accuracy of queries that stand class by class, as many of each."""
    labels = torch.arange(len(prototypes)).repeat_interleave(len(queries) // len(prototypes))
    return 100 * (best_class(minus_distances(queries, prototypes)) == labels).double().mean().item()


def evaluation_document(rng):
    """Six tasks over given embeddings. Classes below `training` were trained and have a prototype in memory."""
    count, training, dim, near, way, of_class = 40, 24, 8, 2, 4, 5
    whole = random_hierarchy(rng, count)
    order = [0, *(int(n) + 1 for n in rng.permutation(count - 1))]
    whole = sorted((order[a], order[b]) for a, b in whole)
    train = contracted(whole, set(range(training)))
    # A class is its first parent and something of its own, a sample its class and noise. Features are positive.
    centres = {}
    for node in sorted(range(count), key=order.index):
        above = [a for a, b in whole if b == node]
        centres[node] = (centres[above[0]] if above else 1) + rng.normal(0, 0.5, dim)
    points = np.stack([centres[c] + rng.normal(0, 0.8, (of_class, dim)) for c in range(training, count)])
    points = coarse(np.abs(points), 2**-8)
    memory = coarse(np.abs(np.stack([centres[c] for c in range(training)])), 2**-8)
    settings = {
        "steps": 2, "heads": 2, "hidden": 4, "attention": "cosine", "attention_temperature": 2.0,
        "gate": "softmax", "gate_temperature": 3.0, "order": "neighbours",
    }  # fmt: skip
    weights = make_weights(rng, settings, dim)
    document = {"dim": dim, "training": training, "edges": whole, "nearest": near, "settings": settings}
    document["weights"] = {name: digits(value) for name, value in weights.items()}
    document |= {"memory": digits(memory), "samples": digits(points), "tasks": []}
    for number in range(6):
        targets = [int(t) for t in rng.choice(np.arange(training, count), way, replace=False)]
        orders = [rng.permutation(of_class) for _ in targets]
        chosen = torch.stack([points[t - training][order] for t, order in zip(targets, orders)])
        shot = 1 + number % 2
        own, queries = chosen[:, :shot].mean(1), chosen[:, shot:].reshape(-1, dim)

        samples = [[int((t - training) * of_class + at) for at in order] for t, order in zip(targets, orders)]
        task = {"classes": targets, "support": [s[:shot] for s in samples], "query": [s[shot:] for s in samples]}
        task["base"] = percent(queries, own)
        distances = torch.cdist(own, memory).sort(1)
        if (distances.values[:, near] - distances.values[:, near - 1]).min() < MARGIN:
            raise IllConditioned("two prototypes are equally near")
        linked = [(t, int(n)) for t, row in zip(targets, distances.indices[:, :near]) for n in row]
        for hierarchy, graph, hops in (
            ("known", contracted(whole, set(range(training)) | set(targets)), settings["steps"]),
            # The hops begin at the classes that a target is linked to.
            ("unknown", train + linked, settings["steps"] + 1),
        ):
            nodes = targets + [n for n in reached(graph, targets, hops) if n not in targets]
            row = {node: at for at, node in enumerate(nodes)}
            rows = [(row[a], row[b]) for a, b in among(graph, nodes)]
            first = torch.cat([own, memory[nodes[way:]]])
            last = propagate(settings, weights, first, *task_trees(first, rows, paper=False))[:way]
            task[hierarchy] = {
                "nodes": nodes, "edges_parent_child": sorted(rows), "prototypes": digits(last),
                "accuracy": percent(queries, last), "accuracy_lambda05": percent(queries, (own + last) / 2),
            }  # fmt: skip
        document["tasks"].append(task)
    return document


def write():
    rng = np.random.default_rng(70)
    while True:
        try:
            document = evaluation_document(rng)
        except IllConditioned as reason:
            print("drawn again: evaluation,", reason)
            continue
        columns = [
            [task["base"], *(task[h][a] for h in ("known", "unknown") for a in ("accuracy", "accuracy_lambda05"))]
            for task in document["tasks"]
        ]
        print("evaluation:", np.mean(columns, 0).round(1))
        # A test tells the columns apart only where they differ.
        if len({tuple(column) for column in zip(*columns)}) == 5:
            return save_json("h_evaluation", document)
