"""How good answers are along the class graph.

Labels are one class for each sample, with the `taxonomy` they are in, or rows of classes from the root down, as HiClass has them (shorter
rows end with empty cells). Precision, recall and F1 are those of HiClass: a class stands for itself and all classes above it but the
root, sums are over all samples.

>>> import gpn
>>> taxonomy = gpn.Taxonomy({"fruit": {"apple": ["gala", "fuji"], "pear": []}})
>>> gpn.metrics.hierarchical_f1(["gala", "gala"], ["gala", "fuji"], taxonomy)
0.75
>>> gpn.metrics.lca_height(["gala", "gala"], ["fuji", "pear"], taxonomy)
1.5
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpn import _native
from gpn._errors import InputError
from gpn._native import auroc, false_positive_rate, wilson

__all__ = [
    "auroc",
    "average_hierarchical_distance",
    "false_positive_rate",
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "lca_height",
    "report",
    "wilson",
]


def hierarchical_precision(y_true: Any, y_pred: Any, taxonomy: Any = None) -> float:
    """The share of the answers' classes, those above them included, that are right."""
    return float(_hierarchy(y_true, y_pred, taxonomy)["precision"])


def hierarchical_recall(y_true: Any, y_pred: Any, taxonomy: Any = None) -> float:
    """The share of the true classes, those above them included, that were answered."""
    return float(_hierarchy(y_true, y_pred, taxonomy)["recall"])


def hierarchical_f1(y_true: Any, y_pred: Any, taxonomy: Any = None) -> float:
    """The harmonic mean of hierarchical precision and recall."""
    return float(_hierarchy(y_true, y_pred, taxonomy)["f1"])


def lca_height(y_true: Any, y_pred: Any, taxonomy: Any = None) -> float:
    """How bad mistakes are: the height of the lowest common ancestor of answer and truth, a mean over mistakes; NaN without any."""
    height = _hierarchy(y_true, y_pred, taxonomy)["mistake_height"]
    return float("nan") if height is None else float(height)


def average_hierarchical_distance(y_true: Any, ranked: Any, taxonomy: Any, k: int = 1) -> float:
    """The height of the lowest common ancestor of truth and each of the `k` likeliest answers, a mean over all of them.
    `ranked` holds a list of classes for each sample, the likeliest first; for `k=1` it may be one class for each."""
    rows = [row if _is_list(row) else [row] for row in ranked]
    if any(len(row) < k for row in rows):
        raise InputError(f"ranked: a sample has fewer than {k} answers")
    graph = _graph(taxonomy)
    total = 0.0
    for place in range(k):
        # Right answers count 0; the mean height of mistakes is over mistakes only.
        answers = [row[place] for row in rows]
        result = _measured(graph, list(y_true), answers)
        mistakes = result["samples"] - result["right"]
        total += (result["hierarchy"]["mistake_height"] or 0.0) * mistakes
    return total / (k * len(rows))


def report(
    y_true: Any,
    proba: Any,
    classes: Any,
    taxonomy: Any,
    *,
    unknown_scores: Sequence[float] | None = None,
    scores_of_unknown: Sequence[float] | None = None,
    top: int = 20,
) -> dict[str, Any]:
    """Everything that `gpn test` tells, from probabilities `(samples, classes)`: accuracy with its interval, calibration, measures of the
    hierarchy, a row for each class, and confusions. Scores for being unknown add how well unknown samples are found."""
    proba = np.asarray(proba, dtype=float)
    classes = list(classes)
    if proba.ndim != 2 or proba.shape[1] != len(classes):
        raise InputError(f"proba: the shape is {proba.shape}; one column for each of {len(classes)} classes is expected")
    order = np.argsort(-proba, axis=1, kind="stable")[:, :top]
    ranked = [[(classes[at], float(row[at])) for at in best] for row, best in zip(proba, order)]
    column = {str(name): at for at, name in enumerate(classes)}
    truths = list(y_true)
    known = [column.get(str(truth)) for truth in truths]
    given = None if None in known else [float(row[at]) for row, at in zip(proba, known)]
    return _native.measures(
        _graph(taxonomy),
        truths,
        ranked,
        truth_probabilities=given,
        unknown_scores=None if unknown_scores is None else list(unknown_scores),
        scores_of_unknown=None if scores_of_unknown is None else list(scores_of_unknown),
    )


def _hierarchy(y_true: Any, y_pred: Any, taxonomy: Any) -> dict[str, Any]:
    truths, answers = _array(y_true), _array(y_pred)
    if truths.ndim == 2 or answers.ndim == 2:
        if taxonomy is not None:
            raise InputError("rows of classes are their own taxonomy; give one class for each sample, or no taxonomy")
        graph, (true_ids, answer_ids) = _paths(truths, answers)
        result = _measured(graph, true_ids, answer_ids)
    elif taxonomy is None:
        raise InputError("taxonomy: it is missing; give it, or rows of classes from the root down")
    else:
        result = _measured(_graph(taxonomy), list(truths), list(answers))
    found: dict[str, Any] = result["hierarchy"]
    return found


def _measured(graph: _native.Taxonomy, truths: list[Any], answers: list[Any]) -> dict[str, Any]:
    return _native.measures(graph, truths, [[(answer, 1.0)] for answer in answers])


def _graph(taxonomy: Any) -> _native.Taxonomy:
    return taxonomy if isinstance(taxonomy, _native.Taxonomy) else _native.Taxonomy(taxonomy)


def _array(labels: Any) -> Any:
    if not hasattr(labels, "ndim"):
        labels = list(labels)
        rows = [row if _is_list(row) else None for row in labels]
        if any(row is not None for row in rows):
            longest = max(len(row) for row in rows if row is not None)
            table = np.full((len(rows), longest), "", dtype=object)
            for at, row in enumerate(rows):
                table[at, : len(row or [])] = row or []
            return table
    return np.asarray(labels)


def _is_list(row: Any) -> bool:
    return isinstance(row, (list, tuple, np.ndarray))


def _paths(*tables: Any) -> tuple[_native.Taxonomy, list[list[str]]]:
    """One class for each different beginning of a row, below a root of their own: the same word may stand in several places."""
    edges: dict[tuple[str, str], None] = {}
    answers = []
    for table in tables:
        if table.ndim != 2:
            raise InputError("labels: both sides must be rows of classes")
        ids = []
        for row in table:
            parent = "/"
            for cell in row:
                if cell is None or cell == "" or cell != cell:
                    break
                child = f"{parent}{cell}/"
                edges[parent, child] = None
                parent = child
            ids.append(parent)
        answers.append(ids)
    return _native.Taxonomy(list(edges)), answers
