"""A few-shot classifier as scikit-learn knows estimators."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn import _native
from gpn._errors import InputError
from gpn._sklearn import Base, NotFitted, checked_labels, checked_samples, checked_weights

__all__ = ["GraphFewShotClassifier"]

# Weights that are no whole numbers become so many repetitions of a sample on average.
_REPETITIONS = 4
# More repetitions than these on average are scaled down.
_MOST_REPETITIONS = 32
# Classes of a taxonomy whose texts are encoded, for each class with samples.
_TEXTS_FOR_EACH = 20


class GraphFewShotClassifier(Base):
    """Tells classes apart by a few samples each and by how classes are related.

    A class is expected near its relatives in the class graph, so that one sample of it goes a long way; with many samples its own data
    decide. Fitting chooses among several ways to answer on samples held out, and measures by hiding classes how classes that come
    later will do.

    Parameters
    ----------
    taxonomy : Taxonomy, pairs (parent, child), nested dict, DataFrame, networkx graph, path or None
        The class graph, in any form that `Taxonomy` takes. Labels are its ids, of any level. None: every class hangs below one root.
    method : {"prior", "nearest"}
        "prior" uses the class graph; "nearest" is the nearest mean, for comparison.
    encoder : object, path or None
        Makes embeddings of samples: anything with `encode(list)`, such as a sentence-transformers model, a callable, or the path of an
        encoder that `gpn.Encoder` opens (an ONNX file for photos, the folder of a sentence encoder for texts). None: X are embeddings.
    text_encoder : object, path or None
        Makes embeddings of the names and descriptions of classes, likewise: classes whose texts are alike are expected near each
        other, beside what the class graph says. Classes that come later are known by their texts if the taxonomy has them.
    confidence : float or None
        What `predict` does unless it is told otherwise: None answers a class that was fitted; a number between 0 and 1 answers as deep in
        the class graph as it is sure.
    random_state : int
        Seed of all random choices. The same seed gives the same bits.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    prototypes_ : array of shape (n_classes, n_dimensions), float32
        Where each class is, in the space of distances; `in_space` takes samples there.
    taxonomy_ : Taxonomy
        The class graph, with one root.
    model_ : Model
        The model, to be saved as a file that the command line and the server take.
    report_ : dict
        What fitting has measured.
    n_features_in_ : int
        Numbers of an embedding.

    Examples
    --------
    >>> import numpy as np
    >>> from gpn import GraphFewShotClassifier
    >>> X = np.array([[0, 1], [0.2, 1], [1, 0], [1, 0.2], [3, 3], [3, 3.3]])
    >>> y = ["cat", "cat", "dog", "dog", "car", "car"]
    >>> taxonomy = {"thing": {"animal": ["cat", "dog"], "vehicle": ["car"]}}
    >>> model = GraphFewShotClassifier(taxonomy).fit(X, y)
    >>> model.predict([[0.1, 0.9], [3, 3.1]]).tolist()
    ['cat', 'car']
    >>> model.predict_path([[0.1, 0.9]]).tolist()
    [['thing', 'animal', 'cat']]
    >>> model.partial_fit([[0.1, 5]], ["truck"], parents={"truck": "vehicle"}).predict([[0.2, 4.9]]).tolist()
    ['truck']
    """

    def __init__(
        self,
        taxonomy: Any = None,
        *,
        method: str = "prior",
        encoder: Any = None,
        text_encoder: Any = None,
        confidence: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.taxonomy = taxonomy
        self.method = method
        self.encoder = encoder
        self.text_encoder = text_encoder
        self.confidence = confidence
        self.random_state = random_state

    # Fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GraphFewShotClassifier:
        """Fits to samples and their labels. The order of samples does not matter.

        `y` holds one label for each sample, of any level of the taxonomy, or, as HiClass has it, a row of labels from the root down; where
        there is no taxonomy, such rows are one. A sample of weight 3 counts as three samples; weights that are no whole numbers
        are rounded after they have been brought to a mean of 4.
        """
        samples = self._samples(X, reset=True)
        labels, taxonomy = self._labels(y, len(samples))
        if sample_weight is not None:
            samples, labels = _repeated(samples, labels, checked_weights(sample_weight, len(samples)))
        classes, numbers = np.unique(labels, return_inverse=True)
        numbers = numbers.ravel().astype(np.int64)
        names = _ids(classes)
        texts = None if self.text_encoder is None else self._texts(names, taxonomy)
        self.model_, self.report_, ids = _native.fit(
            samples, names, numbers, taxonomy, method=self.method, seed=int(self.random_state), texts=texts
        )
        self.classes_ = classes
        self._label_of = dict(zip(ids, classes))
        self._graph = taxonomy
        self._remember_answers()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, parents: Any = None) -> GraphFewShotClassifier:
        """Learns more samples, of classes that it has or of new ones, without forgetting. New classes may come at any time: with a place in
        the taxonomy, below `parents` (a dict of one or more parents by class), or with neither. A sample that a class has learned
        in this way counts once.

        `classes` is accepted as scikit-learn's convention wants it and not needed. The first call fits; the space of distances stays the one
        it finds, so give it several classes.
        """
        if not hasattr(self, "model_"):
            if classes is not None:
                _check_listed(np.asarray(y).ravel(), classes)
            return self.fit(X, y)
        samples = self._samples(X, reset=False)
        labels, rows = self._labels(y, len(samples))
        if classes is not None:
            _check_listed(labels, classes)
        known = {label: id_ for id_, label in self._label_of.items()}
        above = {str(label): parent for label, parent in (parents or {}).items()}
        new = list(dict.fromkeys(label for label in labels.tolist() if label not in known))
        place = {str(label): above.get(str(label), self._place(str(label), rows)) for label in new}
        given = {known.get(label, str(label)): samples[labels == label] for label in dict.fromkeys(labels.tolist())}
        taught = self.model_.teach_all(given, parents=place, if_taught="add", taxonomy=rows if self._graph is None else self._graph)
        self._label_of |= dict(zip(taught["id"].tolist(), dict.fromkeys(labels.tolist())))
        self.classes_ = np.unique(np.concatenate([self.classes_, labels]))
        self._remember_answers()
        return self

    # Answers

    def predict(self, X: Any, *, confidence: float | None = None) -> NDArray[Any]:
        """The class of each sample; with a `confidence`, the deepest class of the taxonomy whose probability reaches it."""
        sure = self.confidence if confidence is None else confidence
        samples = self._samples(X, reset=False)
        if sure is None:
            best: NDArray[Any] = self._answer_labels()[self.model_.best(samples)]
            return best
        _check_share("confidence", sure)
        found = self.model_.predict(samples, top=1, confidence=float(sure))
        return self._as_labels([str((one.sure or {})["id"]) for one in _each(found)])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class of `classes_`, which sum to 1."""
        samples = self._samples(X, reset=False)
        probabilities = self.model_.probabilities(samples)
        order = np.argsort(self._answer_labels(), kind="stable")
        # In rows: the order of memory is the order of sums.
        table = np.ascontiguousarray(probabilities[:, order], dtype=np.float64)
        table /= table.sum(axis=1, keepdims=True)
        return table

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict_path(self, X: Any, *, confidence: float | None = None) -> NDArray[Any]:
        """The classes from the root to the answer, one row for each sample; shorter rows end with empty texts."""
        taxonomy = self.taxonomy_
        ids = {label: id_ for id_, label in self._label_of.items()}
        paths = [taxonomy.path(ids.get(label, label)) for label in self.predict(X, confidence=confidence).tolist()]
        table = np.full((len(paths), max(map(len, paths), default=0)), "", dtype=object)
        for row, path in zip(table, paths):
            row[: len(path)] = path
        return table

    def predict_set(self, X: Any, confidence: float = 0.9) -> list[NDArray[Any]]:
        """For each sample the fewest classes whose probabilities sum to `confidence`, the likeliest first."""
        _check_share("confidence", confidence)
        sets = []
        for row in self.predict_proba(X):
            order = np.argsort(-row, kind="stable")
            enough = int(np.searchsorted(np.cumsum(row[order]), confidence - 1e-12)) + 1
            sets.append(self.classes_[order[:enough]])
        return sets

    def unknown_score(self, X: Any) -> NDArray[np.float64]:
        """How little each sample looks like any of the classes; more is stranger. Only the order of scores has a meaning."""
        return np.array([one["score"] for one in self._strange(X)], dtype=float)

    def is_unknown(self, X: Any) -> NDArray[np.bool_]:
        """Whether each sample is of none of the classes: stranger than 19 of 20 samples of known classes that fitting has held out."""
        return np.array([one["is_unknown"] for one in self._strange(X)], dtype=bool)

    def explain(self, X: Any, *, top: int = 5) -> _native.Prediction | _native.Predictions:
        """The likeliest classes, and what shaped the likeliest: for one sample a `Prediction`, for several `Predictions`."""
        one = isinstance(X, str) or (self.encoder is None and np.ndim(X) == 1)
        samples = self._samples([X] if one else X, reset=False)
        found = self.model_.predict(samples, top=top, explain=True)
        return found[0] if one else found

    def in_space(self, X: Any) -> NDArray[np.float32]:
        """Samples in the space in which `prototypes_` lie and distances are taken."""
        samples = self._samples(X, reset=False)
        return self.model_.transform(samples)

    @property
    def prototypes_(self) -> NDArray[np.float32]:
        """Where each class of `classes_` is, in the space that `in_space` takes samples to."""
        self._check_fitted()
        ids, prototypes = self.model_.prototypes()
        labels = np.array([self._label_of[id_] for id_ in ids], dtype=self.classes_.dtype)
        return prototypes[np.argsort(labels, kind="stable")]

    @property
    def taxonomy_(self) -> _native.Taxonomy:
        """The class graph, with one root and all classes that were learned."""
        self._check_fitted()
        return self.model_.taxonomy

    # What stands behind

    def _remember_answers(self) -> None:
        self._revision = self.model_.revision
        self._answers = self._current_answers()

    def _answer_labels(self) -> NDArray[Any]:
        """The label of each answer of the model, in its order."""
        # The model may have been changed by itself since.
        return self._answers if self._revision == self.model_.revision else self._current_answers()

    def _current_answers(self) -> NDArray[Any]:
        labels = [self._label_of.get(id_, id_) for id_ in self.model_.answers]
        return np.array(labels, dtype=self.classes_.dtype if all(id_ in self._label_of for id_ in self.model_.answers) else None)

    def _strange(self, X: Any) -> list[dict[str, Any]]:
        samples = self._samples(X, reset=False)
        found = self.model_.predict(samples, top=1)
        return [one.unknown or {} for one in _each(found)]

    def _place(self, id_: str, rows: _native.Taxonomy | None) -> Any:
        """Where a new class stands: None where the taxonomy says it."""
        taxonomy = rows if self._graph is None else self._graph
        if taxonomy is None:
            return self.taxonomy_.roots[0]
        return None if id_ in taxonomy or id_ in self.taxonomy_ else "unknown"

    def _as_labels(self, ids: list[str]) -> NDArray[Any]:
        """Ids of the taxonomy as labels: of the type of the labels where all of them are labels."""
        labels = [self._label_of.get(id_, id_) for id_ in ids]
        if all(id_ in self._label_of for id_ in ids):
            return np.array(labels, dtype=self.classes_.dtype)
        return np.array([str(label) for label in labels])

    def _samples(self, X: Any, *, reset: bool) -> NDArray[np.float32]:
        if not reset:
            self._check_fitted()
        return checked_samples(self, X if self.encoder is None else encoded(self._opened(self.encoder), X), reset=reset)

    def _opened(self, encoder: Any) -> Any:
        """An encoder; one that is given by its path is opened once."""
        if not isinstance(encoder, (str, os.PathLike)):
            return encoder
        opened: dict[str, _native.Encoder] = self.__dict__.setdefault("_encoders", {})
        path = os.fspath(encoder)
        if path not in opened:
            opened[path] = _native.Encoder(path)
        return opened[path]

    def _texts(self, classes: list[str], taxonomy: _native.Taxonomy | None) -> tuple[list[str], NDArray[np.float32]]:
        """Ids of classes and the embeddings of what is said about them."""
        if taxonomy is None:
            ids = [name.strip() for name in classes]
            said = ids
        else:
            # Of a much larger graph, such as WordNet, only what the samples are of.
            small = len(taxonomy) <= _TEXTS_FOR_EACH * len(classes)
            ids = taxonomy.ids if small else [name for name in classes if name in taxonomy]
            said = [_said(taxonomy, id_) for id_ in ids]
        return ids, encoded(self._opened(self.text_encoder), said, "text_encoder")

    def _labels(self, y: Any, samples: int) -> tuple[NDArray[Any], _native.Taxonomy | None]:
        """One label for each sample, and the taxonomy they are in."""
        taxonomy = self.taxonomy
        if taxonomy is not None and not isinstance(taxonomy, _native.Taxonomy):
            taxonomy = _native.Taxonomy(taxonomy)
        rows = y if getattr(y, "ndim", 1) == 2 else _rows(y)
        if rows is None or (hasattr(rows, "shape") and rows.shape[1] == 1):
            return checked_labels(y, samples), taxonomy
        labels, edges = _deepest(np.asarray(rows, dtype=object))
        if taxonomy is None:
            taxonomy = _native.Taxonomy(edges) if edges else None
        return checked_labels(labels, samples), taxonomy

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFitted(f"This {type(self).__name__} instance is not fitted yet; call `fit` with samples and labels first")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = self.encoder is not None
        return tags


