"""What a task does with prototypes: its trees, its answers."""

import numpy as np
import torch

from .graphs import spanning_pairs
from .numbers import MARGIN, IllConditioned
from .propagation import row_cosines


def task_trees(first, rows, paper):
    """Who hears whom: spanning trees of the strongest relations, of parents to children and the other way.

    The paper takes the cosine of prototypes, the authors' code their distance.
    """
    p, trees = first.detach(), []
    for pairs in (sorted((child, parent) for parent, child in rows), sorted(rows)):
        strength = [(row_cosines(p[a], p[b], 0) if paper else (p[a] - p[b]).norm()).item() for a, b in pairs]
        if len(pairs) > 1 and np.diff(np.sort(strength)).min() < MARGIN:
            raise IllConditioned("two edges are of almost the same strength")
        kept_pairs = spanning_pairs(pairs, strength, heaviest=paper)
        heard = torch.zeros(len(p), len(p), dtype=p.dtype)
        for pair in pairs:
            heard[pair] = frozenset(pair) in kept_pairs
        trees.append(heard)
    return trees


def best_class(logits):
    """The class with the highest value for each query."""
    best = logits.detach().sort(1).values
    if (best[:, -1] - best[:, -2]).min() < 1e-3:
        raise IllConditioned("a query lies between two classes")
    return logits.argmax(1)


def minus_distances(queries, prototypes):
    return -(queries[:, None] - prototypes[None]).square().sum(-1)
