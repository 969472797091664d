"""A folder as Hugging Face has them."""

from __future__ import annotations

import json

import pytest

import gpn


def test_a_folder_is_written_and_read(run: gpn.Run, tmp_path) -> None:
    model = run.model()
    folder = gpn.hub.save(model, tmp_path / "hub", license="mit", tags=("made-up",))
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    assert json.loads((folder / "config.json").read_text())["library_name"] == "gpn"
    assert (folder / "README.md").read_text().startswith("---\nlibrary_name: gpn\nlicense: mit\ntags:\n- few-shot")
    assert gpn.hub.load(folder).to_bytes() == model.to_bytes()
    with pytest.raises(FileExistsError):
        gpn.hub.save(model, folder)
    gpn.hub.save(model, folder, replace=True, card="# Mine\n")
    assert (folder / "README.md").read_text().endswith("---\n# Mine\n")


def test_the_card_is_one_for_the_hub(run: gpn.Run, tmp_path) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    folder = gpn.hub.save(run.model(), tmp_path / "hub", license="mit")
    card = hub.ModelCard.load(folder / "README.md")
    assert card.data.library_name == "gpn" and card.data.license == "mit"