def encoded(encoder: Any, X: Any, parameter: str = "encoder") -> NDArray[np.float32]:
    """Embeddings of samples, by `encode` or by a call."""
    encode = getattr(encoder, "encode", None) or encoder
    if not callable(encode):
        raise InputError(f"{parameter}: {type(encoder).__name__} has no `encode` and cannot be called")
    if hasattr(X, "tolist"):
        X = X.tolist()
    found = encode(X if isinstance(X, list) else list(X))
    if hasattr(found, "detach"):
        found = found.detach().cpu().numpy()
    return np.asarray(found, dtype=np.float32)


def _said(taxonomy: _native.Taxonomy, id_: str) -> str:
    """Name and description of a class."""
    name, description = taxonomy.name(id_), taxonomy.description(id_)
    return f"{name}: {description}" if description else name


def _ids(labels: Iterable[Any]) -> list[str]:
    return [str(label) for label in labels]


def _check_share(name: str, value: float) -> None:
    if not 0 < value <= 1:
        raise InputError(f"{name}: {value} is not above 0 and at most 1")


def _check_listed(labels: NDArray[Any], classes: Any) -> None:
    unknown = sorted(set(labels.tolist()) - set(np.asarray(classes).tolist()), key=str)
    if unknown:
        raise InputError(f"y holds {unknown[0]!r}, which is not among the `classes` given")


