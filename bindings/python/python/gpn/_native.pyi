from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

__all__ = [
    "Benchmark",
    "Encoder",
    "Evaluation",
    "Model",
    "Prediction",
    "Predictions",
    "Run",
    "Taxonomy",
    "__version__",
    "auroc",
    "evaluate",
    "experiment",
    "false_positive_rate",
    "fit",
    "measures",
    "settings",
    "wilson",
]

__version__: str

_Path = str | PathLike[str]
_Table = dict[str, NDArray[Any]]
_Callback = Callable[[dict[str, Any]], object]
_Split = Literal["close", "far"]
_Sampling = Literal["random", "snowball"]
_Hierarchy = Literal["known", "unknown"]

@final
class Taxonomy:
    def __new__(cls, source: object) -> Self: ...
    @property
    def ids(self) -> list[str]: ...
    @property
    def edges(self) -> list[tuple[str, str]]: ...
    @property
    def roots(self) -> list[str]: ...
    @property
    def leaves(self) -> list[str]: ...
    @property
    def warnings(self) -> list[str]: ...
    def name(self, class_: object) -> str: ...
    def description(self, class_: object) -> str | None: ...
    def parents(self, class_: object) -> list[str]: ...
    def children(self, class_: object) -> list[str]: ...
    def neighbours(self, class_: object, hops: int = 1) -> list[str]: ...
    def ancestors(self, class_: object) -> list[str]: ...
    def descendants(self, class_: object) -> list[str]: ...
    def leaves_below(self, class_: object) -> list[str]: ...
    def path(self, class_: object) -> list[str]: ...
    def distance(self, a: object, b: object) -> int | None: ...
    def distances(self, classes: object) -> NDArray[np.int64]: ...
    def subgraph(self, classes: Iterable[object]) -> Taxonomy: ...
    def table(self) -> _Table: ...
    def to_dot(self) -> str: ...
    def to_networkx(self) -> Any: ...
    def save(self, path: _Path, *, replace: bool = False) -> None: ...
    def __len__(self) -> int: ...
    def __contains__(self, class_: object, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @classmethod
    def _from_parts(cls, parts: tuple[Any, ...]) -> Self: ...
    def _repr_html_(self) -> str: ...

@final
class Benchmark:
    @classmethod
    def open(cls, folder: _Path, *, check: Literal["sampled", "all", "nothing"] = "sampled") -> Self: ...
    @classmethod
    def build(
        cls,
        source: str,
        out: _Path,
        *,
        taxonomy: str | None = None,
        seed: int | None = None,
        size: int | None = None,
        images_per_leaf: int | None = None,
        train_share: float | None = None,
        val_share: float | None = None,
        min_distance: int | None = None,
        close: tuple[int, int] | None = None,
        far: tuple[int, int] | None = None,
        collapse_chains: bool = False,
        classes_only: bool = False,
        strict: bool = False,
        replace: bool = False,
        callback: _Callback | None = None,
        progress: bool = False,
    ) -> Self: ...
    @classmethod
    def from_arrays(
        cls,
        X: object,
        y: Iterable[object],
        taxonomy: object,
        *,
        seed: int = 0,
        size: int | None = None,
        images_per_leaf: int | None = None,
        train_share: float | None = None,
        val_share: float | None = None,
        min_distance: int | None = None,
        close: tuple[int, int] | None = None,
        far: tuple[int, int] | None = None,
    ) -> Self: ...
    @property
    def folder(self) -> Path | None: ...
    @property
    def taxonomy(self) -> Taxonomy: ...
    @property
    def manifest(self) -> dict[str, Any]: ...
    def classes(self) -> _Table: ...
    def info(self) -> _Table: ...

@final
class Encoder:
    def __new__(cls, path: _Path, *, cache: _Path | None = None, settings: dict[str, Any] | None = None) -> Self: ...
    def encode(
        self, samples: object, *, callback: _Callback | None = None, progress: bool = False
    ) -> NDArray[np.float32]: ...
    @property
    def dim(self) -> int: ...
    @property
    def takes_images(self) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @staticmethod
    def _open(path: _Path, cache: _Path | None, settings: dict[str, Any]) -> Encoder: ...

@final
class Evaluation:
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def tasks(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def base(self) -> tuple[float, float]: ...
    @property
    def method(self) -> tuple[float, float]: ...
    @property
    def mixed(self) -> tuple[float, float]: ...
    @property
    def gain(self) -> tuple[float, float]: ...
    @property
    def lambda_(self) -> float: ...
    @property
    def calibration_error(self) -> float | None: ...
    def table(self) -> _Table: ...
    def per_task(self) -> _Table: ...
    def to_dict(self) -> dict[str, Any]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @staticmethod
    def _from_dict(fields: dict[str, Any]) -> Evaluation: ...
    def _repr_html_(self) -> str: ...

@final
class Prediction:
    @property
    def file(self) -> str: ...
    @property
    def id(self) -> str | None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def probability(self) -> float | None: ...
    @property
    def path(self) -> list[str]: ...
    @property
    def sure(self) -> dict[str, Any] | None: ...
    @property
    def unknown(self) -> dict[str, Any] | None: ...
    @property
    def classes(self) -> _Table: ...
    @property
    def shaped_by(self) -> _Table | None: ...
    def to_dict(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str: ...

@final
class Predictions:
    @property
    def ids(self) -> list[str | None]: ...
    def table(self) -> _Table: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Prediction: ...
    def _repr_html_(self) -> str: ...

@final
class Model:
    @classmethod
    def open(cls, path: _Path, *, device: str = "cpu") -> Self: ...
    @classmethod
    def from_bytes(cls, data: bytes, *, name: str = "the model", device: str = "cpu") -> Self: ...
    def to_bytes(self) -> bytes: ...
    def save(self, path: _Path, *, replace: bool = False) -> None: ...
    def teach(
        self,
        class_: object,
        samples: object,
        *,
        parents: object = None,
        if_taught: Literal["refuse", "add", "replace"] = "refuse",
        taxonomy: Taxonomy | None = None,
    ) -> _Table: ...
    def teach_all(
        self,
        classes: Mapping[Any, object],
        *,
        parents: Mapping[Any, object] | None = None,
        if_taught: Literal["refuse", "add", "replace"] = "refuse",
        taxonomy: Taxonomy | None = None,
    ) -> _Table: ...
    def forget(self, class_: object) -> None: ...
    def move(self, class_: object, parents: object) -> None: ...
    def rename(self, class_: object, name: str) -> None: ...
    def predict(
        self,
        samples: object,
        *,
        among: Iterable[object] | None = None,
        below: object | None = None,
        taught: bool = False,
        top: int = 5,
        confidence: float | None = None,
        explain: bool = False,
        lambda_: float | None = None,
    ) -> Predictions: ...
    def explain(
        self,
        sample: object,
        *,
        among: Iterable[object] | None = None,
        below: object | None = None,
        taught: bool = False,
        top: int = 5,
        lambda_: float | None = None,
    ) -> Prediction: ...
    @property
    def answers(self) -> list[str]: ...
    def probabilities(self, samples: object) -> NDArray[np.float32]: ...
    def best(self, samples: object) -> NDArray[np.uint32]: ...
    def transform(self, samples: object) -> NDArray[np.float32]: ...
    def embed(self, samples: object) -> NDArray[np.float32]: ...
    def prototypes(
        self,
        *,
        among: Iterable[object] | None = None,
        below: object | None = None,
        taught: bool = False,
        lambda_: float | None = None,
    ) -> tuple[NDArray[Any], NDArray[np.float32]]: ...
    def classes(self, query: str | None = None) -> _Table: ...
    @property
    def taxonomy(self) -> Taxonomy: ...
    @property
    def is_fitted(self) -> bool: ...
    @property
    def revision(self) -> int: ...
    @property
    def input(self) -> dict[str, Any]: ...
    @property
    def info(self) -> dict[str, Any]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> Model: ...

@final
class Run:
    @classmethod
    def start(
        cls,
        folder: _Path,
        benchmark: Benchmark,
        *,
        method: str | None = None,
        preset: str = "default",
        settings: dict[str, Any] | None = None,
        episodes: int | None = None,
        init: _Path | None = None,
        replace: bool = False,
        device: str = "cpu",
    ) -> Self: ...
    @classmethod
    def resume(
        cls,
        folder: _Path,
        *,
        benchmark: Benchmark | None = None,
        episodes: int | None = None,
        device: str = "cpu",
    ) -> Self: ...
    def train(self, callback: _Callback | None = None, *, progress: bool = False) -> bool: ...
    def extend(self, episodes: int) -> None: ...
    def evaluate(
        self,
        *,
        split: _Split = "close",
        sampling: _Sampling = "random",
        hierarchy: _Hierarchy = "known",
        way: int = 5,
        shot: int = 1,
        queries: int = 15,
        rest: int = 0,
        tasks: int = 600,
        seed: int = 0,
        tasks_file: _Path | None = None,
        lambda_: float | None = None,
        method: str | None = None,
        names: _Path | None = None,
    ) -> Evaluation: ...
    def model(self) -> Model: ...
    def metrics(self) -> _Table: ...
    @property
    def folder(self) -> Path: ...
    @property
    def done(self) -> int: ...
    @property
    def episodes(self) -> int: ...

def evaluate(
    model: Model | _Path,
    benchmark: Benchmark,
    *,
    split: _Split = "close",
    sampling: _Sampling = "random",
    hierarchy: _Hierarchy = "known",
    way: int = 5,
    shot: int = 1,
    queries: int = 15,
    rest: int = 0,
    tasks: int = 600,
    seed: int = 0,
    tasks_file: _Path | None = None,
    lambda_: float | None = None,
    method: str | None = None,
    names: _Path | None = None,
    device: str = "cpu",
) -> Evaluation: ...
def settings(preset: str = "default") -> dict[str, Any]: ...
def experiment(
    what: str,
    out: _Path,
    *,
    data: _Path | None = None,
    scale: str = "quick",
    episodes: int | None = None,
    tasks: int | None = None,
    seed: int = 0,
    settings: list[str] = ...,
    shapes: list[str] = ...,
    methods: list[str] = ...,
    run: _Path | None = None,
    subtree: str | None = None,
    callback: _Callback | None = None,
    progress: bool = False,
) -> tuple[str, Path]: ...
def fit(
    samples: object,
    classes: list[str],
    labels: NDArray[np.int64],
    taxonomy: Taxonomy | None = None,
    *,
    method: str = "prior",
    seed: int = 0,
    callback: _Callback | None = None,
    progress: bool = False,
) -> tuple[Model, dict[str, Any], list[str]]: ...
def measures(
    taxonomy: Taxonomy,
    truths: list[Any],
    ranked: list[list[tuple[Any, float]]],
    *,
    truth_probabilities: list[float] | None = None,
    unknown_scores: list[float] | None = None,
    scores_of_unknown: list[float] | None = None,
) -> dict[str, Any]: ...
def wilson(right: int, samples: int) -> tuple[float, float]: ...
def auroc(known_scores: Iterable[float], unknown_scores: Iterable[float]) -> float | None: ...
def false_positive_rate(known_scores: Iterable[float], unknown_scores: Iterable[float], recall: float = 0.95) -> float | None: ...
