"""Times the benchmark workloads in PyTorch: eager, channels-last, float32.

Prints one JSON line per workload: {"engine", "workload", "step_ms": [...], "peak_mb"}. The Rust engine's
counterpart is the example `bench_step` of gpn-model; `run.py` interleaves the two.
"""

import argparse
import json
import resource
import time

import torch
import torch.nn.functional as F
from torch import nn

CLASSES = 773


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut without parameters."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv_a = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn_a = nn.BatchNorm2d(outputs)
        self.conv_b = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn_b = nn.BatchNorm2d(outputs)
        self.stride = stride

    def forward(self, x):
        out = F.relu(self.bn_a(self.conv_a(x)), inplace=True)
        out = self.bn_b(self.conv_b(out))
        if self.stride > 1:
            x = x[:, :, :: self.stride, :: self.stride]
            x = F.pad(x, (0, 0, 0, 0, 0, out.shape[1] - x.shape[1]))
        return F.relu(out + x, inplace=True)


class ResNet08(nn.Module):
    """3x3 convolution, three basic blocks, average pooling over 8x8."""

    def __init__(self):
        super().__init__()
        self.conv_1_3x3 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn_1 = nn.BatchNorm2d(16)
        self.stages = nn.Sequential(BasicBlock(16, 16, 1), BasicBlock(16, 32, 2), BasicBlock(32, 64, 2))

    def forward(self, x):
        x = F.relu(self.bn_1(self.conv_1_3x3(x)), inplace=True)
        return F.avg_pool2d(self.stages(x), 8).flatten(1)


class Conv4(nn.Sequential):
    """Four blocks of 3x3 convolution, batch norm, ReLU and max pooling."""

    def __init__(self, width=64):
        layers = []
        for inputs in (3, width, width, width):
            layers += [nn.Conv2d(inputs, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)]
            layers += [nn.ReLU(inplace=True), nn.MaxPool2d(2)]
        super().__init__(*layers, nn.Flatten())


class WideBlock(nn.Module):
    """Three 3x3 convolutions with leaky ReLU, a 1x1 convolution as shortcut, max pooling."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv2d(before, outputs, 3, 1, 1, bias=False) for before in (inputs, outputs, outputs)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(3))
        self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        out = x
        for number, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            out = norm(conv(out))
            if number < 2:
                out = F.leaky_relu(out, 0.1, inplace=True)
        return F.max_pool2d(F.leaky_relu(out + self.downsample(x), 0.1, inplace=True), 2)


class ResNet12(nn.Sequential):
    """Four wide blocks, mean over all pixels."""

    def __init__(self):
        blocks = [WideBlock(i, o) for i, o in ((3, 64), (64, 160), (160, 320), (320, 640))]
        super().__init__(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())


class ProjectedBlock(nn.Module):
    """Two 3x3 convolutions; a 1x1 convolution as shortcut where the image is halved."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = nn.Identity()
        if stride > 1:
            project = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.downsample = nn.Sequential(project, nn.BatchNorm2d(outputs))

    def forward(self, x):
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        return F.relu(out + self.downsample(x), inplace=True)


class ResNet18(nn.Sequential):
    """torchvision's layers without the classifier."""

    def __init__(self):
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
        layers.append(nn.MaxPool2d(3, 2, 1))
        for inputs, outputs, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
            layers += [ProjectedBlock(inputs, outputs, stride), ProjectedBlock(outputs, outputs, 1)]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def images(n, size):
    return torch.randn(n, 3, size, size).contiguous(memory_format=torch.channels_last)


def classifier_step(network, n, size):
    """One training step with a linear classifier over all classes."""
    network = network.to(memory_format=torch.channels_last).train()
    x, labels = images(n, size), torch.randint(CLASSES, (n,))
    with torch.no_grad():
        length = network(x[:2]).shape[1]
    head = nn.Linear(length, CLASSES)
    optimiser = torch.optim.Adam([*network.parameters(), *head.parameters()], lr=1e-3, weight_decay=1e-5)

    def step():
        optimiser.zero_grad(set_to_none=True)
        loss = F.cross_entropy(head(network(x)), labels)
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def episode_step(way, shot, queries, size):
    """One training step of a few-shot episode: prototypes, squared distances, cross entropy."""
    network = ResNet08().to(memory_format=torch.channels_last).train()
    x = images(way * (shot + queries), size)
    labels = torch.arange(way).repeat_interleave(queries)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-5)

    def step():
        optimiser.zero_grad(set_to_none=True)
        embeddings = network(x)
        prototypes = embeddings[: way * shot].view(way, shot, -1).mean(1)
        distances = (embeddings[way * shot :, None] - prototypes[None]).pow(2).sum(2)
        loss = F.cross_entropy(-distances, labels)
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def inference_step(n, size):
    """Embeddings of a batch, batch norm in evaluation mode."""
    network = ResNet08().to(memory_format=torch.channels_last).eval()
    x = images(n, size)

    def step():
        with torch.inference_mode():
            return network(x).sum().item()

    return step


WORKLOADS = {
    "W1": lambda: classifier_step(ResNet08(), 128, 32),
    "W2": lambda: classifier_step(ResNet08(), 128, 64),
    "W3": lambda: classifier_step(ResNet08(), 128, 84),
    "W4": lambda: episode_step(5, 1, 1, 64),
    "W5": lambda: episode_step(5, 5, 5, 64),
    "W6": lambda: inference_step(256, 64),
    "W7": lambda: classifier_step(Conv4(), 128, 64),
    "W8": lambda: classifier_step(ResNet12(), 64, 84),
    "W9": lambda: classifier_step(ResNet18(), 32, 224),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS), help="W1 to W9 (default: all)")
    parser.add_argument("--seconds", type=float, default=3.0, help="time per workload after warm-up")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--engine", default="torch", help="name in the output")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    for name in arguments.workloads:
        step = WORKLOADS[name]()
        start = time.perf_counter()
        for _ in range(3):
            step()
            if time.perf_counter() - start > 1:
                break
        times, start = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - start < arguments.seconds:
            begin = time.perf_counter()
            step()
            times.append(round(1e3 * (time.perf_counter() - begin), 4))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        line = {"engine": arguments.engine, "workload": name, "step_ms": times, "peak_mb": round(peak, 1)}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
