"""Backbones: convolutions without bias, each with batch norm."""

import numpy as np
import torch
import torch.nn.functional as F

from .numbers import coarse, normal

NORM_EPSILON, MOMENTUM = 1e-5, 0.1


LEAKY = 0.1


def layers(architecture, width):
    """(convolution, norm, inputs, outputs) of each layer; `width`: channels of conv4, or of four stages."""
    if architecture in ("resnet12", "resnet18"):
        return [(conv, norm, inputs, outputs) for conv, norm, inputs, outputs, _ in stages(architecture, width)]
    if architecture == "conv4":
        return [(f"block_{i}.conv", f"block_{i}.bn", 3 if i == 1 else width, width) for i in (1, 2, 3, 4)]
    blocks = {"resnet08": 1, "resnet20": 3}[architecture]
    found, inputs = [("conv_1_3x3", "bn_1", 3, 16)], 16
    for stage, outputs in enumerate((16, 32, 64), start=1):
        for block in range(blocks):
            name = f"stage_{stage}.{block}"
            found.append((f"{name}.conv_a", f"{name}.bn_a", inputs, outputs))
            found.append((f"{name}.conv_b", f"{name}.bn_b", outputs, outputs))
            inputs = outputs
    return found


def stages(architecture, channels):
    """(convolution, norm, inputs, outputs, kernel) of each layer of ResNet-12 or ResNet-18."""
    found, inputs = [], 3
    if architecture == "resnet18":
        found, inputs = [("conv1", "bn1", 3, channels[0], 7)], channels[0]
    for stage, outputs in enumerate(channels, start=1):
        for block in range(1 if architecture == "resnet12" else 2):
            name, first = f"layer{stage}.{block}", inputs
            for part in (1, 2, 3) if architecture == "resnet12" else (1, 2):
                found.append((f"{name}.conv{part}", f"{name}.bn{part}", inputs, outputs, 3))
                inputs = outputs
            if architecture == "resnet12" or (stage > 1 and block == 0):
                found.append((f"{name}.downsample.0", f"{name}.downsample.1", first, outputs, 1))
    return found


def make_state(rng, architecture, width=None):
    """Parameters and running statistics. Convolutions have the variance 2 / (kernel^2 outputs)."""
    state = {}
    for conv, norm, inputs, outputs in layers(architecture, width):
        kernel = {"conv1": 7}.get(conv, 1 if "downsample" in conv else 3)
        deviation = np.sqrt(2 / (kernel**2 * outputs))
        # Fine steps where values are compared with one another: coarse ones would make ties in max pooling.
        has_ties = architecture in ("conv4", "resnet12", "resnet18")
        step = 2**-16 if has_ties else 2.0 ** np.round(np.log2(deviation / 1.5))
        state[f"{conv}.weight"] = normal(rng, (outputs, inputs, kernel, kernel), deviation, step)
        # Some scales are negative: max pooling must not change places with batch norm.
        signs = np.where(rng.random(outputs) < 0.15, -1, 1)
        state[f"{norm}.weight"] = coarse(signs * rng.uniform(0.5, 1.5, outputs), 2**-8)
        state[f"{norm}.bias"] = normal(rng, outputs, 0.2, 2**-8)
        state[f"{norm}.running_mean"] = torch.zeros(outputs, dtype=torch.float64)
        state[f"{norm}.running_var"] = torch.ones(outputs, dtype=torch.float64)
    return state


