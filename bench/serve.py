"""Load on `gpn serve`, beside a FastAPI + PyTorch program that serves the same network (serve_torch.py), in one run.

Predictions of 64x64 JPEGs at some connections for some seconds: requests per second, p50, p99, errors, memory of the server before and
after. The servers take turns, several rounds each. Needs a model of ResNet-08, and a Python with fastapi, uvicorn, python-multipart, torch, pillow.

    python bench/serve.py --gpn target/release/gpn --model run/model.safetensors --out bench/runs/DATE/serve.json
"""

import argparse
import io
import json
import multiprocessing
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).parent


def jpegs(count):
    """Images that look like something: smooth noise, 64x64."""
    rng = np.random.default_rng(1)
    files = []
    for _ in range(count):
        small = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        out = io.BytesIO()
        small.resize((64, 64), Image.BICUBIC).save(out, "JPEG", quality=90)
        files.append(out.getvalue())
    return files


def request(data, port):
    head = b'--b\r\nContent-Disposition: form-data; name="image"; filename="a.jpg"\r\nContent-Type: image/jpeg\r\n\r\n'
    body = head + data + b"\r\n--b--\r\n"
    return (
        f"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def answer(connection, buffer):
    """Reads one answer; returns its status and what came after it."""
    while (end := buffer.find(b"\r\n\r\n")) < 0:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("closed")
        buffer += part
    head = buffer[:end].lower()
    length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
    while len(buffer) < end + 4 + length:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("closed")
        buffer += part
    return int(head.split(b" ", 2)[1]), buffer[end + 4 + length :]


def client(port, connections, seconds, requests, results):
    """Some connections in one process: each sends its next request when it has its answer."""
    import selectors

    selector = selectors.DefaultSelector()
    for number in range(connections):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        state = {"next": number, "buffer": b"", "begin": time.perf_counter()}
        connection.sendall(requests[number % len(requests)])
        selector.register(connection, selectors.EVENT_READ, state)
    times, errors, until = [], 0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        for key, _ in selector.select(0.1):
            connection, state = key.fileobj, key.data
            status, state["buffer"] = answer(connection, state["buffer"])
            now = time.perf_counter()
            times.append(now - state["begin"])
            errors += status != 200
            state["next"] += connections
            state["begin"] = now
            connection.sendall(requests[state["next"] % len(requests)])
    results.put((times, errors))


def resident(process):
    """Bytes of memory of a process and its children."""
    total = 0
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if int(fields["Pid"]) == process.pid or int(fields["PPid"]) == process.pid:
            total += int(fields.get("VmRSS", "0 kB").split()[0]) * 1024
    return total


def measure(process, port, arguments, requests):
    load(port, arguments.connections, 3, requests)
    before = resident(process)
    times, errors = load(port, arguments.connections, arguments.seconds, requests)
    times.sort()
    at = lambda share: round(1e3 * times[int(share * (len(times) - 1))], 3)
    return {
        "requests_per_second": round(len(times) / arguments.seconds, 1),
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
        "worst_ms": at(1.0),
        "errors": errors,
        "memory_before_mb": round(before / 1e6, 1),
        "memory_after_mb": round(resident(process) / 1e6, 1),
    }


def load(port, connections, seconds, requests):
    results = multiprocessing.Queue()
    # One process that waits for answers is enough, and leaves the processor to the server.
    worker = multiprocessing.Process(target=client, args=(port, connections, seconds, requests, results))
    worker.start()
    done = results.get()
    worker.join()
    return done


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not start")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpn", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=["gpn", "torch"])
    parser.add_argument("--out")
    arguments = parser.parse_args()
    files = jpegs(256)
    runs = []
    with tempfile.TemporaryDirectory() as state:
        for round_ in range(arguments.rounds):
            for server in ["gpn", "torch"]:
                if arguments.only not in (None, server):
                    continue
                port = free_port()
                if server == "gpn":
                    command = [arguments.gpn, "serve", f"m={arguments.model}", f"--addr=127.0.0.1:{port}", f"--state={state}"]
                else:
                    command = [sys.executable, str(HERE / "serve_torch.py"), arguments.model, str(port), str(arguments.threads)]
                process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
                try:
                    wait_for(port)
                    result = measure(process, port, arguments, [request(data, port) for data in files])
                finally:
                    process.terminate()
                    process.wait()
                runs.append({"server": server, "round": round_, **result})
                print(json.dumps(runs[-1]), flush=True)
    rate = {s: [r["requests_per_second"] for r in runs if r["server"] == s] for s in ("gpn", "torch")}
    if all(rate.values()):
        print(f"gpn answers {min(rate['gpn']) / max(rate['torch']):.1f} times as many requests (worst round against best round)")
    if arguments.out:
        about = {"connections": arguments.connections, "seconds": arguments.seconds, "image": "64x64 JPEG", "runs": runs}
        pathlib.Path(arguments.out).write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
