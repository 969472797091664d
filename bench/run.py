#!/usr/bin/env python3
"""Speed of this engine beside PyTorch, interleaved in one go.

Each round runs every workload once in each of: PyTorch with the default allocator, PyTorch with a tuned one (huge
pages, memory kept instead of returned), and this engine, each in a process of its own. The ratio of a round compares
median step times of that round, so that a slow phase of the machine touches all alike.

    bench/run.py [--python PYTHON_WITH_TORCH] [--rounds 5] [--seconds 3] [--binary BENCH_STEP] [--simd avx2]
        [--tuned-only] [--name NAME] [W1 W2 ...]

Both use the processor's best instruction set unless `--simd` names another: `--simd avx2` holds both to AVX2, for a fair
comparison of that path on a machine with AVX-512. Writes raw.jsonl and
summary.md to bench/runs/YYYY-MM-DD, or YYYY-MM-DD-NAME (with a number behind where that exists).
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent
# Title, and the bars of the ratio to tuned PyTorch with AVX-512 and with AVX2.
WORKLOADS = {
    "W1": ("training step, batch 128 at 32x32, 773-way head", 0.36, 0.45),
    "W2": ("training step, batch 128 at 64x64, 773-way head", 0.38, 0.42),
    "W3": ("training step, batch 128 at 84x84, 773-way head", 0.42, 0.45),
    "W4": ("episode step, 10 images at 64x64", 0.32, 0.40),
    "W5": ("episode step, 50 images at 64x64", 0.36, 0.42),
    "W6": ("inference, 256 images at 64x64", 0.34, 0.42),
    "W7": ("conv4 training step, batch 128 at 64x64", 0.42, 0.45),
    "W8": ("resnet12 training step, batch 64 at 84x84", None, None),
    "W9": ("resnet18 training step, batch 32 at 224x224", None, None),
}
# What makes PyTorch, and the engine, use an instruction set. PyTorch uses AVX-512 by itself where the processor has it.
FORCED = {
    None: ({}, {}),
    "avx512": ({}, {"GPN_SIMD": "avx512"}),
    "avx2": ({"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}, {"GPN_SIMD": "avx2"}),
}
LARGE = 1 << 33
TUNED = ":".join(
    [
        "glibc.malloc.hugetlb=1",
        f"glibc.malloc.mmap_threshold={LARGE}",
        f"glibc.malloc.trim_threshold={LARGE}",
        f"glibc.malloc.top_pad={1 << 28}",
    ]
)


def engine_binary():
    """Builds the example of gpn-model in release mode and returns its path."""
    command = ["cargo", "build", "--release", "--workspace", "--example", "bench_step"]
    command += ["--message-format=json-render-diagnostics"]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    messages = map(json.loads, output.splitlines())
    paths = [message["executable"] for message in messages if message.get("executable")]
    return paths[-1]


def processor():
    """Name of the processor, where the system tells."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


def best_simd():
    """The best instruction set of the processor, of those that there are bars for."""
    try:
        has_avx512 = "avx512f" in pathlib.Path("/proc/cpuinfo").read_text().split()
    except OSError:
        has_avx512 = False
    return "avx512" if has_avx512 else "avx2"


def output_folder(name):
    """A new folder named after today."""
    today = datetime.date.today().isoformat() + (f"-{name}" if name else "")
    for suffix in ["", *(f"-{number}" for number in range(2, 100))]:
        folder = BENCH / "runs" / (today + suffix)
        if not folder.exists():
            folder.mkdir(parents=True)
            return folder
    sys.exit(f"bench/runs holds 99 runs of {today}: remove some")


def measure(command, environment):
    """Runs one process and returns its JSON line."""
    environment = {**os.environ, **environment}
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])


def spread(values, digits=2):
    """`median (least to most)`."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def summary(results, workloads, rounds, python, simd):
    """The Markdown table of a run. `results[workload][engine]` is a list with one line per round."""
    version = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], stdout=subprocess.PIPE, text=True)
    lines = [
        f"{processor()}, {platform.system()} {platform.machine()}, {simd}, 2 threads, PyTorch "
        f"{version.stdout.strip()}, {rounds} rounds. Times are milliseconds per step, ratios ours / PyTorch's: median "
        "(least to most). The share of the peak counts the operations of the direct method.",
        "",
        "| | workload | ours | of peak | PyTorch | PyTorch, tuned | ratio | ratio, tuned | bar | peak MB, ours / PyTorch |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for workload in workloads:
        title, *bars = WORKLOADS[workload]
        bar = bars[simd == "avx2"]
        lists = results[workload]
        times = {engine: [statistics.median(line["step_ms"]) for line in lists[engine]] for engine in lists}
        ratio = {
            engine: spread([ours / other for ours, other in zip(times["gpn"], times[engine])])
            for engine in lists
        }
        cells = {engine: spread(times[engine]) for engine in lists}
        share = statistics.median(line["share_of_peak"] for line in lists["gpn"])
        peak = {engine: max(line["peak_mb"] for line in lists[engine]) for engine in lists}
        lines.append(
            f"| {workload} | {title} | {cells['gpn']} | {share:.0%} | {cells.get('torch', '-')} | "
            f"{cells['torch-tuned']} | {ratio.get('torch', '-')} | {ratio['torch-tuned']} | "
            f"{bar or '-'} | {peak['gpn']:.0f} / {peak['torch-tuned']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", help="W1 to W9 (default: all)")
    parser.add_argument("--python", default=sys.executable, help="a Python with PyTorch (default: this one)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--binary", help="the example bench_step, built before (default: it is built)")
    parser.add_argument("--seconds", type=float, default=3.0, help="time per process after warm-up")
    parser.add_argument(
        "--simd", choices=[simd for simd in FORCED if simd], help="instruction set of both (default: the processor's best)"
    )
    parser.add_argument("--tuned-only", action="store_true", help="leave PyTorch with the default allocator out")
    parser.add_argument("--name", help="name of the run, behind the date")
    arguments = parser.parse_args()
    workloads = arguments.workloads or list(WORKLOADS)
    if unknown := set(workloads) - set(WORKLOADS):
        parser.error(f"unknown workloads: {', '.join(sorted(unknown))}")
    torch = [arguments.python, str(BENCH / "torch_step.py")]
    of_torch, of_engine = FORCED[arguments.simd]
    engines = {
        "torch": (torch, of_torch),
        "torch-tuned": (torch, {"GLIBC_TUNABLES": TUNED, **of_torch}),
        "gpn": ([arguments.binary or engine_binary(), "--peak"], {"RAYON_NUM_THREADS": "2", **of_engine}),
    }
    if arguments.tuned_only:
        del engines["torch"]
    folder = output_folder(arguments.name)
    results = {workload: {engine: [] for engine in engines} for workload in workloads}
    with open(folder / "raw.jsonl", "w") as raw:
        for number in range(arguments.rounds):
            for workload in workloads:
                for engine, (command, environment) in engines.items():
                    options = [workload, "--seconds", str(arguments.seconds), "--engine", engine]
                    line = {"round": number, **measure(command + options, environment)}
                    results[workload][engine].append(line)
                    raw.write(json.dumps(line) + "\n")
                    raw.flush()
            print(f"round {number + 1} of {arguments.rounds} done", file=sys.stderr)
    text = summary(results, workloads, arguments.rounds, arguments.python, arguments.simd or best_simd())
    (folder / "summary.md").write_text(text)
    print(text)
    print(f"raw numbers: {folder / 'raw.jsonl'}", file=sys.stderr)


if __name__ == "__main__":
    main()
