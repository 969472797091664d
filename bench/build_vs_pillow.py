"""Times `gpn data build` on the tar of Tiny-ImageNet against a Pillow loop over the same files.

    cargo build --release -p gpn-cli
    python bench/build_vs_pillow.py tiny-imagenet-200.tar /usr/share/wordnet --gpn target/release/gpn --json runs.json

The Pillow loop decodes every JPEG to an RGB array in two processes and keeps nothing. `gpn data build` does the whole
job: it reads WordNet, divides the classes, decodes, packs, hashes and writes the benchmark. The two run in turn; each
pair gives one ratio of times, and one of CPU seconds, which other work on the machine disturbs less. Needs Pillow and NumPy.
"""

import argparse
import io
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import tarfile
import tempfile
import time

import numpy as np
import PIL
from PIL import Image


def decode_share(job):
    """Decodes every `step`-th image from `first` on; the number of images and the sum of their pixels."""
    path, members, first, step = job
    count, total = 0, 0
    with open(path, "rb") as archive:
        for offset, size in members[first::step]:
            archive.seek(offset)
            image = Image.open(io.BytesIO(archive.read(size))).convert("RGB")
            total += int(np.asarray(image).sum(dtype=np.uint64))
            count += 1
    return count, total


def pillow_loop(path, processes):
    with tarfile.open(path) as archive:
        members = [(m.offset_data, m.size) for m in archive if m.name.lower().endswith((".jpeg", ".jpg"))]
    with multiprocessing.Pool(processes) as pool:
        shares = pool.map(decode_share, [(path, members, i, processes) for i in range(processes)])
    return sum(count for count, _ in shares), sum(total for _, total in shares)


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(run):
    """Seconds on the clock, seconds of CPU that child processes took, and the result."""
    start, cpu = time.perf_counter(), cpu_of_children()
    result = run()
    return time.perf_counter() - start, cpu_of_children() - cpu, result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tar")
    parser.add_argument("wordnet")
    parser.add_argument("--gpn", default="target/release/gpn")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--json", help="also write the raw numbers here")
    arguments = parser.parse_args()

    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "bench")
        command = [arguments.gpn, "data", "build", "--source", f"tiny-imagenet:{arguments.tar}"]
        command += ["--taxonomy", f"wordnet:{arguments.wordnet}", "--generator", "reference", "--seed", "111"]
        command += ["--min-distance", "4", "--out", out, "--force"]
        environment = dict(os.environ, RAYON_NUM_THREADS=str(arguments.processes))
        for _ in range(arguments.pairs):
            load = os.getloadavg()[0]
            pillow, pillow_cpu, (count, total) = timed(lambda: pillow_loop(arguments.tar, arguments.processes))
            gpn, gpn_cpu, _ = timed(lambda: subprocess.run(command, check=True, capture_output=True, env=environment))
            pair = {"pillow_s": pillow, "gpn_s": gpn, "ratio": gpn / pillow}
            pair |= {"pillow_cpu_s": pillow_cpu, "gpn_cpu_s": gpn_cpu, "cpu_ratio": gpn_cpu / pillow_cpu, "load": load}
            pairs.append(pair)
            print(" ".join(f"{name} {value:.2f}" for name, value in pair.items()), flush=True)
        packed = int(np.load(os.path.join(out, "images.npy"), mmap_mode="r").sum(dtype=np.uint64))
    spread = {
        name: {"median": statistics.median(values), "min": min(values), "max": max(values)}
        for name in ("ratio", "cpu_ratio")
        for values in [[pair[name] for pair in pairs]]
    }
    summary = {
        "images": count,
        "pixel_sum_pillow": total,
        "pixel_sum_gpn": packed,
        "pillow_version": PIL.__version__,
        "processes": arguments.processes,
        **spread,
        "pairs": pairs,
    }
    print(f"{count} images; pixel sums {total} (Pillow) and {packed} (gpn)")
    for name, of in spread.items():
        print(f"{name} {of['median']:.2f} ({of['min']:.2f} to {of['max']:.2f})")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(summary, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
