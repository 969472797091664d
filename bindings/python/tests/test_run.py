"""Benchmarks and runs: training with callbacks, stopping, resuming, evaluating."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import gpn
from conftest import SETTINGS


def test_benchmark_tells_what_it_is(benchmark: gpn.Benchmark) -> None:
    info = benchmark.info()
    assert list(info["split"]) == ["train", "close", "far"] and info["classes"][0] > 5
    assert set(benchmark.classes()["split"]) >= {"train", "close"}
    assert benchmark.folder is None and benchmark.manifest["counts"]["samples"] == 400
    assert "class00" in benchmark.taxonomy


def test_images_make_a_benchmark() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (40, 8, 8, 3), dtype=np.uint8)
    labels = ["cat"] * 20 + ["dog"] * 20
    made = gpn.Benchmark.from_arrays(pixels, labels, [("animal", "cat"), ("animal", "dog")], size=8, images_per_leaf=4)
    assert made.manifest["store"] == {"kind": "images", "size": 8}
    with pytest.raises(ValueError, match="shape"):
        gpn.Benchmark.from_arrays(pixels[..., :2], labels, [("animal", "cat"), ("animal", "dog")])
    with pytest.raises(ValueError, match="40 samples but 39 labels"):
        gpn.Benchmark.from_arrays(pixels, labels[1:], [("animal", "cat"), ("animal", "dog")])


def test_synthetic_benchmark_is_built_and_watched(tmp_path, caplog) -> None:
    events = []
    made = gpn.Benchmark.build("synthetic", tmp_path / "bench", size=16, images_per_leaf=2, callback=events.append)
    stored = [event for event in events if event["event"] == "stored"]
    assert stored[-1]["done"] == stored[-1]["total"] == made.manifest["counts"]["samples"]
    again = gpn.Benchmark.open(tmp_path / "bench", check="all")
    assert again.manifest == made.manifest
    with pytest.raises(FileExistsError):
        gpn.Benchmark.build("synthetic", tmp_path / "bench", size=16)
    with pytest.raises(KeyboardInterrupt):
        gpn.Benchmark.build("synthetic", tmp_path / "other", size=16, callback=lambda event: False)
    assert not (tmp_path / "other").exists()
    data = bytearray((tmp_path / "bench" / "classes.csv").read_bytes())
    data[20] ^= 1
    (tmp_path / "bench" / "classes.csv").write_bytes(data)
    with pytest.raises(gpn.DamagedFileError):
        gpn.Benchmark.open(tmp_path / "bench")


def test_a_callback_stops_training_and_it_goes_on_bit_for_bit(benchmark, tmp_path) -> None:
    whole = gpn.Run.start(tmp_path / "whole", benchmark, settings=SETTINGS, episodes=12)
    assert whole.train() and (whole.done, whole.episodes) == (12, 12)

    seen = []

    def stop_at_five(event):
        seen.append(event["done"])
        return event["done"] < 5

    parts = gpn.Run.start(tmp_path / "parts", benchmark, settings=SETTINGS, episodes=12)
    assert not parts.train(stop_at_five)
    assert seen == [1, 2, 3, 4, 5] and parts.done == 5
    assert parts.train()
    del parts
    assert whole.model().to_bytes() == gpn.Model.open(tmp_path / "parts").to_bytes()

    third = gpn.Run.start(tmp_path / "third", benchmark, settings=SETTINGS, episodes=6)
    assert third.train()
    third.extend(9)
    assert third.train() and third.done == 9
    del third
    with pytest.raises(gpn.InputError, match="more than that"):
        gpn.Run.resume(tmp_path / "third", benchmark=benchmark, episodes=3)


def test_an_exception_of_a_callback_comes_out(benchmark, tmp_path) -> None:
    run = gpn.Run.start(tmp_path / "run", benchmark, settings=SETTINGS, episodes=50)

    def fail(event):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run.train(fail)
    assert run.train(lambda event: event["done"] < 3) is False


@pytest.fixture
def interruptible():
    """Interrupts are exceptions, also where the tests were started in the background of a shell, which ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_stops_training_within_a_second(benchmark, tmp_path) -> None:
    run = gpn.Run.start(tmp_path / "run", benchmark, settings=SETTINGS, episodes=10_000_000)
    sent = []

    def interrupt() -> None:
        time.sleep(0.5)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run.train()
    assert time.monotonic() - sent[0] < 1
    done = run.done
    assert done > 0
    del run
    resumed = gpn.Run.resume(tmp_path / "run", benchmark=benchmark)
    assert resumed.done == done
    assert resumed.train(lambda event: event["done"] < done + 3) is False


