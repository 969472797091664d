#!/usr/bin/env python3
"""Images per second of few-shot steps by tasks a step, beside a classifier's step on 128 images (W1 of `gpn bench`).

    bench/tasks.py --out bench/runs/DATE-tasks

Tasks have 10 images of 32x32 (5 classes, 1 labelled sample and 1 query each). `T/T` is T tasks in T shards: each with batch-norm statistics of
its own. The time is that of whole steps in `gpn train`, graphs and propagation included, without memory and validation.
"""
import argparse, json, os, pathlib, shutil, statistics, subprocess, tempfile

from others import Others

# Runs during which other processes took more of the machine than this, in cores, do not count.
MOST = 0.05
GPN = os.environ.get("GPN", str(pathlib.Path(__file__).resolve().parent.parent / "target/release/gpn"))
IMAGES = 10


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def train(folder, data, tasks, shards):
    out = pathlib.Path(folder) / "run"
    shutil.rmtree(out, ignore_errors=True)
    steps = max(4, 3200 // tasks // 4 * 4)
    settings = [f"train.tasks_per_step={tasks}", f"train.shards={shards}", "schedule.auxiliary=false", "validation.tasks=0",
                f"memory.refresh_every={10 * steps}", f"train.log_every={steps // 4}", "train.checkpoint_every=1000000"]
    command = [GPN, "train", "--data", data, "--out", out, "--episodes", steps]
    with Others(pathlib.Path(GPN).name[:15]) as others:
        run(*command, *[part for setting in settings for part in ("--set", setting)])
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    first, last = lines[0], lines[-2]
    spent = {key: last[key] - first[key] for key in first if key.startswith("seconds")}
    images = IMAGES * tasks * (last["episode"] - first["episode"])
    return {"tasks": tasks, "shards": shards, "images_per_second": images / spent["seconds"],
            "backbone": spent["seconds_backbone"] / spent["seconds"], "propagation": spent["seconds_propagation"] / spent["seconds"], "others": round(others.share, 3)}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--out", required=True)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    out = pathlib.Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    cases = [(1, 1), (2, 1), (4, 1), (8, 1), (13, 1), (26, 1), (13, 13)]
    results, w1 = [], []
    with tempfile.TemporaryDirectory() as folder, open(out / "raw.jsonl", "a") as raw:
        data = pathlib.Path(folder) / "data"
        run(GPN, "data", "build", "--source", "synthetic", "--images-per-leaf", "6", "--out", data)
        for number in range(given.rounds):
            with Others(pathlib.Path(GPN).name[:15]) as others:
                bench = json.loads(run(GPN, "bench", "--json", "--seconds", "0.3"))
            found = next(entry for entry in bench["workloads"] if entry["name"] == "W1")
            w1.append({"w1_images_per_second": found["images_per_second"], "others": round(others.share, 3)})
            print(json.dumps(w1[-1]), file=raw, flush=True)
            for tasks, shards in cases:
                results.append(dict(train(folder, data, tasks, shards), round=number))
                print(json.dumps(results[-1]), file=raw, flush=True)
    quiet = [entry["w1_images_per_second"] for entry in w1 if entry["others"] <= MOST]
    lines = [f"W1: {statistics.median(quiet or [float('nan')]):.0f} images a second", ""]
    lines += ["| tasks | shards | images a second | backbone | propagation |", "|---:|---:|---:|---:|---:|"]
    for case in cases:
        of = [result for result in results if (result["tasks"], result["shards"]) == case]
        of = [result for result in of if result["others"] <= MOST]
        if not of:
            continue
        median = lambda key: statistics.median(result[key] for result in of)
        lines.append(f"| {case[0]} | {case[1]} | {median('images_per_second'):.0f} | {median('backbone'):.0%} | {median('propagation'):.0%} |")
    print("\n".join(lines))
    (out / "summary.md").write_text("\n".join(lines) + "\n")


main()
