"""Tables: dicts of NumPy arrays, one for each column, which pandas and polars take as they are."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = dict[str, NDArray[Any]]


def of_records(records: Iterable[Mapping[str, Any]]) -> Table:
    """A table of dicts; nested ones become columns `outer.inner`, what is missing becomes NaN or None."""
    rows = [_flat(record) for record in records]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: _column([row.get(name) for row in rows]) for name in names}


def of_csv(path: Path) -> Table:
    """A table of a CSV file with a header."""
    with path.open(newline="", encoding="utf-8") as file:
        return of_records(csv.DictReader(file))


def _flat(record: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{before}{name}."))
        else:
            flat[before + name] = value
    return flat


def _column(values: list[Any]) -> NDArray[Any]:
    if all(isinstance(value, (int, float)) or value is None for value in values):
        if all(isinstance(value, int) for value in values):
            return np.array(values)
        return np.array([np.nan if value is None else value for value in values], dtype=float)
    if all(isinstance(value, str) or value is None for value in values):
        numbers = [_number(value) for value in values]
        if any(value for value in values) and all(number is not None for number in numbers):
            return np.array(numbers, dtype=float)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _number(text: str | None) -> float | None:
    if not text:
        return float("nan")
    try:
        return float(text)
    except ValueError:
        return None
