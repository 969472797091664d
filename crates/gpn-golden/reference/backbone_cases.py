"""Cases d: backbones and the classifier in training and evaluation, with gradients."""

from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F

from .backbone import Backbone, make_state
from .numbers import MARGIN, coarse, demand_agreement, is_parameter, kept, normal, save, single, with_gradients


def make_images(rng, count, height, width, classes=None):
    """Noise over a wave; images of the same class have the same wave."""
    y, x = np.mgrid[0:height, 0:width]
    classes = np.arange(count) if classes is None else np.asarray(classes)
    waves = rng.uniform(0.1, 0.6, (classes.max() + 1, 3, 2)), rng.uniform(0, 6, (classes.max() + 1, 3))
    images = [
        np.sin(waves[0][c, :, 0, None, None] * x + waves[0][c, :, 1, None, None] * y + waves[1][c, :, None, None])
        + rng.normal(0, 0.6, (3, height, width))
        for c in classes
    ]
    return coarse(np.stack(images), 2**-4)


def settled(rng, architecture, images, width=None):
    """A state for which neither training nor evaluation on `images` comes near a kink, and how far it stays away."""
    for _ in range(50):
        state = make_state(rng, architecture, width)
        margins = []
        for training in (True, False):
            with torch.no_grad():
                Backbone(architecture, state, training, settle=True)(images)
                check = Backbone(architecture, state, training)
                check(images)
            margins.append(check.margin)
        if min(margins) >= MARGIN:
            return state, min(margins)
    raise AssertionError(f"{architecture}: no state stays away from its kinks: {margins}")


def backbone_pass(architecture, state, images, training):
    """Output, gradients of sum(out^2) / 1000 and statistics after it."""
    state, images = with_gradients(state), images.detach().clone().requires_grad_()
    backbone = Backbone(architecture, state, training)
    out = backbone(images)
    (out.square().sum() / 1000).backward()
    found = {"out": out, "grad_x": images.grad}
    found |= {f"grad/{name}": tensor.grad for name, tensor in state.items() if is_parameter(name)}
    if training:
        found |= {f"buffers_after/{name}": tensor for name, tensor in backbone.after.items()}
    return found


def backbone_case(seed, name, architecture, shape, every, width=None):
    rng = np.random.default_rng(seed)
    images = make_images(rng, *shape)
    state, margin = settled(rng, architecture, images, width)
    arrays = {"x": images, "margin": np.float32(margin), "grad_every": np.int64(every)}
    arrays |= {f"state/{key}": value for key, value in state.items()}
    for training, tag in ((True, "train"), (False, "eval")):
        wide = backbone_pass(architecture, state, images, training)
        narrow = backbone_pass(architecture, single(state), images.float(), training)
        demand_agreement(f"{name} {tag}, margin {margin:.1e}", wide, narrow)
        arrays |= {f"{tag}/{key}": kept(key, value, every) for key, value in wide.items()}
    save(name, arrays)
    return state, images


def classifier_case(seed, name, state, images, classes=7, every=7):
    """Cross entropy of a linear classifier, in training mode, through the backbone."""
    rng = np.random.default_rng(seed)
    dim = 64
    head = {
        "fc_classifier.weight": normal(rng, (classes, dim), 0.3, 2**-6),
        "fc_classifier.bias": normal(rng, classes, 0.3, 2**-6),
    }
    labels = torch.tensor(rng.integers(0, classes, len(images)))

    def run(state, images):
        state = with_gradients(state)
        logits = F.linear(
            Backbone("resnet08", state, True)(images),
            state["fc_classifier.weight"],
            state["fc_classifier.bias"],
        )
        loss = (torch.logsumexp(logits, 1) - logits.gather(1, labels[:, None])[:, 0]).mean()
        loss.backward()
        found = {"logits": logits, "loss": loss}
        return found | {f"grad/{key}": value.grad for key, value in state.items() if is_parameter(key)}

    wide = run(state | head, images)
    demand_agreement(name, wide, run(single(state | head), images.float()))
    arrays = {f"state/{key}": value for key, value in (state | head).items()}
    arrays |= {"labels": labels, "grad_every": np.int64(every)}
    arrays |= {"fc_weight": head["fc_classifier.weight"], "fc_bias": head["fc_classifier.bias"]}
    arrays |= {key: kept(key, value, every) for key, value in wide.items()}
    save(name, arrays)


def mlp_case(seed, name, lengths):
    """Linear layers with ReLU between them, over given embeddings; training and evaluation are the same."""
    rng = np.random.default_rng(seed)
    samples, state = normal(rng, (5, lengths[0]), 1, 2**-8), {}
    for index, (inputs, outputs) in enumerate(pairwise(lengths)):
        state[f"layers.{index}.weight"] = normal(rng, (outputs, inputs), inputs**-0.5, 2**-8)
        state[f"layers.{index}.bias"] = normal(rng, outputs, 0.3, 2**-8)

    def run(state, samples):
        state, samples, margin = with_gradients(state), samples.detach().clone().requires_grad_(), float("inf")
        x = samples
        for index in range(len(lengths) - 1):
            if index:
                margin = min(margin, x.detach().abs().min().item())
                x = torch.relu(x)
            x = F.linear(x, state[f"layers.{index}.weight"], state[f"layers.{index}.bias"])
        (x.square().sum() / 1000).backward()
        assert margin > MARGIN, margin
        found = {"out": x, "grad_x": samples.grad} | {f"grad/{key}": value.grad for key, value in state.items()}
        return found, margin

    wide, margin = run(state, samples)
    demand_agreement(f"{name}, margin {margin:.1e}", wide, run(single(state), samples.float())[0])
    arrays = {"x": samples, "margin": np.float32(margin)} | {f"state/{key}": value for key, value in state.items()}
    for tag in ("train", "eval"):
        arrays |= {f"{tag}/{key}": kept(key, value, 1) for key, value in wide.items()}
    save(name, arrays)


def write():
    state, images = backbone_case(1, "d_resnet08_32", "resnet08", (4, 32, 32), every=5)
    classifier_case(2, "d_resnet08_32_classifier", state, images)
    backbone_case(3, "d_resnet08_30x37", "resnet08", (4, 30, 37), every=13)
    backbone_case(4, "d_resnet20_32", "resnet20", (2, 32, 32), every=31)
    backbone_case(5, "d_conv4_32", "conv4", (3, 32, 32), every=7, width=10)
    backbone_case(6, "d_conv4_19x35", "conv4", (9, 19, 35), every=7, width=5)
    mlp_case(7, "d_mlp_12", (12, 16, 10, 8))
    backbone_case(8, "d_resnet12_17x22", "resnet12", (4, 17, 22), every=11, width=(6, 8, 10, 12))
    backbone_case(9, "d_resnet18_37x33", "resnet18", (4, 37, 33), every=17, width=(8, 8, 10, 12))
