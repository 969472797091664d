"""Writes fixtures/j_measures.json: answers to labelled samples, and what HiClass and scikit-learn measure of them.

    pip install hiclass scikit-learn numpy networkx
    python measures.py

Hierarchical precision, recall and F1 are those of `hiclass.metrics` with `average="micro"`. A class with several parents is
given to HiClass as all its paths from below the root, which it takes as one set. Everything flat is scikit-learn's. Heights
and lowest common ancestors are found by trying all ancestors, with networkx. Expected calibration error is worked out here.
"""

import json
from pathlib import Path

import hiclass.metrics
import networkx
import numpy as np
import sklearn.metrics as flat

OUT = Path(__file__).parent / "fixtures" / "j_measures.json"
BINS = 15


def random_graph(rng, several_parents):
    """Classes by number, 0 the root; leaves lie at unequal depths."""
    edges = [(0, child) for child in (1, 2, 3)]
    for child in range(4, 40):
        parents = {int(rng.integers(0, max(4, child // 2)))}
        if several_parents and rng.random() < 0.3:
            parents.add(int(rng.integers(1, child)))
        edges += [(parent, child) for parent in sorted(parents)]
    return edges


def paths(graph, node):
    """All ways from below the root to a class."""
    return [path[1:] for path in networkx.all_simple_paths(graph, 0, node)]


def hierarchical(graph, truths, answers):
    """HiClass on all paths of each class, filled up to one size: [samples, paths, levels]."""
    both = [[paths(graph, node) for node in nodes] for nodes in (truths, answers)]
    count = max(len(of) for nodes in both for of in nodes)
    depth = max(len(path) for nodes in both for of in nodes for path in of)

    def filled(of):
        rows = [[str(node) for node in path] + [""] * (depth - len(path)) for path in of]
        return rows + [[""] * depth] * (count - len(of))

    truth, answer = (np.array([filled(of) for of in nodes]) for nodes in both)
    if count == 1:
        truth, answer = truth[:, 0], answer[:, 0]
    return {
        "precision": float(hiclass.metrics.precision(truth, answer, "micro")),
        "recall": float(hiclass.metrics.recall(truth, answer, "micro")),
        "f1": float(hiclass.metrics.f1(truth, answer, "micro")),
    }


def heights(graph):
    """The longest way down from each class."""
    height = {}
    for node in reversed(list(networkx.topological_sort(graph))):
        height[node] = max((height[child] + 1 for child in graph.successors(node)), default=0)
    return height


def meeting_height(graph, height, a, b):
    above = [networkx.ancestors(graph, node) | {node} for node in (a, b)]
    return min(height[node] for node in above[0] & above[1])


def calibration_error(claimed, right):
    bins = np.minimum((claimed * BINS).astype(int), BINS - 1)
    gaps = [abs(claimed[bins == b].sum() - right[bins == b].sum()) for b in range(BINS)]
    return float(sum(gaps) / len(claimed))


def case(rng, name, several_parents, samples):
    edges = random_graph(rng, several_parents)
    graph = networkx.DiGraph(edges)
    leaves = sorted(node for node in graph if graph.out_degree(node) == 0)
    truth = rng.choice(leaves, samples, p=rng.dirichlet(np.full(len(leaves), 2.0)))
    logits = rng.normal(0, 1, (samples, len(leaves)))
    logits[np.arange(samples), np.searchsorted(leaves, truth)] += 2.0
    # Multiples of a power of two that sum to 1, none of them 0.
    share = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    whole = 1 + np.floor(share * (2**16 - len(leaves))).astype(int)
    whole[np.arange(samples), whole.argmax(1)] += 2**16 - whole.sum(1)
    probabilities = whole / 2**16
    order = np.argsort(-probabilities, axis=1, kind="stable")
    ranked = np.array(leaves)[order]
    answer = ranked[:, 0]
    height = heights(graph)
    met = np.array([[meeting_height(graph, height, t, a) for a in row[:20]] for t, row in zip(truth, ranked)])
    precision, recall, f1, support = flat.precision_recall_fscore_support(truth, answer, labels=leaves, zero_division=0)
    known = np.round(rng.normal(0, 1, samples), 1)
    unknown = np.round(rng.normal(1, 1, samples // 2), 1)
    labels, scores = np.repeat([0, 1], [len(known), len(unknown)]), np.concatenate([known, unknown])
    false, true, _ = flat.roc_curve(labels, scores, drop_intermediate=False)
    return {
        "name": name,
        "edges": edges,
        "truth": truth.tolist(),
        "ranked": ranked.tolist(),
        "probabilities": np.take_along_axis(probabilities, order, 1).tolist(),
        "known_scores": known.tolist(),
        "unknown_scores": unknown.tolist(),
        "accuracy": float(flat.accuracy_score(truth, answer)),
        "top5": float(flat.top_k_accuracy_score(truth, probabilities, k=5, labels=leaves)),
        "balanced_accuracy": float(flat.balanced_accuracy_score(truth, answer)),
        "log_loss": float(flat.log_loss(truth, probabilities, labels=leaves)),
        "calibration_error": calibration_error(probabilities.max(1), truth == answer),
        "classes": [
            {"class": node, "precision": float(p), "recall": float(r), "f1": float(f), "samples": int(s)}
            for node, p, r, f, s in zip(leaves, precision, recall, f1, support)
        ],
        "hierarchical": hierarchical(graph, truth, answer),
        "mistake_height": float(met[truth != answer, 0].mean()),
        "distance_at": [float(met[:, :k].mean()) for k in (1, 5, 20)],
        "auroc": float(flat.roc_auc_score(labels, scores)),
        "false_positives": float(false[np.argmax(true >= 0.95)]),
    }


if __name__ == "__main__":
    rng = np.random.default_rng(14)
    cases = [case(rng, "tree", False, 40), case(rng, "several parents", True, 40)]
    assert all(len(row) >= 20 for each in cases for row in each["ranked"]), "twenty answers are needed"
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in cases)
    OUT.write_text(f"[\n{lines}\n]\n")
    print(f"{OUT.stat().st_size} bytes")
