"""scikit-learn's conventions where it is installed, and the least of them where it is not."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpn._errors import InputError

if TYPE_CHECKING:
    HAS_SKLEARN = True

    class Base:
        """What an estimator inherits."""

        n_features_in_: int

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Any: ...
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
        def __sklearn_tags__(self) -> Any: ...

    class NotFitted(ValueError, AttributeError):
        """The estimator has not been fitted."""

else:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin
        from sklearn.exceptions import NotFittedError as NotFitted

        HAS_SKLEARN = True

        class Base(ClassifierMixin, BaseEstimator):
            """What an estimator inherits."""

    except ImportError:
        HAS_SKLEARN = False

        class NotFitted(ValueError, AttributeError):
            """The estimator has not been fitted."""

        class Base:
            """The least that scikit-learn's users expect of an estimator."""

            def get_params(self, deep: bool = True) -> dict[str, Any]:
                names = list(inspect.signature(type(self).__init__).parameters)[1:]
                return {name: getattr(self, name) for name in names}

            def set_params(self, **params: Any) -> Any:
                known = self.get_params()
                for name, value in params.items():
                    if name not in known:
                        raise InputError(f"{type(self).__name__} has no parameter `{name}`; it has {', '.join(known)}")
                    setattr(self, name, value)
                return self

            def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
                right = np.asarray(self.predict(X)) == np.asarray(y)
                return float(np.average(right, weights=sample_weight))

            def __repr__(self) -> str:
                params = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
                return f"{type(self).__name__}({params})"


def checked_samples(estimator: Any, X: Any, *, reset: bool) -> NDArray[np.float32]:
    """Samples as an array of float32, checked as scikit-learn does."""
    X = _detached(X)
    if not reset and _is_ready(estimator, X):
        return X  # type: ignore[no-any-return]
    if HAS_SKLEARN:
        from sklearn.utils.validation import validate_data

        checked: NDArray[np.float32] = validate_data(estimator, X, reset=reset, dtype=np.float32, order="C")
        return checked
    array = np.ascontiguousarray(X, dtype=np.float32)
    if array.ndim != 2:
        raise InputError(f"X must be of shape (samples, features), not {array.shape}")
    if not np.isfinite(array).all():
        raise InputError("X contains NaN or infinity")
    if reset:
        estimator.n_features_in_ = array.shape[1]
    elif array.shape[1] != estimator.n_features_in_:
        raise InputError(f"X has {array.shape[1]} features, but {estimator.n_features_in_} were fitted")
    return array


def _is_ready(estimator: Any, X: Any) -> bool:
    """Whether nothing is left to check or to change. scikit-learn finds out the same, but holds up other threads for longer than a few
    samples take to answer."""
    if type(X) is not np.ndarray or X.dtype != np.float32 or X.ndim != 2 or not X.flags.c_contiguous:
        return False
    if not len(X) or X.shape[1] != estimator.n_features_in_ or hasattr(estimator, "feature_names_in_"):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        # NaN and infinity stay in a sum. One that is too large has every number looked at.
        return bool(np.isfinite(X.sum()))


def checked_labels(y: Any, samples: int) -> NDArray[Any]:
    """One label for each sample."""
    if y is None:
        raise InputError("This classifier requires y to be passed, but the target y is None")
    if HAS_SKLEARN:
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import check_consistent_length, column_or_1d

        labels: NDArray[Any] = column_or_1d(y, warn=True)
        if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels):
            labels = labels.astype(str)
        elif labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise InputError("Input y contains NaN or infinity.")
        check_classification_targets(labels)
        if len(labels) != samples:
            check_consistent_length(np.empty(samples), labels)
        return labels
    labels = np.asarray(y).ravel()
    if len(labels) != samples:
        raise InputError(f"there are {samples} samples but {len(labels)} labels")
    return labels


def checked_weights(sample_weight: Any, samples: int) -> NDArray[np.float64]:
    """One weight for each sample, none of them negative."""
    weights = np.asarray(sample_weight, dtype=float)
    if weights.ndim == 0:
        weights = np.full(samples, float(weights))
    if weights.shape != (samples,):
        raise InputError(f"sample_weight has the shape {weights.shape}; one weight for each of {samples} samples is expected")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError("sample_weight must be finite and not negative")
    if not (weights > 0).any():
        raise InputError("sample_weight is zero for every sample")
    return weights


def _detached(X: Any) -> Any:
    """A tensor of PyTorch as NumPy takes it."""
    if hasattr(X, "detach") and hasattr(X, "cpu"):
        return X.detach().cpu().numpy()
    return X
