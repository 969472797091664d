"""Cases b and c: spanning trees and task graphs."""

import numpy as np
import torch

from .graphs import among, contracted, leaves, random_hierarchy, reached, spanning_pairs
from .numbers import MARGIN, coarse, save, save_json


def spanning_trees():
    rng = np.random.default_rng(30)
    arrays = {}
    # Nodes, share of edges, number of different distances: few make ties, many none. Sparse graphs fall apart.
    for index, (n, share, levels) in enumerate(
        [(1, 0.5, 9), (2, 1, 9), (5, 0.9, 2), (8, 0.4, 10**6), (12, 0.15, 4), (12, 0.6, 1),
         (20, 0.1, 10**6), (25, 0.05, 3), (30, 0.5, 50), (40, 0.06, 10**6)]
    ):  # fmt: skip
        adjacency = (rng.random((n, n)) < share) & ~np.eye(n, dtype=bool)
        if index % 2:
            adjacency |= adjacency.T  # Both directions of every edge.
        distances = np.triu(rng.integers(1, levels + 1, (n, n)) / 64, 1).astype(np.float32)
        distances = distances + distances.T
        edges = [(int(i), int(j)) for i, j in zip(*np.nonzero(adjacency))]
        weights = [float(distances[edge]) for edge in edges]
        arrays |= {f"g{index:02}/adj": adjacency.astype(np.uint8), f"g{index:02}/dist": distances}
        for name, heaviest in (("tree", False), ("heaviest_tree", True)):
            pairs, tree = spanning_pairs(edges, weights, heaviest), np.zeros((n, n), np.uint8)
            for edge in edges:
                tree[edge] = frozenset(edge) in pairs
            arrays[f"g{index:02}/{name}"] = tree
    save("b_spanning_tree", arrays)


# A piece of WordNet 3.0: entity, physical entity, object, whole, living thing, organism, animal; artifact; matter,
# substance, food, solid food, produce, edible fruit; abstraction and what has it above.
WORDNET = """
n00001740>n00001930 n00001930>n00002684 n00002684>n00003553 n00003553>n00004258 n00004258>n00004475
n00004475>n00015388 n00015388>n01317541 n01317541>n02084071 n00015388>n02075296 n02075296>n02083346
n02083346>n02084071 n02084071>n02087122 n02087122>n02087551 n00003553>n00021939 n00021939>n03405725
n03405725>n04379243 n00001930>n00020827 n00020827>n00020090 n00020090>n00021265 n00020090>n07555863
n07555863>n07707451 n07707451>n07705931 n07705931>n07739125 n00001740>n00002137 n00002137>n00031264
n00031264>n07942152 n07942152>n00007846 n00004475>n00007846 n00007846>n10285313
"""
# Synsets directly below ImageNet's top, and synsets that its release lacks, as far as they occur above.
IMAGENET_TOP = {"n00015388", "n00021939", "n00007846"}
IMAGENET_LACKS = {"n00001740", "n00001930", "n00002684", "n00003553", "n00004258", "n00020827", "n00020090",
                  "n07555863", "n00002137"}  # fmt: skip


def imagenet_cut(edges, leaves):
    """ImageNet's tree of fall 2011 over some leaves. What is neither at its top nor below hangs below `fa11misc` too."""
    needed = set(leaves)
    for _ in edges:
        needed |= {parent for parent, child in edges if child in needed}
    present = needed - IMAGENET_LACKS
    inner = among(edges, present)
    below = IMAGENET_TOP & present
    for _ in edges:
        below |= {child for parent, child in inner if parent in below}
    cut = [("root", "fall11"), *inner, *(("fall11", top) for top in IMAGENET_TOP & present)]
    if present - below:
        cut += [("fall11", "fa11misc"), *(("fa11misc", other) for other in present - below)]
    return sorted(cut)


def graphs():
    rng = np.random.default_rng(40)
    count, training, dim = 60, 42, 16
    whole = random_hierarchy(rng, count)
    # Numbers are shuffled, so that test classes lie anywhere below the root.
    order = [0, *(int(n) + 1 for n in rng.permutation(count - 1))]
    whole = sorted((order[a], order[b]) for a, b in whole)
    train_nodes = set(range(training))
    train = contracted(whole, train_nodes)
    document = {"graphs": {"train": train, "close_all": whole}, "training": training}
    document |= {"pruning": [], "train_graph": [], "test_graph": [], "nohier_graph": [], "facts": []}
    memory = coarse(rng.normal(0, 1, (training, dim)), 2**-8)
    support = coarse(rng.normal(0, 1, (5, dim)), 2**-8)
    distances = torch.cdist(support, memory)
    for hops in (1, 2, 3, 2, 1, 2):
        targets = [int(t) for t in rng.choice(np.arange(training, count), 5, replace=False)]
        for name, others in (("targets", set()), ("targets and training classes", train_nodes)):
            keep = set(targets) | others
            document["pruning"].append({
                "split": "close", "targets": targets, "candidates": name,
                "nodes": sorted(keep), "edges_parent_child": contracted(whole, keep),
            })  # fmt: skip
        graph = contracted(whole, set(targets) | train_nodes)
        nodes = reached(graph, targets, hops)
        document["test_graph"].append({
            "split": "close", "targets": targets, "n_hop": hops,
            "nodes_sorted": nodes, "edges_parent_child": among(graph, nodes),
        })  # fmt: skip
        chosen = [int(t) for t in rng.choice(np.arange(1, training), 4, replace=False)]
        nodes = reached(train, chosen, hops)
        document["train_graph"].append({
            "targets": chosen, "n_hop": hops, "nodes_sorted": nodes, "edges_parent_child": among(train, nodes),
        })  # fmt: skip
        # Hierarchy unknown: a target is joined to its nearest prototypes as their parent; the hops begin at those.
        near = 2 if hops < 3 else 3
        ordered = distances.sort(1)
        assert (ordered.values[:, 1 : near + 1] - ordered.values[:, :near]).min() > MARGIN
        linked = [(t, int(n)) for t, row in zip(targets, ordered.indices[:, :near]) for n in row]
        nodes = reached(train + linked, targets, hops + 1)
        document["nohier_graph"].append({
            "targets": targets, "n_nei": near, "n_hop": hops,
            "nodes_sorted": nodes, "edges_parent_child": among(train + linked, nodes),
        })  # fmt: skip
    of_class = [leaves(whole, node) for node in range(count)]
    for node in range(count):
        distance = next(hops for hops in range(count) if set(reached(whole, [node], hops)) & train_nodes)
        twins = sum(of_class[other] == of_class[node] for other in range(count)) - 1
        facts = {"class": node, "n_leaves": len(of_class[node]), "dist_to_train": distance}
        document["facts"].append(facts | {"same_leafset_as_n_other_classes": twins})
    wordnet = [tuple(edge.split(">")) for edge in WORDNET.split()]
    document["imagenet_cut"] = [
        {"wordnet": wordnet, "leaves": some, "edges_parent_child": imagenet_cut(wordnet, some)}
        for some in (
            ["n02087551", "n04379243"],
            ["n02087551", "n07739125"],
            ["n10285313", "n04379243", "n02083346"],
            ["n07739125"],
        )
    ]
    save_json("c_graphs", document)
    save("c_nohier_inputs", {"memory": memory, "support_prototypes": support})


def write():
    spanning_trees()
    graphs()
