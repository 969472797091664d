"""Few-shot classification that knows how classes are related.

`GraphFewShotClassifier` is an estimator as scikit-learn knows them. `Taxonomy` is the class graph, `Benchmark`, `Run` and `Model` are the
steps of training a network of one's own, `metrics` measures answers along the graph, and `experiment` makes the paper's tables.

Nothing is printed: warnings go to the logger `gpn`, progress to a callback or, on demand, to tqdm. A failure is an exception by its
kind: `InputError` is a `ValueError`, `NotFoundError` a `FileNotFoundError`, `ConflictError` a `FileExistsError`.
"""

from __future__ import annotations

import logging

from gpn import experiment, hub, metrics
from gpn._errors import (
    BugError,
    ClassNotFoundError,
    ConflictError,
    DamagedFileError,
    GpnError,
    InputError,
    NoRoomError,
    NotFoundError,
    Stopped,
)
from gpn._estimator import GraphFewShotClassifier
from gpn._native import (
    Benchmark,
    Encoder,
    Evaluation,
    Model,
    Prediction,
    Predictions,
    Run,
    Taxonomy,
    __version__,
    evaluate,
    settings,
)

logging.getLogger("gpn").addHandler(logging.NullHandler())

__all__ = [
    "Benchmark",
    "BugError",
    "ClassNotFoundError",
    "ConflictError",
    "DamagedFileError",
    "Encoder",
    "Evaluation",
    "GpnError",
    "GraphFewShotClassifier",
    "InputError",
    "Model",
    "NoRoomError",
    "NotFoundError",
    "Prediction",
    "Predictions",
    "Run",
    "Stopped",
    "Taxonomy",
    "__version__",
    "evaluate",
    "experiment",
    "hub",
    "metrics",
    "settings",
]
