#!/usr/bin/env python3
"""Is learned propagation better than the closed form, once its gate and attention are told K and hops?

    bench/learned_gate.py BENCHMARK MODEL TASKS.json... [--space half-whitened]

BENCHMARK is a directory of `gpn data build` (images of 32x32), MODEL a ResNet-08 trained on it, TASKS fixed tasks of its Close or Far
classes (numbers of classes as `gpn eval --tasks-file` takes them). The backbone stays as it is. A class hears from every training class
within eight hops up or down; attention knows hops, direction and the cosine of learned projections, the gate knows the number K of
samples and the hops to the nearest relatives. Both are trained on tasks of training classes, of which a third to nine tenths count as unknown,
with K drawn from 1 to 10, and answer the fixed tasks. Beside it: the nearest mean and equal shares of all relatives at a gate of one half.
The prior's row of the same tasks is that of `gpn eval MODEL --method prior --tasks-file`. Needs PyTorch.
"""
import argparse, csv, json, pathlib, struct

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from torch_step import ResNet08

HOPS = 8
# Shares of the training classes that count as unknown, as in the fit of the prior.
HIDDEN = [1 / 3, 2 / 3, 0.9]
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)


def backbone(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    state = {}
    for name, info in header.items():
        if name.startswith("emb.") and "fc_" not in name:
            start, end = info["data_offsets"]
            values = np.frombuffer(data[start:end], np.float32).reshape(info["shape"]).copy()
            name = name[4:]
            for stage in (1, 2, 3):
                name = name.replace(f"stage_{stage}.0.", f"stages.{stage - 1}.")
            state[name] = torch.tensor(values)
    network = ResNet08()
    missing = network.load_state_dict(state, strict=False).missing_keys
    assert all("num_batches" in name for name in missing), missing
    return network.eval()


def embedded(network, images):
    """After the test transform: resized to 43, centre of 32."""
    rows = []
    with torch.no_grad():
        for start in range(0, len(images), 1024):
            x = torch.tensor(images[start : start + 1024]).permute(0, 3, 1, 2).float() / 255
            x = F.interpolate(x, size=(43, 43), mode="bilinear", align_corners=False)[:, :, 6:38, 6:38]
            rows.append(network(((x - MEAN) / STD).contiguous(memory_format=torch.channels_last)))
    return torch.cat(rows)


def half_whitened(rows, samples):
    """Centred, of length 1, whitened by half."""
    rows = F.normalize(rows - torch.stack([rows[own].mean(0) for own in samples]).mean(0), dim=1)
    scatter = sum((rows[own] - rows[own].mean(0)).T @ (rows[own] - rows[own].mean(0)) for own in samples)
    scatter /= sum(len(own) - 1 for own in samples)
    scatter = 0.5 * scatter + 0.5 * scatter.trace() / len(scatter) * torch.eye(len(scatter))
    values, vectors = torch.linalg.eigh(scatter)
    return rows @ (vectors / values.sqrt())


class Benchmark:
    def __init__(self, folder):
        def table(name):
            with open(folder / name, newline="", encoding="utf-8") as file:
                return list(csv.DictReader(file))

        classes = table("classes.csv")
        self.node = {row["id"]: place for place, row in enumerate(classes)}
        self.split = [row["split"] for row in classes]
        self.training = [place for place, split in enumerate(self.split) if split == "train"]
        up = [[] for _ in classes]
        down = [[] for _ in classes]
        for row in table("taxonomy.csv"):
            if row["child"] in self.node and row["parent"] in self.node:
                child, parent = self.node[row["child"]], self.node[row["parent"]]
                up[child].append(parent)
                down[parent].append(child)
        # (class, hops, 0 up or 1 down) of every class within HOPS of each.
        self.relatives = [self.reached(up, place, 0) + self.reached(down, place, 1) for place in range(len(classes))]
        self.samples = [[] for _ in classes]
        for row in table("assignments.csv"):
            if row["part"] == "train":
                self.samples[self.node[row["class"]]].append(int(row["sample"]))
        self.images = np.load(folder / "images.npy", mmap_mode="r")

    @staticmethod
    def reached(edges, start, way):
        found, front = {}, [start]
        for hops in range(1, HOPS + 1):
            front = [near for place in front for near in edges[place] if near not in found and near != start]
            found.update((place, hops) for place in front)
        return [(place, hops, way) for place, hops in found.items()]

    def numbered(self, split):
        """Classes as fixed tasks number them: training classes, then those of the split."""
        return self.training + [place for place, of in enumerate(self.split) if of == split]


class Told(nn.Module):
    """Attention over relatives and a gate, both told what they need to know."""

    def __init__(self, dim, heads=4, hidden=32):
        super().__init__()
        self.query = nn.Linear(dim, heads * hidden, bias=False)
        self.key = nn.Linear(dim, heads * hidden, bias=False)
        self.by_hops = nn.Parameter(torch.zeros(heads, 2, HOPS + 1))
        self.sharpness = nn.Parameter(torch.ones(heads))
        self.gate = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
        self.shape = heads, hidden

    def forward(self, mean, shots, relatives, means):
        """A prototype for the mean of `shots` samples; `relatives` are (class, hops, way), `means` of training classes."""
        if not relatives:
            return mean
        places, hops, ways = (torch.tensor(column) for column in zip(*relatives))
        heads, hidden = self.shape
        told = means[places]
        cosine = F.cosine_similarity(
            self.query(mean).view(heads, 1, hidden), self.key(told).view(-1, heads, hidden).transpose(0, 1), dim=2
        )
        weights = torch.softmax(self.sharpness[:, None] * cosine + self.by_hops[:, ways, hops], dim=1).mean(0)
        message = weights @ told
        nearest = [min((h for _, h, w in relatives if w == way), default=HOPS + 1) for way in (0, 1)]
        features = [np.log(shots), *nearest, np.log(len(relatives)), F.cosine_similarity(mean, message, dim=0).item()]
        share = torch.sigmoid(self.gate(torch.tensor(features, dtype=torch.float32)))
        return share * mean + (1 - share) * message


def prototypes(model, rows, classes, support, benchmark, known, means):
    made = []
    for place, own in zip(classes, support):
        near = [relative for relative in benchmark.relatives[place] if known[relative[0]] and relative[0] not in classes]
        made.append(model(rows[own].mean(0), len(own), near, means))
    return torch.stack(made)


def train(benchmark, rows, means, tasks, rng):
    model = Told(rows.shape[1])
    log_scale = nn.Parameter(torch.tensor(np.log(1 / (2 * (rows[benchmark.samples[benchmark.training[0]]].var(0).sum()).item()))))
    optimiser = torch.optim.Adam([*model.parameters(), log_scale], lr=3e-3)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, tasks // 8)
    losses = []
    for task in range(tasks):
        known = np.zeros(len(benchmark.split), bool)
        known[benchmark.training] = True
        known[rng.choice(benchmark.training, int(rng.choice(HIDDEN) * len(benchmark.training)), replace=False)] = False
        classes = rng.choice(benchmark.training, 5, replace=False).tolist()
        shots = int(rng.integers(1, 11))
        drawn = [rng.permutation(benchmark.samples[place])[: shots + 5].tolist() for place in classes]
        made = prototypes(model, rows, classes, [own[:-5] for own in drawn], benchmark, known, means)
        queries = rows[[sample for own in drawn for sample in own[-5:]]]
        logits = -log_scale.exp() * torch.cdist(queries, made).square()
        losses.append(F.cross_entropy(logits, torch.arange(5).repeat_interleave(5)))
        if len(losses) == 8:
            optimiser.zero_grad()
            torch.stack(losses).mean().backward()
            optimiser.step()
            decay.step()
            losses = []
        if (task + 1) % 4000 == 0:
            print(f"{task + 1} tasks", flush=True)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("tasks", type=pathlib.Path, nargs="+")
    parser.add_argument("--space", choices=["raw", "half-whitened"], default="half-whitened")
    parser.add_argument("--training-tasks", type=int, default=16000)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    benchmark = Benchmark(arguments.benchmark)
    rows = embedded(backbone(arguments.model), benchmark.images)
    if arguments.space == "half-whitened":
        rows = half_whitened(rows, [benchmark.samples[place] for place in benchmark.training])
    means = torch.zeros(len(benchmark.split), rows.shape[1])
    for place in benchmark.training:
        means[place] = rows[benchmark.samples[place]].mean(0)
    model = train(benchmark, rows, means, arguments.training_tasks, np.random.default_rng(0))
    known = np.zeros(len(benchmark.split), bool)
    known[benchmark.training] = True

    def halved(mean, shots, relatives, means):
        return mean if not relatives else 0.5 * mean + 0.5 * means[[place for place, _, _ in relatives]].mean(0)

    for path in arguments.tasks:
        numbers = benchmark.numbered("far" if "far" in path.name else "close")
        found = {"nearest mean": [], "half of all relatives": [], "told K and hops": []}
        for task in json.loads(path.read_text()):
            classes = [numbers[number] for number in task["classes"]]
            queries = rows[sum(task["query"], [])]
            labels = torch.arange(len(classes)).repeat_interleave(torch.tensor([len(own) for own in task["query"]]))
            with torch.no_grad():
                for name, method in [("nearest mean", lambda mean, *_: mean), ("half of all relatives", halved), ("told K and hops", model)]:
                    made = prototypes(method, rows, classes, task["support"], benchmark, known, means)
                    right = torch.cdist(queries, made).argmin(1) == labels
                    found[name].append(100 * right.float().mean().item())
        for name, values in found.items():
            print(f"{path.stem}: {name} {np.mean(values):.2f}+-{1.96 * np.std(values) / len(values) ** 0.5:.2f}", flush=True)


if __name__ == "__main__":
    main()
