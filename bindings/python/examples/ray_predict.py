"""Embeds and predicts the images of a list with Ray Data, and checks the result against the command line's.

    pip install gpn 'ray[data]' pyarrow
    python ray_predict.py MODEL LIST.txt OUT [--workers 2] [--kill-after ROWS] [--predicted FOLDER] [--embedded FOLDER]

LIST.txt has the path of an image on each line, from its own folder. Each worker is an actor that opens the model once. OUT gets Parquet
files with the columns `row`, `file`, `id`, `probability` and `embedding`. With --kill-after, one worker is killed (SIGKILL) when so many rows
are done: Ray starts it anew and repeats what it was at. With the folders that `gpn predict --out` and `gpn embed --shard`
wrote for the same list, every row must be there once and equal to theirs bit for bit.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import tempfile
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray

import gpn


class Predictor:
    """One worker: a model, and a file named after its process that grows by a byte a row."""

    def __init__(self, model: str, marks: str) -> None:
        self.model = gpn.Model.open(model)
        self.mark = pathlib.Path(marks) / str(os.getpid())

    def __call__(self, batch: dict[str, np.ndarray]) -> pa.Table:
        paths = list(batch["path"])
        predictions = self.model.predict(paths, top=1)
        embeddings = self.model.embed(paths)
        with self.mark.open("ab") as mark:
            mark.write(b"." * len(paths))
        return pa.table({
            "row": batch["row"],
            "file": list(batch["file"]),
            "id": [prediction.id for prediction in predictions],
            "probability": [prediction.probability for prediction in predictions],
            # A list of floats, which every reader of Parquet knows.
            "embedding": pa.FixedSizeListArray.from_arrays(embeddings.ravel(), embeddings.shape[1]),
        })


def kill_one(marks: pathlib.Path, after: int) -> None:
    """Kills the worker that has done most, when `after` rows are done by all."""
    while True:
        done = {mark: mark.stat().st_size for mark in marks.iterdir()}
        if sum(done.values()) >= after:
            victim = max(done, key=lambda mark: done[mark])
            os.kill(int(victim.name), signal.SIGKILL)
            print(f"killed worker {victim.name} when {sum(done.values())} rows were done")
            return
        time.sleep(0.05)


def rows_of(folder: pathlib.Path, columns: list[str]) -> pa.Table:
    files = sorted(folder.glob("*.parquet"))
    return pa.concat_tables([pq.read_table(file, columns=columns) for file in files]).sort_by("row")


def numbers(table: pa.Table) -> np.ndarray:
    return table["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(len(table), -1)


def check(out: pathlib.Path, rows: int, predicted: pathlib.Path | None, embedded: pathlib.Path | None) -> None:
    mine = rows_of(out, ["row", "file", "id", "probability", "embedding"])
    assert mine["row"].to_pylist() == list(range(rows)), "not every row is there once"
    print(f"every one of {rows} rows is there once")
    if predicted:
        other = rows_of(predicted, ["row", "file", "id", "probability"])
        for column in ("row", "file", "id", "probability"):
            assert mine[column].to_pylist() == other[column].to_pylist(), f"`{column}` differs from the command line's"
        print("predictions are equal to the command line's, bit for bit")
    if embedded:
        other = rows_of(embedded, ["row", "file", "embedding"])
        assert mine["file"].to_pylist() == other["file"].to_pylist()
        assert numbers(mine).astype(np.float32).tobytes() == numbers(other).tobytes(), "embeddings differ from the command line's"
        print("embeddings are equal to the command line's, bit for bit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("list", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--kill-after", type=int)
    parser.add_argument("--predicted", type=pathlib.Path)
    parser.add_argument("--embedded", type=pathlib.Path)
    args = parser.parse_args()

    files = [line.strip() for line in args.list.read_text(encoding="utf-8").splitlines() if line.strip()]
    folder = args.list.resolve().parent
    table = pa.table({
        "row": np.arange(len(files)),
        "file": files,
        "path": [str(folder / file) for file in files],
    })
    # Each worker computes with one thread: there are as many workers as cores.
    ray.init(
        num_cpus=args.workers + 1, include_dashboard=False, object_store_memory=1 << 30,
        runtime_env={"env_vars": {"RAYON_NUM_THREADS": "1"}},
    )
    with tempfile.TemporaryDirectory() as marks:
        if args.kill_after:
            threading.Thread(target=kill_one, args=(pathlib.Path(marks), args.kill_after), daemon=True).start()
        started = time.perf_counter()
        rows = ray.data.from_arrow(table).repartition(max(1, len(files) // args.batch))
        answers = rows.map_batches(
            Predictor,
            fn_constructor_args=(str(args.model.resolve()), marks),
            compute=ray.data.ActorPoolStrategy(size=args.workers),
            batch_size=args.batch,
            num_cpus=1,
        )
        answers.write_parquet(str(args.out.resolve()))
        print(f"{len(files)} images by {args.workers} workers in {time.perf_counter() - started:.1f} s")
        print(f"{len(list(pathlib.Path(marks).iterdir()))} worker processes took part")
    ray.shutdown()
    check(args.out, len(files), args.predicted, args.embedded)


if __name__ == "__main__":
    main()
