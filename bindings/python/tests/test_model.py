"""A trained model: teach, forget, predict, explain, save; shared by threads."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

import gpn
from conftest import made_up


@pytest.fixture
def model(run: gpn.Run) -> gpn.Model:
    return gpn.Model.from_bytes(run.model().to_bytes())


@pytest.fixture(scope="session")
def fresh():
    """Samples that no one has seen, of the same classes."""
    X, y, _ = made_up(per_class=30)
    return X, y


def test_teach_predict_forget(model: gpn.Model, fresh) -> None:
    X, y = fresh
    taught = model.teach("new", X[:5], parents=["kind0"])
    assert taught["id"][0] == "new" and taught["samples"][0] == 5 and taught["place"][0] == {"below": ["kind0"]}
    assert list(model.classes("new")["kind"]) == ["taught"]
    predictions = model.predict(X[5:8], top=3)
    assert len(predictions) == 3 and list(predictions.table()) == ["file", "rank", "id", "name", "probability"]
    assert predictions[0].id == predictions.ids[0] and len(predictions[-1].classes["id"]) == 3
    only = model.predict(X[:2], taught=True)
    assert only.ids == ["new", "new"] and only[0].probability == 1.0
    with pytest.raises(IndexError):
        predictions[3]
    with pytest.raises(gpn.ConflictError, match="already taught with 5 samples"):
        model.teach("new", X[:5])
    assert model.teach("new", X[3:7], if_taught="add")["repeated"][0] == 2
    model.forget("new")
    with pytest.raises(gpn.ClassNotFoundError):
        model.forget("new")


def test_many_classes_are_taught_at_once(model: gpn.Model, fresh) -> None:
    X, _ = fresh
    table = model.teach_all({"a": X[:3], "b": X[40:42]}, parents={"a": "kind1"})
    assert list(table["samples"]) == [3, 2] and table["place"][1] == "nearest"
    with pytest.raises(gpn.InputError, match="no samples"):
        model.teach_all({"c": X[:1], "d": X[:0]})
    assert "c" not in set(model.classes()["id"])


def test_explanations(model: gpn.Model, fresh) -> None:
    X, _ = fresh
    prediction = model.explain(X[0])
    shares = prediction.shaped_by
    assert shares is not None and np.isclose(shares["share"].sum(), 1)
    assert "what shaped" in prediction._repr_html_()
    assert model.predict(X[0])[0].shaped_by is None
    with pytest.raises(gpn.InputError, match="one sample, not 2"):
        model.explain(X[:2])


def test_forms_of_embeddings(model: gpn.Model, fresh) -> None:
    X, _ = fresh
    expected = model.predict(X[:3]).table()["probability"]
    for same in [X[:3].astype(np.float64), X[:3].tolist(), np.asfortranarray(X[:3]), X[:6:1][:3], list(X[:3])]:
        assert (model.predict(same).table()["probability"] == expected).all()
    assert (model.predict(X[2::-1]).table()["probability"] == model.predict(X[2::-1].copy()).table()["probability"]).all()
    with pytest.raises(ValueError, match="has 3 numbers; this model takes 16"):
        model.predict(X[:2, :3])
    with pytest.raises(ValueError, match="column 2 is NaN"):
        model.predict(np.where(np.arange(16) == 2, np.nan, X[0]))
    with pytest.raises(ValueError, match="cannot be taken as numbers"):
        model.predict(np.array([["a", "b"]]))
    with pytest.raises(ValueError):
        model.predict([])


def test_choice_of_classes(model: gpn.Model, fresh) -> None:
    X, _ = fresh
    trained = [id for id, kind in zip(model.classes()["id"], model.classes()["kind"]) if kind == "training" and id.startswith("class")]
    assert set(model.predict(X[:50], among=trained[:2]).ids) <= set(trained[:2])
    with pytest.raises(ValueError, match="not several"):
        model.predict(X[:1], among=trained, taught=True)
    with pytest.raises(KeyError, match="did you mean"):
        model.predict(X[:1], among=[trained[0] + "x"])


def test_files(model: gpn.Model, tmp_path) -> None:
    path = tmp_path / "m.safetensors"
    model.save(path)
    assert gpn.Model.open(path).to_bytes() == model.to_bytes() == path.read_bytes()
    with pytest.raises(FileExistsError):
        model.save(path)
    model.save(path, replace=True)
    data = bytearray(path.read_bytes())
    data[-3] ^= 4
    path.write_bytes(data)
    with pytest.raises(gpn.DamagedFileError, match="m.safetensors"):
        gpn.Model.open(path)
    assert pickle.loads(pickle.dumps(model)).to_bytes() == model.to_bytes()


def test_prototypes_and_embeddings(model: gpn.Model, fresh) -> None:
    X, _ = fresh
    ids, prototypes = model.prototypes()
    embeddings = model.embed(X[:10])
    assert prototypes.dtype == np.float32 and prototypes.shape == (len(ids), embeddings.shape[1])
    nearest = ((embeddings[:, None] - prototypes[None]) ** 2).sum(-1).argmin(1)
    assert [ids[i] for i in nearest] == model.predict(X[:10]).ids


def test_threads_share_a_model(model: gpn.Model, fresh) -> None:
    X, _ = fresh
    expected = model.predict(X[:64]).table()["probability"]
    wrong: list[int] = []

    def ask(number: int) -> None:
        for _ in range(20):
            if not (model.predict(X[:64]).table()["probability"] == expected).all():
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_images(tmp_path) -> None:
    bench = gpn.Benchmark.build("synthetic", tmp_path / "bench", size=32, images_per_leaf=2)
    settings = {"validation.tasks": 0, "task.queries": 2, "train.auxiliary_batch": 8, "model.image_size": 32}
    run = gpn.Run.start(tmp_path / "run", bench, settings=settings, episodes=2)
    assert run.train()
    model = run.model()
    assert model.input == {"kind": "image", "size": 32}
    pixels = np.random.default_rng(0).integers(0, 255, (3, 20, 20, 3), dtype=np.uint8)
    expected = model.predict(pixels).table()["probability"]
    image = pytest.importorskip("PIL.Image")
    pictures = [image.fromarray(picture) for picture in pixels]
    assert (model.predict(pictures).table()["probability"] == expected).all()
    for number, picture in enumerate(pictures):
        picture.save(tmp_path / f"{number}.png")
    files = [tmp_path / f"{number}.png" for number in range(3)]
    assert (model.predict(files).table()["probability"] == expected).all()
    assert (model.predict([path.read_bytes() for path in files]).table()["probability"] == expected).all()
    with pytest.raises(ValueError, match="it is an embedding; this model takes images"):
        model.predict(np.zeros((1, 3), dtype=np.float32))
