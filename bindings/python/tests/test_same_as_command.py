"""The command line and Python give the same numbers, bit for bit. Needs the command `gpn`: built in target/release, or named by GPN_COMMAND.

GPN_TEST_EMBEDDINGS names a folder with `embeddings.npz` and `taxonomy.csv`, as `bench/embed_groceries.py` writes it, to compare on as well."""

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
FOLDER = os.environ.get("GPN_TEST_EMBEDDINGS")
# A command that was named must be there.
pytestmark = pytest.mark.skipif("GPN_COMMAND" not in os.environ and not COMMAND.is_file(), reason="the command gpn is not built")


def compare(folder: Path, X, y, first, taxonomy: Path, seed: int = 0) -> None:
    """Fits to the `first` samples and asks about the others, here and there."""
    np.savez(folder / "train.npz", embeddings=X[first], labels=y[first])
    np.save(folder / "queries.npy", X[~first])

    def command(*words: str) -> str:
        done = subprocess.run([str(COMMAND), *words], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    report = json.loads(command("fit", "train.npz", "--taxonomy", str(taxonomy), "--seed", str(seed), "--out", "m.safetensors", "--json"))
    ours = gpn.GraphFewShotClassifier(taxonomy, random_state=seed).fit(X[first], y[first])
    # How long it took is the only difference.
    assert ours.report_ | {"seconds": 0} == report | {"seconds": 0} and report["accuracy"] > 0
    theirs = gpn.Model.open(folder / "m.safetensors")
    assert theirs.answers == ours.model_.answers
    assert (theirs.prototypes()[1] == ours.model_.prototypes()[1]).all()
    assert (theirs.probabilities(X[~first]) == ours.model_.probabilities(X[~first])).all()
    assert (theirs.transform(X[~first]) == ours.in_space(X[~first])).all()

    count = len(ours.classes_)
    answers = json.loads(command("predict", "m.safetensors", "queries.npy", "--top", str(count), "--unknown", "--confidence", "0.8", "--json"))
    assert len(answers) == (~first).sum() > 0
    assert ours.predict(X[~first]).tolist() == [answer["classes"][0]["id"] for answer in answers]
    assert ours.predict(X[~first], confidence=0.8).tolist() == [answer["sure"]["id"] for answer in answers]
    assert ours.unknown_score(X[~first]).tolist() == [answer["unknown"]["score"] for answer in answers]
    assert ours.is_unknown(X[~first]).tolist() == [answer["unknown"]["is_unknown"] for answer in answers]
    predictions = ours.model_.predict(X[~first], top=count)
    table, rows = ours.predict_proba(X[~first]), []
    for at, answer in enumerate(answers):
        assert len(answer["classes"]) == count
        own = predictions[at].to_dict()["classes"]
        assert [(row["id"], row["probability"], row["distance"]) for row in own] == [
            (row["id"], row["probability"], row["distance"]) for row in answer["classes"]
        ]
        by_id = {row["id"]: row["probability"] for row in answer["classes"]}
        rows.append([by_id[label] for label in ours.classes_.tolist()])
    # scikit-learn wants rows that sum to 1 in double precision, which is a division more.
    rows = np.array(rows, dtype=np.float32).astype(np.float64)
    assert (table == rows / rows.sum(axis=1, keepdims=True)).all()


@pytest.mark.parametrize("seed", [0, 7])
def test_fit_predict_and_probabilities(tmp_path, seed) -> None:
    pytest.importorskip("sklearn")
    X, y, taxonomy = made_up(per_class=12)
    X = X + np.random.default_rng(3).normal(size=X.shape).astype(np.float32)
    taxonomy.save(tmp_path / "kinds.csv")
    compare(tmp_path, X, y, np.arange(len(X)) % 12 < 8, tmp_path / "kinds.csv", seed)


@pytest.mark.skipif(FOLDER is None, reason="GPN_TEST_EMBEDDINGS does not name a folder")
def test_embeddings_that_were_given(tmp_path) -> None:
    pytest.importorskip("sklearn")
    folder = Path(str(FOLDER)).absolute()
    data = np.load(folder / "embeddings.npz")
    X, y = data["embeddings"], data["labels"]
    compare(tmp_path, X, y, np.random.default_rng(0).random(len(X)) < 0.8, folder / "taxonomy.csv")
