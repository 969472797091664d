"""Prototypes in an index of usearch or FAISS give the answers of the model."""

from __future__ import annotations

import numpy as np
import pytest

import gpn


def test_usearch(run: gpn.Run, data) -> None:
    index_of = pytest.importorskip("usearch.index", reason="usearch is not installed")
    X, _, _ = data
    model = run.model()
    ids, prototypes = model.prototypes()
    index = index_of.Index(ndim=prototypes.shape[1], metric="l2sq", dtype="f32")
    index.add(np.arange(len(ids)), prototypes)
    found = [index.search(row, 1, exact=True).keys[0] for row in model.embed(X[:50])]
    assert [ids[at] for at in found] == model.predict(X[:50]).ids


def test_faiss(run: gpn.Run, data) -> None:
    faiss = pytest.importorskip("faiss", reason="FAISS is not installed")
    X, _, _ = data
    model = run.model()
    ids, prototypes = model.prototypes()
    index = faiss.IndexFlatL2(prototypes.shape[1])
    index.add(prototypes)
    _, found = index.search(model.embed(X[:50]), 1)
    assert [ids[at] for at in found[:, 0]] == model.predict(X[:50]).ids
