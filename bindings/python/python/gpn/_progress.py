"""A bar for long work, where tqdm is installed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]
Callback = Callable[[Event], object]


def with_bar(callback: Callback | None) -> Callback:
    """Shows a bar for every event with numbers, then calls `callback`."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        logging.getLogger("gpn").info("tqdm is not installed; there is no progress bar")
        return callback if callback is not None else _ignore
    bar: Any = None
    shown: str | None = None

    def tell(event: Event) -> object:
        nonlocal bar, shown
        total = event.get("total")
        if total:
            if bar is None or shown != event["event"]:
                if bar is not None:
                    bar.close()
                shown = str(event["event"])
                bar = tqdm(total=total, desc={"episode": "training", "stored": "storing samples"}.get(shown, shown))
            bar.update(event["done"] - bar.n)
            report = event.get("report")
            if report and report.get("tasks"):
                bar.set_postfix(loss=f"{report['tasks']['loss']:.3f}", accuracy=f"{report['tasks']['accuracy']:.1%}")
            if event["done"] >= total:
                bar.close()
                bar = None
        return callback(event) if callback is not None else None

    return tell


def _ignore(_event: Event) -> None:
    return None
