"""Weights to and from a ResNet-08 of PyTorch; embeddings as tensors."""

from __future__ import annotations

import numpy as np
import pytest

import gpn

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
load_file = pytest.importorskip("safetensors.torch").load_file
save_file = pytest.importorskip("safetensors.torch").save_file

SETTINGS = {"validation.tasks": 0, "task.queries": 2, "train.auxiliary_batch": 8, "model.image_size": 32}


@pytest.fixture(scope="module")
def images(tmp_path_factory) -> gpn.Benchmark:
    return gpn.Benchmark.build("synthetic", tmp_path_factory.mktemp("data") / "bench", size=32, images_per_leaf=2)


def test_weights_of_gpn_run_in_pytorch(images, tmp_path) -> None:
    from resnet08 import ResNet08

    run = gpn.Run.start(tmp_path / "run", images, settings=SETTINGS, episodes=5)
    assert run.train()
    state = load_file(tmp_path / "run" / "model.safetensors")
    weights = {name.removeprefix("emb."): value for name, value in state.items() if name.startswith("emb.") and "classifier" not in name}
    network = ResNet08().eval()
    missing, unexpected = network.load_state_dict(weights, strict=False)
    assert unexpected == [] and all(name.endswith("num_batches_tracked") for name in missing)

    # Images of one colour stay what they are, however they are resized.
    colours = np.array([[200, 30, 60], [0, 0, 0], [255, 255, 255], [10, 200, 100]], dtype=np.uint8)
    pixels = np.broadcast_to(colours[:, None, None], (4, 40, 40, 3)).copy()
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    inputs = ((torch.tensor(colours) / 255 - mean) / std)[:, :, None, None].expand(4, 3, 32, 32)
    with torch.inference_mode():
        theirs = network(inputs).numpy()
    np.testing.assert_allclose(run.model().embed(pixels), theirs, rtol=1e-4, atol=1e-4)


def test_weights_of_pytorch_start_a_run(images, tmp_path) -> None:
    from resnet08 import ResNet08

    torch.manual_seed(0)
    network = ResNet08()
    save_file(network.state_dict(), tmp_path / "weights.safetensors")
    # So slow that a float32 does not notice.
    slow = SETTINGS | {"rate.initial": 1e-12}
    run = gpn.Run.start(tmp_path / "run", images, settings=slow, episodes=1, init=tmp_path / "weights.safetensors")
    assert run.train()
    state = load_file(tmp_path / "run" / "model.safetensors")
    for name, value in network.state_dict().items():
        if "conv" in name:
            torch.testing.assert_close(state[f"emb.{name}"], value, rtol=0, atol=1e-9)


def test_tensors_are_embeddings(run: gpn.Run, data) -> None:
    X, _, _ = data
    model = run.model()
    expected = model.predict(X[:5]).table()["probability"]
    for tensor in [torch.tensor(X[:5]), torch.tensor(X[:5], requires_grad=True), torch.tensor(X[:5]).double()]:
        assert (model.predict(tensor).table()["probability"] == expected).all()
