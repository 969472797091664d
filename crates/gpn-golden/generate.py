"""Writes every file of fixtures/: small cases of all that gpn computes, worked out anew from the method's formulas.

    pip install torch numpy pillow
    python generate.py

Nothing here looks at the Rust code, and nothing is read from anywhere: the formulas are those of "Learning to
Propagate for Graph Meta-Learning" (Liu et al., NeurIPS 2019) and of the layers it is built from.

References are computed in float64. Where a network has kinks (ReLU, max pooling, spanning trees, the best class),
the scripts keep the inputs away from them and demand so, and they demand that float32 in PyTorch agrees with float64
far more closely than the tests ask. So no comparison depends on how a processor rounds.

Inputs are multiples of a power of two: the same numbers in float32, and small files. Gradients are stored to about
five digits of the largest one of their tensor, which is a hundredth of what the tests allow. The file names and array
names are described in README.md beside this script.
"""

import torch

from reference import adam, backbone_cases, episodes, evaluations, gnn, graph_cases, images, prior, propagation
from reference.numbers import FIXTURES

PARTS = [propagation, graph_cases, backbone_cases, episodes, evaluations, adam, images, gnn, prior]

if __name__ == "__main__":
    torch.set_num_threads(1)
    FIXTURES.mkdir(exist_ok=True)
    for part in PARTS:
        part.write()
    sizes = {path.name: path.stat().st_size for path in sorted(FIXTURES.iterdir())}
    for name, size in sizes.items():
        print(f"{size:9} {name}")
    print(f"{sum(sizes.values()):9} bytes in all")
    assert sum(sizes.values()) <= 2_000_000, "fixtures take more than 2 MB"
