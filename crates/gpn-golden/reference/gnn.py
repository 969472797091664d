"""Case gnn: the few-shot graph network of Garcia and Bruna (2018)."""

import numpy as np
import torch
import torch.nn.functional as F

from .backbone import MOMENTUM, NORM_EPSILON
from .numbers import coarse, digits, normal, save_json

GNN_DIM, GNN_WAY, GNN_HIDDEN, GNN_BLOCKS = 3, 3, 4, 3
GNN_LABELS, GNN_QUERY_LABELS = [0, 1, 2, 0, 2], [2, 0, 1, 1]


def gnn_tensors(rng):
    """Parameters and running statistics by name, multiples of 1/64."""
    tensors = {}

    def norm(name, width):
        tensors[f"{name}.norm.weight"] = coarse(rng.uniform(0.5, 1.5, width), 2**-6)
        tensors[f"{name}.norm.bias"] = normal(rng, width, 0.3, 2**-6)
        tensors[f"{name}.norm.running_mean"] = normal(rng, width, 0.3, 2**-6)
        tensors[f"{name}.norm.running_var"] = coarse(rng.uniform(0.5, 2, width), 2**-6)

    for block in range(GNN_BLOCKS):
        name = f"gnn.block{block}"
        inputs = GNN_DIM + GNN_WAY + block * (GNN_HIDDEN // 2)
        widths = [inputs, 2 * GNN_HIDDEN, 2 * GNN_HIDDEN, GNN_HIDDEN, GNN_HIDDEN]
        for layer in range(4):
            shape = (widths[layer + 1], widths[layer])
            tensors[f"{name}.pairs.layer{layer}.weight"] = normal(rng, shape, 0.7, 2**-6)
            norm(f"{name}.pairs.layer{layer}", widths[layer + 1])
        tensors[f"{name}.pairs.score.weight"] = normal(rng, (1, GNN_HIDDEN), 0.7, 2**-6)
        last = block + 1 == GNN_BLOCKS
        outputs = GNN_WAY if last else GNN_HIDDEN // 2
        tensors[f"{name}.weight"] = normal(rng, (outputs, 2 * inputs), 0.7, 2**-6)
        if last:
            tensors[f"{name}.bias"] = normal(rng, outputs, 0.3, 2**-6)
        else:
            norm(name, outputs)
    return tensors


def gnn_norm(tensors, name, values, training, moved):
    """Batch norm over all but the last axis, then leaky ReLU; `moved` gets the running mean after this batch."""
    rows = values.flatten(0, -2)
    mean, variance = tensors[f"{name}.norm.running_mean"], tensors[f"{name}.norm.running_var"]
    if training:
        moved[f"{name}.norm.running_mean"] = (1 - MOMENTUM) * mean + MOMENTUM * rows.mean(0)
        mean, variance = rows.mean(0), rows.var(0, correction=0)
    values = (values - mean) / torch.sqrt(variance + NORM_EPSILON)
    return F.leaky_relu(values * tensors[f"{name}.norm.weight"] + tensors[f"{name}.norm.bias"], 0.01)


def gnn_forward(tensors, support, queries, training):
    """Logits of all queries, each in a graph of its own, and the moved running means."""
    moved, count, nodes = {}, len(queries), len(support) + 1
    one_hot = torch.eye(GNN_WAY, dtype=torch.float64)[GNN_LABELS]
    fields = torch.cat([one_hot, torch.full((1, GNN_WAY), 1 / GNN_WAY, dtype=torch.float64)])
    x = torch.stack([torch.cat([torch.cat([support, query[None]]), fields], 1) for query in queries])
    i, j = torch.where(~torch.eye(nodes, dtype=bool))
    for block in range(GNN_BLOCKS):
        name = f"gnn.block{block}"
        pairs = (x[:, i] - x[:, j]).abs()
        for layer in range(4):
            pairs = pairs @ tensors[f"{name}.pairs.layer{layer}.weight"].T
            pairs = gnn_norm(tensors, f"{name}.pairs.layer{layer}", pairs, training, moved)
        scores = torch.full((count, nodes, nodes), -torch.inf, dtype=torch.float64)
        scores[:, i, j] = (pairs @ tensors[f"{name}.pairs.score.weight"].T)[..., 0]
        outputs = torch.cat([x, torch.softmax(scores, -1) @ x], -1) @ tensors[f"{name}.weight"].T
        if block + 1 == GNN_BLOCKS:
            return outputs[:, -1] + tensors[f"{name}.bias"], moved
        x = torch.cat([x, gnn_norm(tensors, name, outputs, training, moved)], -1)


def write():
    rng = np.random.default_rng(5)
    tensors = gnn_tensors(rng)
    support = normal(rng, (len(GNN_LABELS), GNN_DIM), 1, 2**-6)
    queries = normal(rng, (len(GNN_QUERY_LABELS), GNN_DIM), 1, 2**-6)
    training, moved = gnn_forward(tensors, support, queries, True)
    evaluation, _ = gnn_forward(tensors, support, queries, False)
    loss = (torch.logsumexp(training, 1) - training[range(len(training)), GNN_QUERY_LABELS]).mean()
    document = {"dim": GNN_DIM, "way": GNN_WAY, "hidden": GNN_HIDDEN, "blocks": GNN_BLOCKS}
    document |= {"support": digits(support), "labels": GNN_LABELS}
    document |= {"queries": digits(queries), "query_labels": GNN_QUERY_LABELS}
    document["tensors"] = {
        name: {"shape": list(value.shape), "values": digits(value)} for name, value in tensors.items()
    }
    document |= {"training_logits": digits(training), "loss": digits(loss)[0]}
    document |= {"moved_means": {name: digits(value) for name, value in moved.items()}}
    save_json("gnn", document | {"evaluation_logits": digits(evaluation)})
