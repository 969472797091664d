"""The command line and Python give the same numbers, bit for bit. Needs the command `gpn`: built in target/release, or named by GPN_COMMAND."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import gpn
from conftest import made_up

COMMAND = Path(os.environ.get("GPN_COMMAND", Path(__file__).parents[3] / "target" / "release" / "gpn"))


@pytest.mark.skipif(not COMMAND.is_file(), reason="the command gpn is not built")
def test_fit_predict_and_probabilities(tmp_path) -> None:
    pytest.importorskip("sklearn")
    X, y, taxonomy = made_up(per_class=12)
    X = X + np.random.default_rng(3).normal(size=X.shape).astype(np.float32)
    first = np.arange(len(X)) % 12 < 8
    np.savez(tmp_path / "train.npz", embeddings=X[first], labels=y[first])
    np.save(tmp_path / "queries.npy", X[~first])
    taxonomy.save(tmp_path / "kinds.csv")

    def command(*words: str) -> str:
        done = subprocess.run([str(COMMAND), *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    command("fit", "train.npz", "--taxonomy", "kinds.csv", "--out", "by-command.safetensors")
    theirs = json.loads(command("predict", "by-command.safetensors", "queries.npy", "--top", "20", "--json"))
    ours = gpn.GraphFewShotClassifier(tmp_path / "kinds.csv").fit(X[first], y[first])
    assert ours.predict(X[~first]).tolist() == [answer["classes"][0]["id"] for answer in theirs]
    predictions = ours.model_.predict(X[~first], top=20)
    for at, answer in enumerate(theirs):
        own = predictions[at].to_dict()["classes"]
        assert [(row["id"], row["probability"], row["distance"]) for row in own] == [
            (row["id"], row["probability"], row["distance"]) for row in answer["classes"]
        ]
    opened = gpn.Model.open(tmp_path / "by-command.safetensors")
    assert (opened.probabilities(X[~first]) == ours.model_.probabilities(X[~first])).all()
