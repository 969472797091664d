"""Folders as Hugging Face has them: `model.safetensors`, `config.json` and a card, written and read."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

from gpn import _native
from gpn._errors import ConflictError, NotFoundError

__all__ = ["load", "save"]

_MODEL, _CONFIG, _CARD = "model.safetensors", "config.json", "README.md"


def save(
    model: _native.Model,
    folder: str | PathLike[str],
    *,
    card: str | None = None,
    license: str | None = None,
    tags: tuple[str, ...] = (),
    replace: bool = False,
) -> Path:
    """Writes a model into a folder that can be pushed to a hub as it is. `card` is text for its README; by default it says what the model
    knows."""
    target = Path(folder)
    found = [name for name in (_MODEL, _CONFIG, _CARD) if (target / name).exists()]
    if found and not replace:
        raise ConflictError(f"{target / found[0]}: it exists already")
    target.mkdir(parents=True, exist_ok=True)
    model.save(target / _MODEL, replace=replace)
    config = {"library_name": "gpn", "gpn_version": _native.__version__, "input": model.input, **model.info}
    (target / _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    front = ["---", "library_name: gpn"]
    front += [f"license: {license}"] if license else []
    front += ["tags:", *(f"- {tag}" for tag in ("few-shot", "taxonomy", *tags)), "---", ""]
    (target / _CARD).write_text("\n".join(front) + (card if card is not None else _about(model)), encoding="utf-8")
    return target


def load(source: str | PathLike[str], *, device: str = "cpu") -> _native.Model:
    """Reads a model from such a folder, or, where there is none, from the repository of that name on the Hugging Face hub
    (with `huggingface_hub`)."""
    folder = Path(source)
    if not folder.is_dir():
        try:
            from huggingface_hub import snapshot_download
        except ImportError:
            raise NotFoundError(f"{folder}: there is no such folder, and huggingface_hub is not installed") from None
        folder = Path(snapshot_download(str(source), allow_patterns=[_MODEL, _CONFIG, _CARD]))
    return _native.Model.open(folder / _MODEL, device=device)


def _about(model: _native.Model) -> str:
    classes = model.classes()
    count = {kind: int((classes["kind"] == kind).sum()) for kind in ("training", "taught")}
    what = model.input
    takes = f"embeddings of {what['len']} numbers" if what["kind"] == "embedding" else f"images of {what['size']} x {what['size']} pixels"
    return (
        "# A few-shot classifier\n\n"
        f"It knows {count['training']} trained and {count['taught']} taught classes and takes {takes}.\n\n"
        "```python\nimport gpn\n\nmodel = gpn.hub.load(\"FOLDER\")\nmodel.predict(samples)\n```\n"
    )
