"""The paper's tables, its ablation and its figures, each in one call.

Everything goes to one directory. What is there is not made again, so that an experiment that was stopped goes on with the same call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from gpn import _native
from gpn._tables import Table, of_csv

__all__ = ["Result", "ablation", "figures", "tables"]

_TABLES = ("close-random", "close-snowball", "far-random", "far-snowball")
Scale = Literal["quick", "standard", "paper"]
Callback = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Result:
    """What an experiment has made."""

    text: str
    """Tables as Markdown, or the paths of figures."""
    page: Path
    """The page with everything."""
    tables: dict[str, Table] = field(default_factory=dict)
    """Each table as a dict of arrays."""
    figures: list[Path] = field(default_factory=list)
    """The figures as SVG; PNG files stand beside them."""

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.text)}</pre>"


def tables(
    out: str | PathLike[str],
    *,
    data: str | PathLike[str] | None = None,
    scale: Scale = "quick",
    episodes: int | None = None,
    tasks: int | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    shapes: Sequence[str] = ("5w1s", "5w5s", "10w1s", "10w5s"),
    methods: Sequence[str] = (),
    callback: Callback | None = None,
    progress: bool = False,
) -> Result:
    """Trains and tests all methods on all kinds of tasks, and sets the results beside the published tables."""
    text, page = _native.experiment(
        "tables",
        out,
        data=data,
        scale=scale,
        episodes=episodes,
        tasks=tasks,
        seed=seed,
        settings=_assignments(settings),
        shapes=list(shapes),
        methods=list(methods),
        callback=callback,
        progress=progress,
    )
    return Result(text, page, {name: of_csv(Path(out) / f"{name}.csv") for name in _TABLES})


def ablation(
    out: str | PathLike[str],
    *,
    data: str | PathLike[str] | None = None,
    scale: Scale = "quick",
    episodes: int | None = None,
    tasks: int | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Result:
    """Changes the parts of GPN one by one, as in the published ablation table."""
    text, page = _native.experiment(
        "ablation",
        out,
        data=data,
        scale=scale,
        episodes=episodes,
        tasks=tasks,
        seed=seed,
        settings=_assignments(settings),
        callback=callback,
        progress=progress,
    )
    return Result(text, page, {"ablation": of_csv(Path(out) / "ablation.csv")})


def figures(
    out: str | PathLike[str],
    *,
    data: str | PathLike[str] | None = None,
    scale: Scale = "quick",
    episodes: int | None = None,
    tasks: int | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    run: str | PathLike[str] | None = None,
    subtree: str | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Result:
    """Draws prototypes, messages, accuracies by distance and learning curves of a trained GPN."""
    text, page = _native.experiment(
        "figures",
        out,
        data=data,
        scale=scale,
        episodes=episodes,
        tasks=tasks,
        seed=seed,
        settings=_assignments(settings),
        run=run,
        subtree=subtree,
        callback=callback,
        progress=progress,
    )
    return Result(text, page, figures=sorted(page.parent.glob("**/*.svg")))


def _assignments(settings: Mapping[str, Any] | None) -> list[str]:
    def word(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return [f"{name}={word(value)}" for name, value in (settings or {}).items()]
