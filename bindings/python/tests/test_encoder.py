"""Frozen encoders that run without Python: an ONNX file for photos, made here where `onnx` is installed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gpn


@pytest.fixture(scope="module")
def means(tmp_path_factory):
    """A network that gives the mean of each colour."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("GlobalAveragePool", ["x"], ["pooled"]), helper.make_node("Flatten", ["pooled"], ["y"])],
        "means",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = tmp_path_factory.mktemp("encoder") / "means.onnx"
    onnx.save(model, path)
    return path


SETTINGS = {"mean": [0, 0, 0], "std": [1, 1, 1], "range": "0..255", "size": 8}


def test_photos_are_encoded(means, tmp_path) -> None:
    image = pytest.importorskip("PIL.Image")
    encoder = gpn.Encoder(means, settings=SETTINGS, cache=tmp_path / "cache")
    assert (encoder.dim, encoder.takes_images) == (3, True)
    colours = np.array([[200, 30, 60], [0, 0, 255]], dtype=np.uint8)
    pixels = np.broadcast_to(colours[:, None, None], (2, 20, 20, 3)).copy()
    expected = colours.astype(np.float32)
    np.testing.assert_allclose(encoder.encode(pixels), expected, atol=1e-3)
    pictures = [image.fromarray(picture) for picture in pixels]
    pictures[0].save(tmp_path / "0.png")
    np.testing.assert_allclose(encoder.encode(pictures), expected, atol=1e-3)
    np.testing.assert_allclose(encoder.encode([tmp_path / "0.png"]), expected[:1], atol=1e-3)
    np.testing.assert_allclose(encoder.encode(str(tmp_path / "0.png")), expected[:1], atol=1e-3)
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.encode([(tmp_path / "0.png").read_bytes()]), encoder.encode(tmp_path / "0.png"))
    with pytest.raises(FileNotFoundError):
        encoder.encode(tmp_path / "missing.png")


def test_an_encoder_goes_into_the_estimator(means) -> None:
    pytest.importorskip("sklearn")
    random = np.random.default_rng(0)
    red, blue = (np.clip(random.normal(mean, 20, (6, 8, 8, 3)), 0, 255).astype(np.uint8) for mean in ([200, 40, 40], [40, 40, 200]))
    model = gpn.GraphFewShotClassifier(encoder=gpn.Encoder(means, settings=SETTINGS))
    photos = [*red, *blue]
    # By its path: settings lie beside it.
    lines = ["mean = [0, 0, 0]", "std = [1, 1, 1]", 'range = "0..255"', "size = 8"]
    means.with_suffix(".toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    by_path = gpn.GraphFewShotClassifier(encoder=means).fit(photos, ["red"] * 6 + ["blue"] * 6)
    assert pickle.loads(pickle.dumps(by_path)).predict(photos).tolist() == ["red"] * 6 + ["blue"] * 6
    assert model.fit(photos, ["red"] * 6 + ["blue"] * 6).predict(photos).tolist() == ["red"] * 6 + ["blue"] * 6


def test_faults(tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        gpn.Encoder(tmp_path / "missing.onnx")
    with pytest.raises(ValueError, match="unknown field siz"):
        gpn.Encoder(tmp_path / "missing.onnx", settings={"siz": 3})
