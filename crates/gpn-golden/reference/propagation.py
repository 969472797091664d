"""Case a: propagation of prototypes in every attention, gate and order."""

import numpy as np
import torch

from .numbers import IllConditioned, coarse, demand_agreement, digits, normal, save_json, single, with_gradients


def cosines(a, b, floor):
    """Cosine of each row of `a` with each row of `b`."""
    norms = [rows.norm(dim=-1).clamp_min(floor) for rows in (a, b)]
    return a @ b.T / (norms[0][:, None] * norms[1])


def row_cosines(a, b, floor):
    norms = [rows.norm(dim=-1).clamp_min(floor) for rows in (a, b)]
    return (a * b).sum(-1) / (norms[0] * norms[1])


def head_shapes(settings, dim):
    hidden = settings["hidden"]
    shapes = {
        "cosine": {"linear_q.weight": (hidden, dim), "linear_k.weight": (hidden, dim)},
        "additive": {
            "w_1.weight": (hidden, dim),
            "w_1.bias": (hidden,),
            "w_2.weight": (hidden, dim),
            "w.weight": (1, hidden),
            "w.bias": (1,),
        },
        "uniform": {},
    }[settings["attention"].split("_")[0]]
    if settings["gate"] == "learned":
        shapes = shapes | {"gate_linear_q.weight": (hidden, dim), "gate_linear_k.weight": (hidden, dim)}
    return shapes


def attention(settings, weights, f, heard):
    """How much of sender j (column) receiver i (row) hears with one head; `heard` says who hears whom."""
    kind = settings["attention"]
    if kind == "uniform":
        scores = torch.zeros_like(heard)
    elif kind.startswith("cosine"):
        scores = cosines(f @ weights["linear_k.weight"].T, f @ weights["linear_q.weight"].T, 1e-4)
        if kind == "cosine_raw":
            return scores * heard
    else:
        receivers = f @ weights["w_1.weight"].T + weights["w_1.bias"]
        units = receivers[:, None] + (f @ weights["w_2.weight"].T)[None]
        if kind == "additive":
            units = torch.tanh(units)
        scores = (units @ weights["w.weight"].T)[..., 0] + weights["w.bias"]
    scores = (settings["attention_temperature"] * scores).masked_fill(heard == 0, -torch.inf)
    silent = heard.sum(1) == 0
    return torch.softmax(scores.masked_fill(silent[:, None], 0), 1) * heard


def gate(settings, weights, own, message, first):
    """Shares of the own prototype and of the message."""
    kind = settings["gate"]
    if kind == "fixed":
        return [torch.full_like(own[:, 0], settings["keep"]), torch.full_like(own[:, 0], 1 - settings["keep"])]
    if kind == "open":
        return [torch.zeros_like(own[:, 0]), torch.ones_like(own[:, 0])]
    if kind == "learned":
        target = first @ weights["gate_linear_k.weight"].T
        scores = [row_cosines(x @ weights["gate_linear_q.weight"].T, target, 1e-4) for x in (own, message)]
        return torch.softmax(torch.stack(scores), 0)
    scores = torch.stack([row_cosines(x, first, 1e-8) for x in (own, message)])
    if kind == "softmax":
        return torch.softmax(settings["gate_temperature"] * scores, 0)
    shares = scores / scores.sum(0)
    assert scores.sum(0).min() > 0.3, "the ratio of cosines is near its pole"
    return shares if kind == "ratio" else torch.softmax(torch.sigmoid(shares), 0)


def directions(settings, parents, children):
    """Who hears whom in each step. `parents[i, j]` is 1 where class i hears its parent j."""
    both, steps = torch.clamp(parents + children, max=1), settings["steps"]
    return {
        "neighbours": [both] * steps,
        "parents": [parents] * steps,
        "children": [children] * steps,
        "forward_then_backward": [parents] * steps + [children] * steps,
        "alternating": [[parents, children][step % 2] for step in range(steps)],
    }[settings["order"]]


def propagate(settings, weights, first, parents, children):
    f = first
    for step, heard in enumerate(directions(settings, parents, children)):
        silent = (heard.sum(1) == 0)[:, None]
        new = 0
        for head in range(settings["heads"]):
            prefix = f"multihead_attention_{step}hop_{head}head."
            own = {name.removeprefix(prefix): w for name, w in weights.items() if name.startswith(prefix)}
            message = attention(settings, own, f, heard) @ f
            message = torch.where(silent, f, message)
            shares = gate(settings, own, f, message, first)
            new = new + (shares[0][:, None] * f + shares[1][:, None] * message) / settings["heads"]
        f = torch.where(silent, f, new)  # A class without neighbours keeps its prototype.
    return f