def test_nothing_is_printed(tmp_path) -> None:
    script = textwrap.dedent(
        """
        import numpy as np, gpn
        random = np.random.default_rng(0)
        X = random.normal(size=(120, 4)).astype(np.float32)
        y = [f"c{i % 6}" for i in range(120)]
        edges = [("r", f"c{i}") for i in range(6)] + [("r", "c0")]
        bench = gpn.Benchmark.from_arrays(X, y, edges, images_per_leaf=4, train_share=0.6, min_distance=1, close=(1, 3), far=(4, 10))
        run = gpn.Run.start("run", bench, settings={"model.backbone": "mlp", "task.way": 2, "task.queries": 2}, episodes=3)
        run.train()
        try:
            gpn.Model.open("missing")
        except FileNotFoundError:
            pass
        """
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_happens_is_logged(run: gpn.Run, benchmark, tmp_path, caplog) -> None:
    with caplog.at_level(logging.DEBUG, logger="gpn"):
        gpn.Run.start(tmp_path / "run", benchmark, settings=SETTINGS | {"train.log_every": 1}, episodes=2).train()
    assert [record.name for record in caplog.records] == ["gpn"] * 2


def test_evaluation(run: gpn.Run, benchmark) -> None:
    evaluation = run.evaluate(way=3, queries=3, tasks=20)
    assert evaluation.tasks == 20 and 20 <= evaluation.base[0] <= 100
    assert len(evaluation.per_task()["base"]) == 20
    assert np.isclose(evaluation.per_task()["method"].mean(), evaluation.method[0])
    assert list(evaluation.table()) == ["what", "mean", "half_width"]
    assert pickle.loads(pickle.dumps(evaluation)).to_dict() == evaluation.to_dict()
    assert "<table>" in evaluation._repr_html_()
    same = gpn.evaluate(run.model(), benchmark, way=3, queries=3, tasks=20)
    assert same.to_dict() == evaluation.to_dict() == gpn.evaluate(run.folder, benchmark, way=3, queries=3, tasks=20).to_dict()
    with pytest.raises(gpn.InputError, match="unknown variant"):
        run.evaluate(split="near")
    with pytest.raises(TypeError, match="unexpected keyword argument 'ways'"):
        run.evaluate(ways=3)
    assert run.evaluate(way=np.int64(3), queries=3, tasks=20, lambda_=0.5, tasks_file=None).lambda_ == 0.5
    last = run.evaluate(way=3, queries=3, tasks=20, seed=2**64 - 1, lambda_=np.float32(0.25))
    assert last.lambda_ == 0.25 and last.fingerprint != evaluation.fingerprint
    with pytest.raises(OverflowError):
        run.evaluate(seed=2**64)


@pytest.mark.skipif(sys.platform != "linux", reason="file names of bytes that are no text")
def test_a_path_need_not_be_text(run: gpn.Run, tmp_path) -> None:
    file = tmp_path / os.fsdecode(b"tasks-\xff.json")
    file.write_text("no tasks")
    for path in (file, str(file)):
        with pytest.raises(gpn.GpnError) as raised:
            run.evaluate(tasks_file=path)
        assert not isinstance(raised.value, gpn.NotFoundError), raised.value


def test_settings_are_checked(benchmark, tmp_path) -> None:
    assert gpn.settings("paper")["train"]["episodes"] == 350_000
    with pytest.raises(ValueError, match="did you mean `task.way`"):
        gpn.Run.start(tmp_path / "run", benchmark, settings={"task": {"wya": 3}})
    with pytest.raises(ValueError):
        gpn.settings("nothing")
    with pytest.raises(gpn.NotFoundError):
        gpn.Run.resume(tmp_path / "none")


def test_metrics_are_a_table(run: gpn.Run) -> None:
    table = run.metrics()
    assert len({len(column) for column in table.values()}) == 1 and "episode" in table


def test_progress_needs_no_tqdm(benchmark, tmp_path, capsys) -> None:
    assert gpn.Run.start(tmp_path / "run", benchmark, settings=SETTINGS, episodes=3).train(progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    try:
        import tqdm  # noqa: F401
    except ImportError:
        assert captured.err == ""
    else:
        assert "training" in captured.err
