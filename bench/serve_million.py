"""Search among a million classes over HTTP: every query must be answered in 50 ms.

Adds classes to the class graph of a model file until it has a million (a tree of 30 children a class, names of two made-up words), serves
it, and searches: one class, words that thousands have, letters that nearly all have, nothing at all, names that are not there,
pages far down. Also the page of a class and windows of the graph. The server has one client.
Needs numpy and blake3.

    python bench/serve_million.py --gpn target/release/gpn --model run/model.safetensors --out bench/runs/DATE/serve-million.json
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import struct
import subprocess
import tempfile
import threading
import time
import urllib.parse

import blake3
import numpy as np

SYLLABLES = "ba co di fu ga he ki lo mu na pe qui ro sa ti vu wa xe yo zi".split()


def widened(model, classes, out):
    """The model with more classes in its graph that it knows by place alone."""
    data = pathlib.Path(model).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8 : 8 + length])
    about = json.loads(head["__metadata__"]["gpn"])
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(SYLLABLES, 3)) for _ in range(5000)]
    first = len(about["classes"]) + len(about["held_out"])
    new = classes - first
    pairs = rng.integers(0, len(words), (new, 2))
    about["held_out"] += [{"id": f"c{i}", "name": f"{words[a]} {words[b]}", "samples": 0} for i, (a, b) in enumerate(pairs.tolist())]
    about["edges"] += [[about["root"] if i == 0 else first + (i - 1) // 30, first + i] for i in range(new)]
    tensors = {name: head[name] for name in head if name != "__metadata__"}
    values = data[8 + length :]
    text = json.dumps(about, separators=(",", ":"))
    head["__metadata__"] = {"gpn": text, "gpn.blake3": checksum(text, tensors, values)}
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    out.write_bytes(struct.pack("<Q", len(text)) + text + values)
    return words


def checksum(text, tensors, values):
    """That of a model file: its text, then name, type, shape and values of its tensors, with lengths before contents."""
    hasher = blake3.blake3()

    def number(value):
        hasher.update(struct.pack("<Q", value))

    def field(content):
        number(len(content))
        hasher.update(content)

    number(1)
    field(b"gpn")
    field(text.encode())
    number(len(tensors))
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1]["data_offsets"], item[0])):
        field(name.encode())
        field(tensor["dtype"].encode())
        number(len(tensor["shape"]))
        for size in tensor["shape"]:
            number(size)
        begin, end = tensor["data_offsets"]
        field(values[begin:end])
    return hasher.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpn", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--classes", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        words = widened(arguments.model, arguments.classes, folder / "wide.safetensors")
        begin = time.perf_counter()
        process = subprocess.Popen(
            [arguments.gpn, "serve", f"wide={folder}/wide.safetensors", "--addr=127.0.0.1:0"], stderr=subprocess.PIPE, text=True
        )
        for line in process.stderr:
            if found := re.match(r"serving on http://(.*)/$", line.strip()):
                break
            print(line, end="")
        else:
            raise SystemExit("the server does not start")
        started = time.perf_counter() - begin
        threading.Thread(target=lambda: list(process.stderr), daemon=True).start()
        connection = http.client.HTTPConnection(found[1], timeout=60)

        def get(path):
            start = time.perf_counter()
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            took = time.perf_counter() - start
            if answer.status != 200:
                raise SystemExit(f"{path}: {answer.status} {body[:300]!r}")
            return took, json.loads(body)

        def search(**query):
            return "/api/classes?" + urllib.parse.urlencode({"limit": 10, **query})

        def processor():
            """Seconds of processor time that the server has had; on a busy machine more telling than the clock."""
            fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        asked = {
            "one class": search(q="c654321"),
            "a word": search(q=words[7]),
            "two words": search(q=f"{words[7]} {words[8][:2]}"),
            "a syllable": search(q="ba"),
            "a letter": search(q="a"),
            "the letter of all ids": search(q="c"),
            "everything": search(),
            "everything, untaught only": search(kind="untaught"),
            "a letter, page at 200,000": search(q="a", cursor=200_000),
            "nothing of this name": search(q="nothing of this name"),
            "a misspelt name": search(q=f"{words[7]}x {words[8]}"),
            "a class": "/api/classes/c654321",
            "the graph at a class": "/api/graph?node=c654321&up=5&down=1&limit=200",
            "the top of the graph": "/api/graph?down=2&limit=200",
        }
        try:
            _, card = get("/api/card")
            rows = []
            for what, path in asked.items():
                before = processor()
                answers = [get(path) for _ in range(arguments.repeats)]
                spent = processor() - before
                times = sorted(1e3 * took for took, _ in answers)
                rows.append(
                    {
                        "what": what,
                        "found": answers[0][1].get("total"),
                        "first_ms": round(1e3 * answers[0][0], 2),
                        "p50_ms": round(times[len(times) // 2], 2),
                        "worst_ms": round(times[-1], 2),
                        "processor_ms": round(1e3 * spent / arguments.repeats, 2),
                    }
                )
                print(json.dumps(rows[-1]), flush=True)
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            memory = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1e3
        finally:
            process.terminate()
            process.wait()
    result = {"classes": arguments.classes, "seconds_to_start": round(started, 1), "memory_mb": round(memory), "card": card["classes"], "rows": rows}
    print(json.dumps({key: value for key, value in result.items() if key != "rows"}))
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps(result, indent=1) + "\n")
    slow = [row["what"] for row in rows if row["p50_ms"] > 50]
    if slow:
        raise SystemExit(f"more than 50 ms: {', '.join(slow)}")


if __name__ == "__main__":
    main()
