"""Measures along the graph, beside HiClass's own."""

from __future__ import annotations

import numpy as np
import pytest

import gpn
from gpn import metrics

TAXONOMY = {"fruit": {"apple": ["gala", "fuji"], "pear": ["conference"]}, "tool": {"saw": [], "hammer": []}}


@pytest.fixture(scope="module")
def taxonomy() -> gpn.Taxonomy:
    return gpn.Taxonomy({"root": TAXONOMY})


def paths(taxonomy: gpn.Taxonomy, labels) -> np.ndarray:
    table = np.full((len(labels), 3), "", dtype=object)
    for row, label in zip(table, labels):
        path = taxonomy.path(label)[1:]
        row[: len(path)] = path
    return table


def test_the_same_as_hiclass(taxonomy) -> None:
    theirs = pytest.importorskip("hiclass.metrics", reason="HiClass is not installed")
    random = np.random.default_rng(0)
    y_true, y_pred = random.choice(taxonomy.leaves, 200), random.choice(taxonomy.leaves, 200)
    rows = paths(taxonomy, y_true), paths(taxonomy, y_pred)
    for ours, other in [
        (metrics.hierarchical_precision, theirs.precision),
        (metrics.hierarchical_recall, theirs.recall),
        (metrics.hierarchical_f1, theirs.f1),
    ]:
        expected = other(*rows)
        assert np.isclose(ours(y_true, y_pred, taxonomy), expected)
        assert np.isclose(ours(*rows), expected)
        assert np.isclose(ours(rows[0].tolist(), rows[1].tolist()), expected)


def test_by_hand(taxonomy) -> None:
    # A fuji is an apple and a fruit: two of three. A saw is nothing of it.
    assert np.isclose(metrics.hierarchical_precision(["gala", "gala"], ["fuji", "saw"], taxonomy), 2 / 5)
    assert np.isclose(metrics.hierarchical_recall(["gala", "gala"], ["fuji", "saw"], taxonomy), 2 / 6)
    # An answer that stops early is precise.
    assert metrics.hierarchical_precision(["gala"], ["apple"], taxonomy) == 1
    assert np.isclose(metrics.hierarchical_recall(["gala"], ["apple"], taxonomy), 2 / 3)
    assert metrics.lca_height(["gala", "gala", "gala"], ["gala", "fuji", "conference"], taxonomy) == 1.5
    assert np.isnan(metrics.lca_height(["gala"], ["gala"], taxonomy))
    assert metrics.average_hierarchical_distance(["gala", "gala"], ["gala", "fuji"], taxonomy) == 0.5
    assert metrics.average_hierarchical_distance(["gala"], [["gala", "fuji"]], taxonomy, k=2) == 0.5


def test_report(taxonomy) -> None:
    classes = ["gala", "fuji", "saw"]
    proba = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8], [0.2, 0.5, 0.3]])
    report = metrics.report(
        ["gala", "gala", "saw", "fuji"], proba, classes, taxonomy, unknown_scores=[0, 1, 0, 0], scores_of_unknown=[2, 3]
    )
    assert report["accuracy"] == 0.75 and report["right"] == 3
    assert np.isclose(report["log_loss"], -np.log([0.8, 0.2, 0.8, 0.5]).mean())
    assert report["unknown"]["auroc"] == 1.0
    assert {row["id"] for row in report["classes"]} == {"gala", "fuji", "saw"}


def test_faults(taxonomy) -> None:
    with pytest.raises(ValueError, match="taxonomy: it is missing"):
        metrics.hierarchical_f1(["gala"], ["gala"])
    with pytest.raises(KeyError, match="did you mean `gala`"):
        metrics.hierarchical_f1(["gala"], ["galla"], taxonomy)
    with pytest.raises(ValueError, match="2 labels but 1 answers"):
        metrics.hierarchical_f1(["gala", "gala"], ["gala"], taxonomy)
    with pytest.raises(ValueError, match="both sides must be rows"):
        metrics.hierarchical_f1([["a", "b"]], ["a"])


def test_shares() -> None:
    low, high = metrics.wilson(9, 10)
    assert 0.59 < low < 0.6 and 0.97 < high < 0.99
    assert metrics.auroc([0.0, 1.0], [2.0, 0.5]) == 0.75
    assert metrics.auroc([], [1.0]) is None
    assert metrics.false_positive_rate([0.0, 1.0, 3.0, 4.0], [2.0] * 20) == 0.5
