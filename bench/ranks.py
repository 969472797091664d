#!/usr/bin/env python3
"""Speed of training by several ranks of one thread each, on one machine and over links of limited bandwidth.

    cargo build --release -p gpn-cli --features mpi
    bench/ranks.py --out bench/runs/DATE-ranks           (as root for the links: network namespaces, tc)

Each rank is bound to a core of its own, together with the thread that prepares its batches; one rank is bound alike. All runs
have the same settings and so train the same model, which is checked. Runs that others disturbed are left out. The time is that of training steps with waiting and
exchange, from metrics.jsonl, without validation. Needs Open MPI.
"""
import argparse, hashlib, json, os, pathlib, shutil, statistics, subprocess, sys, tempfile

from others import Others

# Runs during which other processes took more of the machine than this, in cores, do not count.
MOST = 0.05
GPN = pathlib.Path(os.environ.get("GPN", pathlib.Path(__file__).resolve().parent.parent / "target/release/gpn"))
# What a step does; all have two shards.
WORKLOADS = {
    "batch 128 at 32x32": ["train.auxiliary_batch=128", "model.image_size=32", "schedule.auxiliary=true", "train.method=baseline++"],
    "16 tasks at 32x32": ["train.tasks_per_step=16", "model.image_size=32", "schedule.auxiliary=false"],
    "batch 128 at 64x64": ["train.auxiliary_batch=128", "model.image_size=64", "schedule.auxiliary=true", "train.method=baseline++"],
}
STEPS = {"batch 128 at 32x32": 120, "16 tasks at 32x32": 120, "batch 128 at 64x64": 24}
NAMES = ["gpn-a", "gpn-b"]


def run(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **more)


def make_link(rate):
    """Two network namespaces, joined by a link of this rate each way."""
    remove_link()
    for name in NAMES:
        run("ip", "netns", "add", name)
    run("ip", "link", "add", "gpn-va", "netns", NAMES[0], "type", "veth", "peer", "name", "gpn-vb", "netns", NAMES[1])
    for place, (name, device) in enumerate(zip(NAMES, ["gpn-va", "gpn-vb"])):
        inside = ["ip", "netns", "exec", name]
        run(*inside, "ip", "addr", "add", f"10.99.0.{place + 1}/24", "dev", device)
        run(*inside, "ip", "link", "set", device, "up")
        run(*inside, "ip", "link", "set", "lo", "up")
        run(*inside, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "256kb", "latency", "20ms")


def remove_link():
    for name in NAMES:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def agent(folder):
    """What mpirun starts its daemon on the other `machine` with: HOST COMMAND... in that namespace."""
    script = pathlib.Path(folder) / "agent"
    script.write_text(
        "#!/bin/sh\nhost=$1; shift\ncase $host in 10.99.0.1) ns=gpn-a;; *) ns=gpn-b;; esac\n"
        'exec ip netns exec $ns unshare -u sh -c "hostname $ns; exec $*"\n'
    )
    script.chmod(0o755)
    return script


def train(folder, data, workload, ranks, link, core):
    out = pathlib.Path(folder) / "run"
    shutil.rmtree(out, ignore_errors=True)
    steps = STEPS[workload]
    settings = WORKLOADS[workload] + ["train.shards=2", "validation.tasks=0", f"memory.refresh_every={10 * steps}", "baseline.steps=1",
                                      f"train.log_every={steps // 4}", "train.checkpoint_every=100000"]
    command = [GPN, "train", "--distributed", "--data", data, "--out", out, "--episodes", steps]
    for setting in settings:
        command += ["--set", setting]
    environment = dict(os.environ, RAYON_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-x", "RAYON_NUM_THREADS", "-n", ranks]
    # Each rank on the core of its number.
    bound = ["sh", "-c", f'exec taskset -c $((OMPI_COMM_WORLD_RANK + {core})) "$@"', "sh"]
    if link:
        launcher = ["ip", "netns", "exec", NAMES[0], "unshare", "-u", "sh", "-c", 'hostname gpn-a; exec "$@"', "sh"] + launcher
        launcher += ["--host", "10.99.0.1:1,10.99.0.2:1", "--mca", "plm_rsh_agent", agent(folder), "--mca", "pml", "ob1",
                     "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "10.99.0.0/24",
                     "--mca", "oob_tcp_if_include", "10.99.0.0/24"]
    with Others(GPN.name[:15], "mpirun", "orted") as others:
        run(*launcher, *bound, *command, env=environment)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    # The first quarter warms up; the last line has the time of the memory that every run ends with.
    first, last = lines[0], lines[-2]
    count = last["episode"] - first["episode"]
    digest = hashlib.sha256((out / "last.safetensors").read_bytes()).hexdigest()[:16]
    return {"workload": workload, "ranks": ranks, "link": link or "none", "steps": count,
            "step_ms": 1e3 * (last["seconds"] - first["seconds"]) / count, "model": digest, "others": round(others.share, 3)}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--out", required=True)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--links", default="1gbit,10gbit")
    arguments.add_argument("--workloads", default=",".join(WORKLOADS))
    given = arguments.parse_args()
    out = pathlib.Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    links = [link for link in given.links.split(",") if link]
    results = []
    with tempfile.TemporaryDirectory() as folder, open(out / "raw.jsonl", "a") as raw:
        data = pathlib.Path(folder) / "data"
        run(GPN, "data", "build", "--source", "synthetic", "--images-per-leaf", "6", "--size", "64", "--out", data)
        try:
            for number in range(given.rounds):
                for workload in given.workloads.split(","):
                    for ranks, link in [(1, None), (2, None)] + [(2, link) for link in links]:
                        if link:
                            make_link(link)
                        result = dict(train(folder, data, workload, ranks, link, 0), round=number)
                        results.append(result)
                        print(json.dumps(result), file=raw, flush=True)
                        print(json.dumps(result), flush=True)
        except subprocess.CalledProcessError as error:
            sys.exit(f"{error}\n{error.stderr}")
        finally:
            if links:
                remove_link()
    lines = ["| step | ranks | link | ms a step, median | speed-up |", "|---|---:|---|---:|---:|"]
    for workload in given.workloads.split(","):
        of = [result for result in results if result["workload"] == workload]
        if len({result["model"] for result in of}) != 1:
            sys.exit(f"{workload}: the models differ")
        def median(ranks, link):
            times = [r["step_ms"] for r in of if (r["ranks"], r["link"]) == (ranks, link) and r["others"] <= MOST]
            return statistics.median(times) if times else float("nan")
        alone = median(1, "none")
        for ranks, link in [(1, "none"), (2, "none")] + [(2, link) for link in links]:
            time = median(ranks, link)
            lines.append(f"| {workload} | {ranks} | {link} | {time:.1f} | {alone / time:.2f} |")
    print("\n".join(lines))
    (out / "summary.md").write_text("\n".join(lines) + "\n")


main()