def _repeated(samples: NDArray[Any], labels: NDArray[Any], weights: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Samples as often as their weight says."""
    if not np.equal(np.mod(weights, 1), 0).all():
        weights = weights * (_REPETITIONS / weights[weights > 0].mean())
    elif weights.sum() > _MOST_REPETITIONS * len(weights):
        weights = weights * (_MOST_REPETITIONS / weights.mean())
    counts = np.where(weights > 0, np.maximum(np.rint(weights), 1), 0).astype(int)
    return np.repeat(samples, counts, axis=0), np.repeat(labels, counts)


def _each(found: _native.Predictions) -> Iterable[_native.Prediction]:
    return (found[at] for at in range(len(found)))


def _rows(y: Any) -> Any:
    """Rows of labels, where `y` is a list of lists."""
    if isinstance(y, (list, tuple)) and y and isinstance(y[0], (list, tuple)):
        longest = max(map(len, y))
        table = np.full((len(y), longest), "", dtype=object)
        for at, row in enumerate(y):
            table[at, : len(row)] = row
        return table
    return None


def _deepest(rows: NDArray[Any]) -> tuple[list[Any], list[tuple[str, str]]]:
    """The deepest label of each row, and the edges that the rows say."""
    labels: list[Any] = []
    edges: dict[tuple[str, str], None] = {}
    for number, row in enumerate(rows):
        path = [cell for cell in row if not (cell is None or cell == "" or cell != cell)]
        if not path:
            raise InputError(f"y: row {number} has no label")
        labels.append(path[-1])
        for parent, child in zip(path, path[1:]):
            if str(parent) != str(child):
                edges[str(parent), str(child)] = None
        if len(path) == 1:
            edges.setdefault(("root", str(path[0])), None)
    return labels, list(edges)
