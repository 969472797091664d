"""Names of classes as a second prior, and encoders by their path."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gpn

pytest.importorskip("sklearn")

DIM, TOPICS, EACH = 16, 12, 5


class Names:
    """An encoder of names that knows the topic of a class, which no graph tells."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.topics = np.random.default_rng(3).normal(size=(TOPICS, 8)).astype(np.float32)

    def encode(self, texts: list[str]) -> np.ndarray:
        self.asked += texts
        return np.stack([self.topics[int(text.split("topic")[1].split()[0])] if "topic" in text else np.zeros(8, np.float32) for text in texts])


def made(seed: int = 0):
    """Classes near the centre of their topic: samples, labels, and names that tell the topic."""
    random = np.random.default_rng(seed)
    centres = 3 * random.normal(size=(TOPICS, DIM))
    means = np.repeat(centres, EACH, axis=0) + 0.6 * random.normal(size=(TOPICS * EACH, DIM))
    names = [f"c{number} of topic{number // EACH} things" for number in range(TOPICS * EACH)]

    def draw(count: int):
        X = np.repeat(means, count, axis=0) + 2.0 * random.normal(size=(len(means) * count, DIM))
        return X.astype(np.float32), np.repeat(names, count)

    return draw


def by_name(model: gpn.GraphFewShotClassifier, sample: np.ndarray) -> set[str]:
    """The classes whose names shaped the likeliest class."""
    shaped_by = model.explain(sample).shaped_by
    return {id_ for id_, relation in zip(shaped_by["id"], shaped_by["relation"]) if relation == "nearest"}


def test_classes_of_similar_names_shape_each_other() -> None:
    draw = made()
    X, y = draw(3)
    assert by_name(gpn.GraphFewShotClassifier().fit(X, y), X[0]) == set()
    model = gpn.GraphFewShotClassifier(text_encoder=Names()).fit(X, y)
    best = model.predict(X[:1])[0]
    topic = best.split(" of ")[1]
    # The four other classes of the topic, which no graph tells.
    assert sum(id_.endswith(topic) for id_ in by_name(model, X[0])) == EACH - 1


def test_a_new_class_of_the_taxonomy_is_known_by_its_name() -> None:
    X, y = made()(3)
    taxonomy = [("everything", name) for name in dict.fromkeys(y.tolist())]
    new = y[0]
    model = gpn.GraphFewShotClassifier(taxonomy, text_encoder=Names()).fit(X[y != new], y[y != new])
    model.partial_fit(X[:1], [new])
    assert model.predict(X[:1]).tolist() == [new]
    assert sum("topic0 " in id_ for id_ in by_name(model, X[0])) == EACH - 1


def test_texts_travel_with_the_model(tmp_path) -> None:
    draw = made(2)
    X, y = draw(2)
    model = gpn.GraphFewShotClassifier(text_encoder=Names()).fit(X, y)
    model.model_.save(tmp_path / "m.safetensors")
    again = gpn.Model.open(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.probabilities(X), model.model_.probabilities(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    assert np.isclose(sum(model.explain(X[0]).shaped_by["share"]), 1)


def test_names_and_descriptions_are_encoded() -> None:
    import pandas

    table = pandas.DataFrame(
        {"child": ["a", "b"], "parent": ["r", "r"], "name": ["topic0 one", "topic1 two"], "description": ["small", None]}
    )
    encoder = Names()
    X = np.eye(4, dtype=np.float32)
    gpn.GraphFewShotClassifier(table, text_encoder=encoder).fit(X, ["a", "a", "b", "b"])
    assert {"topic0 one: small", "topic1 two"} <= set(encoder.asked)


def test_a_callable_will_do_and_faults_are_named() -> None:
    X, y = made()(1)
    by_object, by_call = Names(), Names()
    models = [gpn.GraphFewShotClassifier(text_encoder=encoder).fit(X, y) for encoder in (by_object, by_call.encode)]
    np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))
    with pytest.raises(gpn.InputError, match="text_encoder: int has no `encode`"):
        gpn.GraphFewShotClassifier(text_encoder=7).fit(X, y)
    with pytest.raises(gpn.InputError, match="60 texts of classes but 2 embeddings"):
        gpn.GraphFewShotClassifier(text_encoder=lambda texts: np.ones((2, 3))).fit(X, y)
    with pytest.raises(FileNotFoundError):
        gpn.GraphFewShotClassifier(text_encoder="missing.onnx").fit(X, y)
    with pytest.raises(FileNotFoundError):
        gpn.GraphFewShotClassifier(encoder="missing.onnx").fit(["a.jpg", "b.jpg"], ["a", "b"])
