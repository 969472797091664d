"""GraphFewShotClassifier as scikit-learn's users use estimators."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import gpn
from conftest import made_up
from gpn import GraphFewShotClassifier

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")


@pytest.fixture(scope="module")
def parts():
    """Samples to fit to, and others."""
    X, y, taxonomy = made_up(per_class=24)
    first = np.arange(len(X)) % 24 < 12
    return X[first], y[first], X[~first], y[~first], taxonomy


@pytest.fixture(scope="module")
def fitted(parts) -> GraphFewShotClassifier:
    X, y, _, _, taxonomy = parts
    return GraphFewShotClassifier(taxonomy).fit(X, y)


# Nothing is excused.
EXCUSED: dict[str, str] = {}


def checks():
    from sklearn.utils.estimator_checks import estimator_checks_generator

    return [
        (getattr(check, "func", check).__name__, estimator, check)
        for estimator, check in estimator_checks_generator(GraphFewShotClassifier())
    ]


@pytest.mark.parametrize(("name", "estimator", "check"), checks(), ids=lambda value: value if isinstance(value, str) else "")
def test_check_estimator(name, estimator, check) -> None:
    if name in EXCUSED:
        pytest.xfail(EXCUSED[name])
    check(estimator)


def test_accuracy_and_probabilities(fitted, parts) -> None:
    _, _, X, y, _ = parts
    assert fitted.score(X, y) > 0.9
    proba = fitted.predict_proba(X)
    assert proba.shape == (len(X), 20) and np.allclose(proba.sum(1), 1)
    assert (fitted.classes_[proba.argmax(1)] == fitted.predict(X)).all()
    assert np.allclose(np.exp(fitted.predict_log_proba(X)), proba)
    assert fitted.report_["accuracy"] > 0.9 and fitted.report_["classes"] == 20


def test_paths_and_confidence(fitted, parts) -> None:
    _, _, X, y, taxonomy = parts
    paths = fitted.predict_path(X[:5])
    assert paths.shape == (5, 3) and (paths[:, 0] == "thing").all()
    assert (paths[:, 2] == fitted.predict(X[:5])).all()
    sure = fitted.predict(X, confidence=0.5)
    assert (fitted.set_params(confidence=0.5).predict(X) == sure).all()
    fitted.set_params(confidence=None)
    with pytest.raises(ValueError, match="confidence"):
        fitted.predict(X, confidence=2)


def test_answers_are_as_deep_as_sure(parts) -> None:
    X, y, others, truth, taxonomy = parts
    random = np.random.default_rng(0)
    X, others = (rows + 1.5 * random.normal(size=rows.shape).astype(np.float32) for rows in (X, others))
    model = GraphFewShotClassifier(taxonomy).fit(X, y)
    leaves, right = [], []
    for confidence in (0.3, 0.6, 0.9):
        answers = model.predict(others, confidence=confidence)
        leaves.append(np.isin(answers, model.classes_).mean())
        right.append(np.mean([answer in taxonomy.path(label) for answer, label in zip(answers, truth)]))
        assert set(answers) <= set(taxonomy.ids)
    assert leaves[0] > leaves[1] > leaves[2] and right[0] < right[1] < right[2]


def test_sets(fitted, parts) -> None:
    _, _, X, _, _ = parts
    proba = fitted.predict_proba(X)
    for row, found in zip(proba, fitted.predict_set(X, confidence=0.95)):
        chosen = np.isin(fitted.classes_, found)
        assert row[chosen].sum() >= 0.95 - 1e-9
        assert len(found) == 1 or row[chosen].sum() - row[chosen].min() < 0.95


def test_new_classes_at_any_time(parts) -> None:
    X, y, others, truth, taxonomy = parts
    known = y != "class00"
    model = GraphFewShotClassifier(taxonomy).fit(X[known], y[known])
    assert "class00" not in model.classes_
    model.partial_fit(X[~known][:2], y[~known][:2])
    assert "class00" in model.classes_ and model.predict_proba(others).shape[1] == 20
    asked = truth == "class00"
    assert (model.predict(others[asked]) == "class00").mean() > 0.7
    # A class that the taxonomy does not have, below one that it has; and one without a place.
    model.partial_fit(others[asked][:3] + 9, ["mine"] * 3, parents={"mine": "kind0"})
    assert model.taxonomy_.parents("mine") == ["kind0"] and model.predict(others[asked][:1] + 9).tolist() == ["mine"]
    model.partial_fit(others[:2] - 20, ["nowhere"] * 2)
    assert model.predict(others[:1] - 20).tolist() == ["nowhere"]
    assert list(model.classes_) == sorted(model.classes_)
    with pytest.raises(ValueError, match="not among the `classes`"):
        model.partial_fit(X[:1], ["z"], classes=["a"])


def test_partial_fit_from_the_start_without_a_taxonomy(parts) -> None:
    X, y, others, truth, _ = parts
    model = GraphFewShotClassifier()
    for batch in np.array_split(np.unique(y), 4):
        chosen = np.isin(y, batch)
        model.partial_fit(X[chosen], y[chosen], classes=np.unique(y))
    assert model.classes_.tolist() == np.unique(y).tolist()
    assert model.score(others, truth) > 0.8


def test_more_samples_of_a_known_class_help(parts) -> None:
    X, y, others, truth, taxonomy = parts
    one = np.array([np.flatnonzero(y == name)[0] for name in np.unique(y)])
    others = others + 1.5 * np.random.default_rng(0).normal(size=others.shape).astype(np.float32)
    model = GraphFewShotClassifier(taxonomy).fit(X[one], y[one])
    before = model.score(others, truth)
    rest = np.setdiff1d(np.arange(len(y)), one)
    assert model.partial_fit(X[rest], y[rest]).score(others, truth) > before


def test_labels_of_any_level(parts) -> None:
    X, y, others, truth, taxonomy = parts
    coarse = np.array([taxonomy.parents(label)[0] if label < "class1" else label for label in y])
    model = GraphFewShotClassifier(taxonomy).fit(X, coarse)
    assert "kind0" in model.classes_ and "class00" not in model.classes_
    of_kind0 = np.char.startswith(truth, "class0")
    assert (model.predict(others[of_kind0]) == "kind0").mean() > 0.9


def test_rows_of_labels_as_hiclass_has_them(parts) -> None:
    X, y, others, truth, taxonomy = parts
    rows = np.array([taxonomy.path(label) for label in y])
    model = GraphFewShotClassifier().fit(X, rows)
    same = GraphFewShotClassifier(taxonomy).fit(X, y)
    assert (model.predict(others) == same.predict(others)).all()
    assert set(model.taxonomy_.edges) == set(same.taxonomy_.edges)
    assert (GraphFewShotClassifier().fit(X, rows.tolist()).predict(others) == same.predict(others)).all()
    ragged = [row[:2] if label < "class1" else row for row, label in zip(rows.tolist(), y)]
    assert "kind0" in GraphFewShotClassifier().fit(X, ragged).classes_
    with pytest.raises(ValueError, match="row 1 has no label"):
        GraphFewShotClassifier().fit(X[:2], [["a", "b"], ["", ""]])


def test_numbers_are_labels(parts) -> None:
    X, y, others, _, _ = parts
    _, numbers = np.unique(y, return_inverse=True)
    model = GraphFewShotClassifier().fit(X, numbers)
    assert model.predict(others).dtype == numbers.dtype and model.classes_.tolist() == list(range(20))
    below = GraphFewShotClassifier([("all", number) for number in range(20)]).fit(X, numbers)
    assert (below.predict(others) == model.predict(others)).all()


def test_order_and_weights(parts) -> None:
    X, y, others, _, taxonomy = parts
    model = GraphFewShotClassifier(taxonomy).fit(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = GraphFewShotClassifier(taxonomy).fit(X[order], y[order])
    assert (shuffled.predict_proba(others) == model.predict_proba(others)).all()
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = GraphFewShotClassifier(taxonomy).fit(X, y, sample_weight=weights)
    repeated = GraphFewShotClassifier(taxonomy).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert (weighted.predict_proba(others) == repeated.predict_proba(others)).all()
    GraphFewShotClassifier(taxonomy).fit(X, y, sample_weight=np.linspace(0.1, 2.7, len(y)))
    for wrong in [np.ones(3), -np.ones(len(y)), np.zeros(len(y)), np.full(len(y), np.nan)]:
        with pytest.raises(ValueError, match="sample_weight"):
            GraphFewShotClassifier(taxonomy).fit(X, y, sample_weight=wrong)


def test_tools_of_scikit_learn(parts, tmp_path) -> None:
    import joblib
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, others, _, taxonomy = parts
    model = GraphFewShotClassifier(taxonomy).fit(X, y)
    expected = model.predict_proba(others)
    assert clone(model).get_params() == model.get_params() and not hasattr(clone(model), "model_")
    assert (pickle.loads(pickle.dumps(model)).predict_proba(others) == expected).all()
    joblib.dump(model, tmp_path / "model.joblib")
    assert (joblib.load(tmp_path / "model.joblib").predict_proba(others) == expected).all()
    assert make_pipeline(StandardScaler(), GraphFewShotClassifier(taxonomy)).fit(X, y).score(X, y) > 0.9
    assert cross_val_score(GraphFewShotClassifier(taxonomy), X, y, cv=3).mean() > 0.9
    search = GridSearchCV(GraphFewShotClassifier(taxonomy), {"method": ["prior", "nearest"]}, cv=2).fit(X, y)
    assert search.best_params_["method"] in ("prior", "nearest")
    with pytest.raises(ValueError, match="neither prior nor nearest"):
        GraphFewShotClassifier(method="best").fit(X, y)


def test_the_graph_helps_with_one_sample(parts) -> None:
    X, y, others, truth, taxonomy = parts
    scores = {"prior": [], "nearest": []}
    for seed in range(5):
        random = np.random.default_rng(seed)
        one = np.array([random.choice(np.flatnonzero(y == name)) for name in np.unique(y)])
        noisy = X[one] + 2.0 * random.normal(size=X[one].shape).astype(np.float32)
        for method, found in scores.items():
            found.append(GraphFewShotClassifier(taxonomy, method=method).fit(noisy, y[one]).score(others, truth))
    assert np.mean(scores["prior"]) >= np.mean(scores["nearest"])


def test_prototypes_and_search(fitted, parts) -> None:
    _, _, X, _, _ = parts
    assert fitted.prototypes_.dtype == np.float32 and len(fitted.prototypes_) == len(fitted.classes_)
    distances = ((fitted.in_space(X)[:, None] - fitted.prototypes_[None]) ** 2).sum(-1)
    nearest = fitted.classes_[np.argsort(distances, axis=1)[:, :3]]
    assert (nearest == fitted.predict(X)[:, None]).any(1).mean() > 0.98


def test_unknown_samples(fitted, parts) -> None:
    _, _, X, _, _ = parts
    strange = np.random.default_rng(0).normal(size=X.shape).astype(np.float32) * 3
    assert gpn._native.Model is type(fitted.model_)
    known, unknown = fitted.unknown_score(X), fitted.unknown_score(strange)
    assert np.median(unknown) > np.median(known)
    assert fitted.is_unknown(X).mean() < 0.2 < fitted.is_unknown(strange).mean()


def test_explanations(fitted, parts) -> None:
    _, _, X, _, _ = parts
    one = fitted.explain(X[0])
    assert one.id == fitted.predict(X[:1])[0] and one.shaped_by is not None
    assert "what shaped" in one._repr_html_()
    assert len(fitted.explain(X[:3])) == 3


def test_encoders(parts) -> None:
    X, y, _, _, taxonomy = parts

    class Encoder:
        def encode(self, items):
            return X[[int(item) for item in items]]

    rows = [str(row) for row in range(len(X))]
    plain = GraphFewShotClassifier(taxonomy).fit(X, y)
    for encoder in [Encoder(), lambda items: X[[int(item) for item in items]].tolist()]:
        model = GraphFewShotClassifier(taxonomy, encoder=encoder).fit(rows, y)
        assert (model.predict(rows[:50]) == plain.predict(X[:50])).all()
        assert model.explain("3").id == plain.explain(X[3]).id
        assert (model.predict(np.array(rows[:5])) == plain.predict(X[:5])).all()
    with pytest.raises(ValueError, match="no `encode`"):
        GraphFewShotClassifier(encoder=3).fit(rows, y)


def test_the_model_is_a_file_like_others(fitted, parts, tmp_path) -> None:
    _, _, X, _, _ = parts
    fitted.model_.save(tmp_path / "m.safetensors")
    model = gpn.Model.open(tmp_path / "m.safetensors")
    assert model.is_fitted and model.predict(X[:20]).ids == fitted.predict(X[:20]).tolist()
    assert (model.probabilities(X[:20]) == fitted.model_.probabilities(X[:20])).all()
    model.rename("class00", "the first")
    assert model.taxonomy.name("class00") == "the first"
    model.move("class00", "kind1")
    assert model.taxonomy.parents("class00") == ["kind1"]
    model.forget("class01")
    assert "class01" not in model.answers


def test_changes_of_the_model_are_seen(parts) -> None:
    X, y, others, _, taxonomy = parts
    model = GraphFewShotClassifier(taxonomy).fit(X, y)
    model.model_.teach("mine", others[:2] + 30, parents="kind0")
    assert model.predict(others[:1] + 30).tolist() == ["mine"]


def test_faults_are_said(parts) -> None:
    X, y, _, _, taxonomy = parts
    with pytest.raises(ValueError, match="clas00"):
        GraphFewShotClassifier(taxonomy).fit(X[:3], ["class00", "class01", "clas00"])
    from sklearn.exceptions import NotFittedError

    for call in ["predict", "predict_proba", "in_space", "unknown_score"]:
        with pytest.raises(NotFittedError):
            getattr(GraphFewShotClassifier(), call)(X)


def test_works_without_scikit_learn(tmp_path) -> None:
    script = textwrap.dedent(
        """
        import sys
        sys.modules["sklearn"] = None
        import numpy as np, gpn, pickle
        X = np.array([[0, 1], [0.1, 1], [1, 0], [1, 0.1]])
        model = gpn.GraphFewShotClassifier().fit(X, ["a", "a", "b", "b"])
        assert model.predict(X).tolist() == ["a", "a", "b", "b"] and model.score(X, ["a", "a", "b", "b"]) == 1
        assert model.set_params(method="nearest").get_params()["method"] == "nearest"
        assert pickle.loads(pickle.dumps(model)).predict(X).tolist() == ["a", "a", "b", "b"]
        for bad in [lambda: model.predict(X[:, :1]), lambda: model.set_params(x=1), lambda: model.fit(X * np.nan, "abab"), lambda: model.fit(X, None)]:
            try:
                bad()
            except ValueError:
                continue
            raise SystemExit("no error")
        """
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)