class Backbone:
    """One pass over a batch. Notes how near it came to a kink, and the running statistics after it.

    With `settle` it moves every channel by a little (the bias in training, the running mean in evaluation), so that
    zero lies in the middle of the widest gap between the values that go into the ReLU.
    """

    def __init__(self, architecture, state, training, settle=False):
        self.architecture, self.state, self.training, self.settle = architecture, state, training, settle
        self.margin, self.after = float("inf"), {}

    def __call__(self, images):
        if self.architecture == "conv4":
            x = images
            for i in (1, 2, 3, 4):
                x = self.pooled(self.relu(self.conv_norm(x, f"block_{i}.conv", f"block_{i}.bn"), f"block_{i}.bn"))
            return x.flatten(1)
        if self.architecture == "resnet12":
            return self.resnet12(images)
        if self.architecture == "resnet18":
            return self.resnet18(images)
        x = self.relu(self.conv_norm(images, "conv_1_3x3", "bn_1"), "bn_1")
        for conv, norm, inputs, outputs in layers(self.architecture, None)[1:]:
            if conv.endswith("conv_a"):
                stride = 1 if inputs == outputs else 2
                shortcut = x[:, :, ::stride, ::stride]
                if stride == 2:
                    shortcut = torch.cat([shortcut, torch.zeros_like(shortcut)], 1)
                x = self.relu(self.conv_norm(x, conv, norm, stride), norm)
            else:
                x = self.relu(self.conv_norm(x, conv, norm) + shortcut, norm)
        return F.avg_pool2d(x, 8).flatten(1)

    def resnet12(self, x):
        for stage in (1, 2, 3, 4):
            name = f"layer{stage}.0"
            shortcut = self.conv_norm(x, f"{name}.downsample.0", f"{name}.downsample.1")
            for part in (1, 2):
                x = self.relu(self.conv_norm(x, f"{name}.conv{part}", f"{name}.bn{part}"), f"{name}.bn{part}", LEAKY)
            x = self.conv_norm(x, f"{name}.conv3", f"{name}.bn3") + shortcut
            x = self.pooled(self.relu(x, f"{name}.bn3", LEAKY))
        return x.mean((2, 3))

    def resnet18(self, x):
        x = self.pooled_overlapping(self.relu(self.conv_norm(x, "conv1", "bn1", 2), "bn1"))
        for stage in (1, 2, 3, 4):
            for block in (0, 1):
                name, stride, shortcut = f"layer{stage}.{block}", 1, x
                if stage > 1 and block == 0:
                    stride = 2
                    shortcut = self.conv_norm(x, f"{name}.downsample.0", f"{name}.downsample.1", stride)
                x = self.relu(self.conv_norm(x, f"{name}.conv1", f"{name}.bn1", stride), f"{name}.bn1")
                x = self.relu(self.conv_norm(x, f"{name}.conv2", f"{name}.bn2") + shortcut, f"{name}.bn2")
        return x.mean((2, 3))

    def conv_norm(self, x, conv, norm, stride=1):
        weight = self.state[f"{conv}.weight"]
        z = F.conv2d(x, weight, stride=stride, padding=weight.shape[2] // 2)
        if self.settle and self.training:
            self.make_statistics(z, norm)
        mean, variance = (self.state[f"{norm}.running_{part}"] for part in ("mean", "var"))
        if self.training:
            count = z.numel() / z.shape[1]
            batch_mean, batch_variance = z.mean((0, 2, 3)), z.var((0, 2, 3), correction=0)
            for part, old, new in (
                ("mean", mean, batch_mean),
                ("var", variance, batch_variance * count / (count - 1)),
            ):
                self.after[f"{norm}.running_{part}"] = (1 - MOMENTUM) * old + MOMENTUM * new
            mean, variance = batch_mean, batch_variance
        z = (z - mean[:, None, None]) / torch.sqrt(variance + NORM_EPSILON)[:, None, None]
        return z * self.state[f"{norm}.weight"][:, None, None] + self.state[f"{norm}.bias"][:, None, None]

    def make_statistics(self, z, norm):
        """Running statistics that are near those of the batch, so that evaluation has values of the same size."""
        mean, variance = z.mean((0, 2, 3)), z.var((0, 2, 3))
        at = torch.linspace(-1, 1, len(mean), dtype=torch.float64)
        self.state[f"{norm}.running_mean"] = coarse(mean + 0.2 * variance.sqrt() * at, 2**-10)
        self.state[f"{norm}.running_var"] = coarse(variance * (1 - 0.3 * at), 2**-10)

    def relu(self, z, norm, slope=0):
        if self.settle:
            z = z + self.shift(z, norm)[:, None, None]
        self.margin = min(self.margin, z.detach().abs().min().item())
        return F.leaky_relu(z, slope) if slope else torch.relu(z)

    def shift(self, z, norm):
        """Moves the channels of a norm away from the kink and returns by how much."""
        shifts = torch.tensor([-widest_gap(channel) for channel in z.detach().transpose(0, 1).flatten(1).numpy()])
        if self.training:
            old = self.state[f"{norm}.bias"]
            self.state[f"{norm}.bias"] = coarse(old + shifts, 2**-16)
            return self.state[f"{norm}.bias"] - old
        old, variance = (self.state[f"{norm}.running_{part}"] for part in ("mean", "var"))
        slope = -self.state[f"{norm}.weight"] / torch.sqrt(variance + NORM_EPSILON)
        self.state[f"{norm}.running_mean"] = coarse(old + shifts / slope, 2**-16)
        return (self.state[f"{norm}.running_mean"] - old) * slope

    def pooled(self, x):
        """2x2 max pooling. Two values of a window that are nearly the same are a kink as well, unless they are zero."""
        windows = x.detach().unfold(2, 2, 2).unfold(3, 2, 2).flatten(4).sort(-1).values
        gaps = (windows[..., 3] - windows[..., 2])[windows[..., 3] != 0]
        self.margin = min(self.margin, gaps.min().item())
        return F.max_pool2d(x, 2)

    def pooled_overlapping(self, x):
        """3x3 max pooling of stride 2, after a ReLU: with a border of zeros nothing is lost."""
        windows = F.pad(x.detach(), (1, 2, 1, 2)).unfold(2, 3, 2).unfold(3, 3, 2).flatten(4).sort(-1).values
        gaps = (windows[..., 8] - windows[..., 7])[windows[..., 8] > 0]
        self.margin = min(self.margin, gaps.min().item())
        return F.max_pool2d(x, 3, stride=2, padding=1)


def widest_gap(values, reach=0.15):
    """The middle of the widest gap between neighbouring values, not farther than `reach` from zero."""
    near = np.sort(values[np.abs(values) < reach])
    ends = np.concatenate([[-reach], near, [reach]])
    at = np.argmax(np.diff(ends))
    return (ends[at] + ends[at + 1]) / 2
