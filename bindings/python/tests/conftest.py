"""What several tests need: made-up embeddings with a class graph, and a small trained run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpn


def made_up(per_class: int = 20, dim: int = 16, seed: int = 0):
    """Embeddings of 4 kinds with 5 classes each: classes of a kind lie near each other."""
    random = np.random.default_rng(seed)
    edges, rows, labels = [], [], []
    for kind in range(4):
        edges.append(("thing", f"kind{kind}"))
        centre = 3 * random.normal(size=dim)
        for leaf in range(5):
            name = f"class{kind}{leaf}"
            edges.append((f"kind{kind}", name))
            mean = centre + random.normal(size=dim)
            rows.append(mean + 0.4 * random.normal(size=(per_class, dim)))
            labels += [name] * per_class
    return np.concatenate(rows).astype(np.float32), np.array(labels), gpn.Taxonomy(edges)


@pytest.fixture(scope="session")
def data():
    return made_up()


@pytest.fixture(scope="session")
def benchmark(data):
    X, y, taxonomy = data
    return gpn.Benchmark.from_arrays(X, y, taxonomy, images_per_leaf=6, train_share=0.7, min_distance=1, close=(1, 3), far=(4, 10))


SETTINGS = {"model.backbone": "mlp", "validation.tasks": 0, "task.way": 3, "task.queries": 3, "train.auxiliary_batch": 16}


@pytest.fixture(scope="session")
def run(benchmark, tmp_path_factory) -> gpn.Run:
    folder: Path = tmp_path_factory.mktemp("runs") / "run"
    run = gpn.Run.start(folder, benchmark, settings=SETTINGS, episodes=20)
    assert run.train()
    return run
