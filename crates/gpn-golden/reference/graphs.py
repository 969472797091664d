"""Class graphs: contraction, neighbourhoods, spanning trees. Edges are (parent, child)."""


def spanning_pairs(edges, weights, heaviest=False):
    """Kruskal's algorithm; of equal weights the edge given first is taken."""
    component, pairs = {}, set()

    def top(node):
        while component.get(node, node) != node:
            node = component[node]
        return node

    for at in sorted(range(len(edges)), key=lambda at: -weights[at] if heaviest else weights[at]):
        a, b = (top(node) for node in edges[at])
        if a != b:
            component[a] = b
            pairs.add(frozenset(edges[at]))
    return pairs


def contracted(edges, keep):
    """Edges among kept classes: a parent is every kept class from which a path of removed classes leads down."""
    parents = {}
    for parent, child in edges:
        parents.setdefault(child, []).append(parent)

    def kept_above(node):
        for parent in parents.get(node, []):
            if parent in keep:
                yield parent
            else:
                yield from kept_above(parent)

    return sorted({(parent, child) for child in keep for parent in kept_above(child)})


def reached(edges, targets, hops):
    """The targets and all classes within so many hops through parents and children, sorted."""
    found = set(targets)
    for _ in range(hops):
        found |= {b for a, b in edges if a in found} | {a for a, b in edges if b in found}
    return sorted(found)


def among(edges, nodes):
    return sorted((a, b) for a, b in edges if a in nodes and b in nodes)


def leaves(edges, node):
    below = [child for parent, child in edges if parent == node]
    return frozenset([node]) if not below else frozenset().union(*(leaves(edges, child) for child in below))


def random_hierarchy(rng, count):
    """A graph with one root in which about every third class has a second parent."""
    edges = set()
    for node in range(1, count):
        for _ in range(1 if rng.random() < 0.65 else 2):
            edges.add((int(rng.integers(max(0, node - 12), node)), node))
    return sorted(edges)
