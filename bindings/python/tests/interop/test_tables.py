"""Embeddings and answers in pandas, polars and Parquet."""

from __future__ import annotations

import numpy as np
import pytest

import gpn


def test_pandas(run: gpn.Run, data) -> None:
    pandas = pytest.importorskip("pandas")
    X, _, _ = data
    model = run.model()
    frame = pandas.DataFrame(X[:5])
    answers = pandas.DataFrame(model.predict(frame).table())
    assert list(answers.columns) == ["file", "rank", "id", "name", "probability"] and len(answers) == 25
    assert (answers.probability.to_numpy() == model.predict(X[:5]).table()["probability"]).all()
    assert len(pandas.DataFrame(model.classes())) == len(model.classes()["id"])


def test_polars(run: gpn.Run, data) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X, _, _ = data
    model = run.model()
    frame = polars.DataFrame({"embedding": [row.tolist() for row in X[:5]]})
    answers = polars.DataFrame(model.predict(np.stack(frame["embedding"].to_list())).table(), strict=False)
    assert answers.height == 25
    assert model.predict(polars.DataFrame(X[:5])).ids == model.predict(X[:5]).ids


def test_parquet(run: gpn.Run, data, tmp_path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    X, y, taxonomy = data
    frame = pandas.DataFrame({"embedding": list(X), "class_name": y})
    frame.to_parquet(tmp_path / "table.parquet")
    taxonomy.save(tmp_path / "kinds.csv")
    model = run.model()
    assert model.predict(tmp_path / "table.parquet").ids == model.predict(X).ids
    bench = gpn.Benchmark.build(f"embeddings:{tmp_path / 'table.parquet'}", tmp_path / "bench", taxonomy=f"edges:{tmp_path / 'kinds.csv'}")
    assert bench.manifest["counts"]["samples"] == len(X)
    stored = np.load(tmp_path / "bench" / "embeddings.npy")
    assert stored.shape == X.shape and stored.dtype == np.float32
