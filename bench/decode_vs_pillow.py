"""Decodes every JPEG of a tar with Pillow in two processes, runs a command on the same tar, compares times.

    python bench/decode_vs_pillow.py tiny-imagenet-200.tar -- \
        target/release/examples/decode_all tiny-imagenet:tiny-imagenet-200.tar 2

Each side is run three times in turn, the best run counts. Needs Pillow and NumPy.
"""

import argparse
import io
import multiprocessing
import subprocess
import tarfile
import time

import numpy as np
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


def timed(run):
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tar")
    parser.add_argument("command", nargs="+", help="what to compare with, after --")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()

    pillow_times, command_times = [], []
    for _ in range(arguments.runs):
        seconds, (count, total) = timed(lambda: pillow_loop(arguments.tar, arguments.processes))
        pillow_times.append(seconds)
        print(f"pillow   {seconds:7.2f} s  images {count} sum {total}", flush=True)
        seconds, output = timed(lambda: subprocess.run(arguments.command, check=True, capture_output=True, text=True))
        command_times.append(seconds)
        print(f"command  {seconds:7.2f} s  {output.stdout.strip()}", flush=True)
    ratio = min(command_times) / min(pillow_times)
    print(f"best: pillow {min(pillow_times):.2f} s, command {min(command_times):.2f} s, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
