"""1,000,000 embeddings of 384 values in 10,000 classes: `gpn fit`, and `gpn predict` of 100,000 rows beside NearestCentroid.

    pip install numpy scikit-learn
    python bench/million.py GPN FOLDER [--rows 1000000] [--classes 10000] [--queries 100000]

GPN is the command; FOLDER takes 3.5 GB. Classes are points around 100 kinds, samples points around their class. Prints the time and the peak
memory of each process, and rows per second.
"""

import argparse
import os
import pathlib
import resource
import subprocess
import time

import numpy as np
from sklearn.neighbors import NearestCentroid

DIM, KINDS = 384, 100


def timed(*command):
    """Seconds, seconds of all threads together, peak megabytes, and what was printed."""
    before = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, text
    return time.perf_counter() - before, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpn")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=100_000)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(KINDS, DIM)).astype(np.float32)
    kind = np.arange(args.classes) % KINDS
    classes = kinds[kind] + 0.7 * rng.normal(size=(args.classes, DIM)).astype(np.float32)

    def draw(path, count):
        labels = np.arange(count) % args.classes
        rows = np.lib.format.open_memmap(path, "w+", np.float32, (count, DIM))
        for start in range(0, count, 50_000):
            part = labels[start : start + 50_000]
            rows[start : start + 50_000] = classes[part] + 1.6 * rng.normal(size=(len(part), DIM)).astype(np.float32)
        rows.flush()
        path.with_name(path.stem + "_labels.txt").write_text("".join(f"class{label}\n" for label in labels))
        return labels

    train, queries = args.folder / "train.npy", args.folder / "queries.npy"
    labels, truth = draw(train, args.rows), draw(queries, args.queries)
    edges = "".join(f"class{number},kind{kind[number]}\n" for number in range(args.classes))
    (args.folder / "kinds.csv").write_text("child,parent\n" + edges + "".join(f"kind{number},top\n" for number in range(KINDS)))
    model = args.folder / "model.safetensors"
    seconds, work, memory, _ = timed(args.gpn, "fit", train, "--taxonomy", args.folder / "kinds.csv", "--out", model, "--force", "--json")
    print(f"gpn fit: {seconds:.1f} s ({work:.0f} s of all threads), {memory:.0f} MB at most", flush=True)
    seconds, work, memory, text = timed(args.gpn, "predict", model, queries, "--top", "1", "--format", "csv")
    answers = [line.split(",")[2] for line in text.splitlines()[1:]]
    right = np.mean([answer == f"class{number}" for answer, number in zip(answers, truth)])
    print(f"gpn predict: {seconds:.1f} s ({work:.0f} s of all threads), {args.queries / seconds:.0f} rows/s, {memory:.0f} MB at most, {100 * right:.1f}% right", flush=True)
    rows = np.load(train, mmap_mode="r")
    before = time.perf_counter()
    centroids = NearestCentroid().fit(rows, labels)
    seconds = time.perf_counter() - before
    asked = np.load(queries)
    before, worked, found = time.perf_counter(), time.process_time(), []
    for start in range(0, len(asked), 10_000):
        found.append(centroids.predict(asked[start : start + 10_000]))
    elapsed, worked = time.perf_counter() - before, time.process_time() - worked
    right = (np.concatenate(found) == truth).mean()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"NearestCentroid: fit {seconds:.1f} s, predict {elapsed:.1f} s ({worked:.0f} s of all threads), {len(asked) / elapsed:.0f} rows/s, {peak:.0f} MB at most, {100 * right:.1f}% right")


if __name__ == "__main__":
    main()
