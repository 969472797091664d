"""Classes taught and asked for over HTTP answer as those of the library do, bit for bit.

Teaches unseen classes of the Close part of a benchmark with a few images each, one request a class, to `gpn serve`; teaches the same images
to a model file with `gpn teach`. Then both classify the same images: the server one image a request over several connections, `gpn predict`
all of them at once. Every class, probability and distance of every answer must be the same number.

    python bench/serve_tiny.py --gpn target/release/gpn --data tiny --model run/model.safetensors --out bench/runs/DATE/serve-tiny.json
"""

import argparse
import concurrent.futures
import csv
import http.client
import io
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
from PIL import Image


def chosen(data, classes, shot, queries):
    """Support samples of each class, and samples of Close classes that are in no support."""
    with open(data / "classes.csv", newline="", encoding="utf-8") as file:
        close = [row["id"] for row in csv.DictReader(file) if row["split"] == "close"]
    samples = {name: [] for name in close}
    with open(data / "assignments.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["class"] in samples:
                samples[row["class"]].append(int(row["sample"]))
    support = {name: samples[name][:shot] for name in close[:classes]}
    used = set(itertools.chain.from_iterable(support.values()))
    rest = [[sample for sample in samples[name] if sample not in used] for name in close]
    # One of each class in turn; a sample may be in several classes.
    in_turn = itertools.chain.from_iterable(itertools.zip_longest(*rest))
    unique = list(dict.fromkeys(sample for sample in in_turn if sample is not None))
    if len(support) < classes or len(unique) < queries:
        raise SystemExit(f"the benchmark has {len(support)} Close classes and {len(unique)} images to ask for")
    return support, unique[:queries]


def png(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=1)
    return out.getvalue()


def form(fields, files):
    """A multipart body and its type."""
    parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields]
    for name, data in files:
        head = f'--b\r\nContent-Disposition: form-data; name="image"; filename="{name}"\r\nContent-Type: image/png\r\n\r\n'
        parts.append(head.encode() + data + b"\r\n")
    return b"".join(parts) + b"--b--\r\n", "multipart/form-data; boundary=b"


class Server:
    """A `gpn serve` of a model, with its own empty database."""

    def __init__(self, gpn, model, state):
        self.process = subprocess.Popen(
            [gpn, "serve", f"tiny={model}", "--addr=127.0.0.1:0", f"--state={state}"], stderr=subprocess.PIPE, text=True
        )
        for line in self.process.stderr:
            if found := re.match(r"serving on http://(.*)/$", line.strip()):
                self.address = found[1]
                break
        else:
            raise SystemExit("the server does not start")
        threading.Thread(target=lambda: list(self.process.stderr), daemon=True).start()
        self.local = threading.local()

    def post(self, path, fields, files):
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPConnection(self.address, timeout=60)
        body, kind = form(fields, files)
        self.local.connection.request("POST", path, body, {"Content-Type": kind})
        answer = self.local.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {text[:500]!r}")
        return json.loads(text)

    def stop(self):
        self.process.terminate()
        return self.process.wait()


def ranking(classes):
    """Distances are float32, which one writes with fewer digits than the other."""
    return [(one["id"], one["probability"], float(np.float32(one["distance"]))) for one in classes]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpn", required=True)
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--shot", type=int, default=5)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    support, queries = chosen(arguments.data, arguments.classes, arguments.shot, arguments.queries)
    images = np.load(arguments.data / "images.npy", mmap_mode="r")

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, samples in support.items():
            (folder / "support" / name).mkdir(parents=True)
            for sample in samples:
                (folder / "support" / name / f"{sample}.png").write_bytes(png(images[sample]))
        (folder / "queries").mkdir()
        for sample in queries:
            (folder / "queries" / f"{sample}.png").write_bytes(png(images[sample]))

        server = Server(arguments.gpn, arguments.model, folder / "state")
        try:
            begin = time.perf_counter()
            for name in support:
                files = sorted((folder / "support" / name).iterdir())
                server.post("/api/teach", [("class", name)], [(file.name, file.read_bytes()) for file in files])
            taught = time.perf_counter() - begin

            wanted = json.dumps({"among": "taught", "top": arguments.classes})
            everything = json.dumps({"top": 5})

            def ask(sample, request):
                file = folder / "queries" / f"{sample}.png"
                answer = server.post("/api/predict", [("request", request)], [(file.name, file.read_bytes())])
                return sample, ranking(answer["predictions"][0]["classes"])

            begin = time.perf_counter()
            with concurrent.futures.ThreadPoolExecutor(arguments.connections) as pool:
                over_http = dict(pool.map(lambda sample: ask(sample, wanted), queries))
            asked = time.perf_counter() - begin
            with concurrent.futures.ThreadPoolExecutor(arguments.connections) as pool:
                among_all = dict(pool.map(lambda sample: ask(sample, everything), queries))
        finally:
            if server.stop() != 0:
                raise SystemExit("the server did not stop in order")

        def gpn(*words):
            return subprocess.run([arguments.gpn, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout

        model = folder / "taught.safetensors"
        gpn("teach", arguments.model, "--classes-from", folder / "support", "--out", model)
        different = 0
        for answers, more in [(over_http, ["--taught", "--top", arguments.classes]), (among_all, ["--top", 5])]:
            library = json.loads(gpn("predict", model, folder / "queries", "--json", *more))
            assert len(library) == len(queries) == len(answers), (len(library), len(queries), len(answers))
            for one in library:
                sample = int(pathlib.Path(one["file"]).stem)
                if ranking(one["classes"]) != answers[sample]:
                    different += 1
                    if different <= 3:
                        print(f"{sample}: {ranking(one['classes'])[:3]} by gpn predict, {answers[sample][:3]} over HTTP", file=sys.stderr)

    result = {
        "classes": len(support),
        "shot": arguments.shot,
        "queries": len(queries),
        "numbers_compared": sum(2 * len(answer) for answer in [*over_http.values(), *among_all.values()]),
        "answers_that_differ": different,
        "distinct_first_classes": len({answer[0][0] for answer in over_http.values()}),
        "seconds_to_teach": round(taught, 2),
        "seconds_to_ask": round(asked, 2),
        "connections": arguments.connections,
    }
    print(json.dumps(result))
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps(result, indent=1) + "\n")
    raise SystemExit(different > 0)


if __name__ == "__main__":
    main()
