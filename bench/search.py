"""The nearest of many prototypes: the exact search of gpn beside usearch, hnswlib, hnsw_rs and faiss, on the same vectors.

    pip install numpy usearch hnswlib faiss-cpu
    cargo build --release -p gpn-model --example search
    cargo build --release --manifest-path bench/hnsw_rs/Cargo.toml --target-dir target/hnsw_rs
    python bench/search.py make FOLDER 100000 1000000 10000000
    python bench/search.py run FOLDER target/release/examples/search 100000 --out result.jsonl [--only gpn usearch ...]

`make` writes two kinds of vectors of length 128 for each size. `tree`: that of the parent and a step of its own, eight children each, as
classes of a taxonomy lie; queries are further children. `noise`: independent, all about equally far from each other, which is the worst
case for any index. `run` measures each engine in a process of its own: seconds to build, the median of single queries, the time of a
query among 1,000, recall at 10 against the exact answer, and the memory that the process grew by besides the vectors.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

import numpy as np

DIM, QUERIES, COUNT, ALONE, BRANCH = 128, 1000, 10, 50, 8
# Graphs with 16 links, built and searched with beams of 128 and 64 (usearch's own defaults are 128 and 64).
LINKS, BUILD_BEAM, SEARCH_BEAM = 16, 128, 64
HNSW_RS = pathlib.Path(__file__).resolve().parent.parent / "target/hnsw_rs/release/search-hnsw-rs"
ENGINES = ["gpn", "gpn-approximate", "usearch-f32", "usearch-f16", "usearch-i8", "hnswlib", "hnsw_rs", "faiss-flat", "faiss-sq8"]


def paths(folder, size, kind):
    return [folder / f"{kind}-{size}-{what}.f32" for what in ("rows", "queries")]


def make(folder, size, kind):
    rows_path, queries_path = paths(folder, size, kind)
    random = np.random.default_rng([size, kind == "tree"])
    rows = np.memmap(rows_path, np.float32, "w+", shape=(size, DIM))
    for start in range(0, size, 1 << 18):
        end = min(size, start + (1 << 18))
        rows[start:end] = random.standard_normal((end - start, DIM), np.float32)
    if kind == "tree":
        # Level by level: all parents of a level are complete before it.
        start, end = 1, min(size, 1 + BRANCH)
        while start < size:
            for first in range(start, end, 1 << 18):
                last = min(end, first + (1 << 18))
                rows[first:last] += rows[(np.arange(first, last) - 1) // BRANCH]
            start, end = end, min(size, end * BRANCH + 1)
    queries = random.standard_normal((QUERIES, DIM), np.float32)
    if kind == "tree":
        queries += rows[np.sort(random.integers(0, size, QUERIES))]
    rows.flush()
    queries.tofile(queries_path)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def timed(search, queries):
    """Median milliseconds of a query alone, milliseconds of one among all, and the answers."""
    times = []
    for query in queries[:ALONE]:
        before = time.perf_counter()
        search(query[None])
        times.append(time.perf_counter() - before)
    before = time.perf_counter()
    found = search(queries)
    return {"alone": 1e3 * float(np.median(times)), "together": 1e3 * (time.perf_counter() - before) / len(queries)}, found


def other(engine, rows_path, queries_path, found_path):
    """One of the other programs, in this process."""
    rows = np.fromfile(rows_path, np.float32).reshape(-1, DIM)
    queries = np.fromfile(queries_path, np.float32).reshape(-1, DIM)
    threads, loaded, started = os.cpu_count(), peak(), time.perf_counter()
    if engine.startswith("usearch"):
        from usearch.index import Index

        index = Index(
            ndim=DIM, metric="l2sq", dtype=engine.split("-")[1], connectivity=LINKS, expansion_add=BUILD_BEAM,
            expansion_search=SEARCH_BEAM,
        )
        # i8 of usearch takes values from -1 to 1.
        scale = np.float32(1.0 / np.abs(rows[:: max(1, len(rows) // 10000)]).max()) if engine.endswith("i8") else np.float32(1)
        for start in range(0, len(rows), 1 << 17):
            part = rows[start : start + (1 << 17)]
            index.add(np.arange(start, start + len(part)), part * scale if scale != 1 else part, threads=threads)

        def search(queries):
            keys = index.search(queries * scale if scale != 1 else queries, COUNT, threads=threads).keys
            return np.asarray(keys).reshape(len(queries), COUNT)
    elif engine == "hnswlib":
        import hnswlib

        index = hnswlib.Index("l2", DIM)
        index.init_index(len(rows), ef_construction=BUILD_BEAM, M=LINKS)
        index.set_num_threads(threads)
        index.add_items(rows)
        index.set_ef(SEARCH_BEAM)

        def search(queries):
            return index.knn_query(queries, COUNT)[0]
    else:
        import faiss

        faiss.omp_set_num_threads(threads)
        index = faiss.IndexFlatL2(DIM) if engine == "faiss-flat" else faiss.IndexScalarQuantizer(DIM, faiss.ScalarQuantizer.QT_8bit)
        index.train(rows[:100_000])
        index.add(rows)

        def search(queries):
            return index.search(queries, COUNT)[1]

    built = time.perf_counter() - started
    result, found = timed(search, queries)
    np.asarray(found).astype(np.uint32).tofile(found_path)
    print(json.dumps({"built": built, **result, "bytes": peak() - loaded}))


def run(args):
    for size in args.sizes:
        for kind in args.kinds:
            rows, queries = paths(args.folder, size, kind)
            exact = None
            for engine in args.only or ENGINES:
                found = args.folder / f"{kind}-{size}-{engine}.u32"
                if engine.startswith("gpn"):
                    way = ["approximate"] if engine == "gpn-approximate" else []
                    command = [args.example, rows, queries, DIM, COUNT, found, *way]
                elif engine == "hnsw_rs":
                    command = [HNSW_RS, rows, queries, DIM, COUNT, found, LINKS, BUILD_BEAM, SEARCH_BEAM]
                else:
                    command = [sys.executable, __file__, "other", engine, rows, queries, found]
                done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
                if done.returncode:
                    print(json.dumps({"size": size, "kind": kind, "engine": engine, "failed": done.stderr[-300:]}), flush=True)
                    continue
                result = {"size": size, "kind": kind, "engine": engine, **json.loads(done.stdout)}
                answers = np.fromfile(found, np.uint32).reshape(QUERIES, COUNT)
                if engine == "gpn":
                    exact = answers
                elif exact is None:
                    exact = np.fromfile(args.folder / f"{kind}-{size}-gpn.u32", np.uint32).reshape(QUERIES, COUNT)
                result["recall"] = float(np.mean([len(np.intersect1d(a, b)) / COUNT for a, b in zip(exact, answers)]))
                line = json.dumps(result)
                print(line, flush=True)
                if args.out:
                    with args.out.open("a") as out:
                        out.write(line + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("folder", type=pathlib.Path)
    making.add_argument("sizes", type=int, nargs="+")
    running = commands.add_parser("run")
    running.add_argument("folder", type=pathlib.Path)
    running.add_argument("example", type=pathlib.Path)
    running.add_argument("sizes", type=int, nargs="+")
    running.add_argument("--kinds", nargs="+", default=["tree", "noise"])
    running.add_argument("--only", nargs="+", choices=ENGINES)
    running.add_argument("--out", type=pathlib.Path)
    one = commands.add_parser("other")
    for name in ("engine", "rows", "queries", "found"):
        one.add_argument(name)
    args = parser.parse_args()
    if args.command == "make":
        args.folder.mkdir(parents=True, exist_ok=True)
        for size in args.sizes:
            for kind in ("tree", "noise"):
                make(args.folder, size, kind)
    elif args.command == "run":
        run(args)
    else:
        other(args.engine, args.rows, args.queries, args.found)


if __name__ == "__main__":
    main()
