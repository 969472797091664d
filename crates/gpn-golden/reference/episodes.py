"""Case e: a whole episode of training, images to gradients."""

import numpy as np
import torch

from .adam import adam_step
from .backbone import Backbone
from .backbone_cases import make_images, settled
from .graphs import among, random_hierarchy, reached
from .numbers import coarse, demand_agreement, is_parameter, kept, sampled, save, single, with_gradients
from .propagation import make_weights, propagate
from .task import best_class, minus_distances, task_trees


def episode_case(seed, name, paper, way, shot, queries, every):
    """Images to gradients. `paper` and `reference` differ in attention, spanning tree and what the loss moves."""
    rng = np.random.default_rng(seed)
    classes, hops, lam, dim = 24, 2, 0.3, 64
    edges = random_hierarchy(rng, classes)
    targets = [int(t) for t in rng.choice(np.arange(1, classes), way, replace=False)]
    nodes = targets + [n for n in reached(edges, targets, hops) if n not in targets]
    row = {node: at for at, node in enumerate(nodes)}
    rows = [(row[a], row[b]) for a, b in among(edges, nodes)]
    kinds = np.repeat(np.arange(way), shot + queries)
    images = make_images(rng, len(kinds), 32, 32, kinds)
    is_support = np.tile(np.arange(shot + queries) < shot, way)
    labels = torch.tensor(kinds[~is_support])
    memory = coarse(np.abs(rng.normal(0.4, 0.5, (classes, dim))), 2**-6)
    settings = {
        "steps": 2, "heads": 2, "hidden": 8, "attention": "cosine_raw" if paper else "cosine",
        "attention_temperature": 1.0, "gate": "softmax", "gate_temperature": 1.0, "order": "neighbours",
    }  # fmt: skip
    state, margin = settled(rng, "resnet08", images)
    weights = {f"prop.{key}": value for key, value in make_weights(rng, settings, dim).items()}

    def run(state, weights, images, memory):
        state, weights = with_gradients(state), with_gradients(weights)
        backbone = Backbone("resnet08", state, True)
        embeddings = backbone(images)
        own = embeddings[is_support].reshape(way, shot, dim).mean(1)
        if not paper:
            own = own.detach()
        first = torch.cat([own, memory[nodes[way:]]])
        trees = task_trees(first, rows, paper)
        inner = {key.removeprefix("prop."): value for key, value in weights.items()}
        last = propagate(settings, inner, first, *trees)[:way]
        final = lam * own + (1 - lam) * last
        logits = minus_distances(embeddings[~is_support], final)
        loss = (torch.logsumexp(logits, 1) - logits.gather(1, labels[:, None])[:, 0]).mean()
        loss.backward()
        found = {"prototypes": first, "logits": logits, "loss": loss}
        found["acc"] = 100 * (best_class(logits) == labels).to(images.dtype).mean()
        found |= {f"grad/emb.{key}": value.grad for key, value in state.items() if is_parameter(key)}
        found |= {f"grad/{key}": value.grad for key, value in weights.items()}
        found |= {f"bn_after/{key}": value for key, value in backbone.after.items()}
        return found, trees

    wide, trees = run(state, weights, images, memory)
    narrow, _ = run(single(state), single(weights), images.float(), memory.float())
    accuracy = wide["acc"].item()
    demand_agreement(f"{name}, margin {margin:.1e}, accuracy {accuracy:.0f}", wide, narrow)
    everything = {f"emb.{key}": value for key, value in state.items()} | weights
    arrays = {"imgs": images, "labels": np.array(targets)[kinds], "memory": memory}
    arrays |= {f"state/{key}": value for key, value in everything.items()}
    arrays |= {"lam": np.float32(lam), "way": np.int64(way), "shot": np.int64(shot), "hops": np.int64(hops)}
    arrays |= {"nodes": np.array(nodes), "edges_parent_child": np.array(edges), "grad_every": np.int64(every)}
    parents = np.zeros((len(nodes), len(nodes)), np.uint8)
    for parent, child in rows:
        parents[child, parent] = 1
    arrays |= {"forward_adj": parents, "backward_adj": parents.T}
    for key, heard in zip(("mst_forward", "mst_backward"), trees):
        arrays[key] = heard.numpy().astype(np.uint8)
    for key, value in wide.items():
        arrays[key] = kept(key, value, every)
        if key.startswith("grad/"):
            tensor = key.removeprefix("grad/")
            after = steady_step(f"{name} {tensor}", everything[tensor], value)
            arrays[f"after_adam/{tensor}"] = sampled(after.numpy(), every)
    save(name, arrays)


def steady_step(what, parameter, gradient):
    """The parameter after Adam's first step, which is nearly the sign of a gradient; NaN where rounding may turn it."""
    largest = gradient.abs().max()
    low, after, high = (adam_step(1, parameter, gradient + sign * 1e-5 * largest, [0, 0]) for sign in (-1, 0, 1))
    is_steady = torch.maximum((after - low).abs(), (after - high).abs()) < 2e-6
    assert is_steady.double().mean() > 0.995, (what, is_steady.double().mean())
    return torch.where(is_steady, coarse(after, 2**-22), torch.nan)


def write():
    episode_case(50, "e_episode_reference", False, way=3, shot=1, queries=2, every=7)
    episode_case(51, "e_episode_paper", True, way=4, shot=2, queries=1, every=13)