def make_weights(rng, settings, dim, deviation=0.5, lift=0.0):
    """Weights of all steps and heads; `lift` makes projections, and with them cosines, more positive."""
    steps = len(directions(settings, torch.zeros(1, 1), torch.zeros(1, 1)))
    return {
        f"multihead_attention_{step}hop_{head}head.{name}": normal(rng, shape, deviation, 2**-3) + lift
        for step in range(steps)
        for head in range(settings["heads"])
        for name, shape in head_shapes(settings, dim).items()
    }


ATTENTIONS = ["cosine", "cosine_raw", "additive", "additive_linear", "uniform"]
GATES = ["softmax", "ratio", "sigmoid", "learned", "fixed", "open"]
ORDERS = ["neighbours", "parents", "children", "forward_then_backward", "alternating"]


def write():
    rng = np.random.default_rng(20)
    nodes, targets, dim = 10, 4, 5
    # (receiver, sender). Target 3 has no parents, class 9 no neighbours at all; not every edge goes both ways.
    parents = [(0, 4), (0, 5), (1, 5), (1, 6), (2, 6), (2, 7), (2, 4), (4, 7), (4, 8), (5, 7), (5, 8), (6, 8)]
    children = [(0, 6), (0, 7), (1, 4), (1, 8), (2, 5), (2, 8), (3, 4), (3, 6), (3, 7), (4, 0), (4, 2), (5, 0),
                (5, 1), (6, 1), (6, 2), (7, 4), (7, 5), (8, 4), (8, 5), (8, 6)]  # fmt: skip

    def matrix(pairs):
        heard = torch.zeros(nodes, nodes, dtype=torch.float64)
        for receiver, sender in pairs:
            heard[receiver, sender] = 1
        return heard

    base = {
        "steps": 2, "heads": 2, "hidden": 3, "attention": "cosine", "attention_temperature": 1.0,
        "gate": "softmax", "gate_temperature": 1.0, "keep": 0.25, "order": "neighbours",
    }  # fmt: skip
    chosen = [base | {"attention": a, "gate": g} for a in ATTENTIONS for g in GATES]
    chosen += [base | {"attention": a, "order": o} for a in ATTENTIONS[:3] for o in ORDERS[1:]]
    chosen += [base | {"attention_temperature": 10.0, "gate_temperature": 10.0}]
    chosen += [base | {"attention": a, "attention_temperature": 2.5} for a in ("additive", "uniform")]
    chosen += [base | {"heads": 1, "hidden": 8}, base | {"steps": 1}, base | {"steps": 4, "gate_temperature": 4.0}]
    # PPN: one step from the parents, averaged with the own prototype.
    chosen += [base | {"steps": 1, "heads": 1, "gate": "fixed", "keep": 0.5, "order": "parents"}]

    features = coarse(np.abs(rng.normal(0, 1, (nodes, dim))), 2**-4)
    heard = matrix(parents), matrix(children)
    cases = []
    for settings in chosen:
        # Weights that do not sum to 1 bring ratios of cosines near their pole, unless cosines are positive.
        is_ratio = settings["attention"] == "cosine_raw" and settings["gate"] in ("ratio", "sigmoid")

        def run(settings, features, weights, heard):
            features = features.detach().clone().requires_grad_()
            weights = with_gradients(weights)
            out = propagate(settings, weights, features, *heard)[:targets]
            (out.square().sum() / 2).backward()
            zero = torch.zeros_like
            found = {"out": out, "grad/features": features.grad}
            return found | {f"grad/{k}": zero(v) if v.grad is None else v.grad for k, v in weights.items()}

        what = "propagation " + " ".join(settings[key] for key in ("attention", "gate", "order"))
        while True:
            weights = make_weights(rng, settings, dim, lift=0.5 if is_ratio else 0.0)
            wide = run(settings, features, weights, heard)
            narrow = run(settings, features.float(), single(weights), [h.float() for h in heard])
            try:
                demand_agreement(what, wide, narrow)
                break
            except IllConditioned as reason:
                print("drawn again:", reason)
        cases.append({
            "settings": settings,
            "weights": {name: digits(value) for name, value in weights.items()},
            "out": digits(wide["out"]),
            "grad": {name[5:]: digits(v, 5) for name, v in wide.items() if name.startswith("grad/")},
        })  # fmt: skip
    document = {"nodes": nodes, "targets": targets, "dim": dim, "features": digits(features)}
    document |= {"from_parents": parents, "from_children": children, "cases": cases}
    save_json("a_propagation", document)
