"""ResNet-08 in PyTorch, with the names of weights that gpn's files have."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv_a = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn_a = nn.BatchNorm2d(outputs)
        self.conv_b = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn_b = nn.BatchNorm2d(outputs)
        self.stride = stride

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.bn_b(self.conv_b(F.relu(self.bn_a(self.conv_a(x)))))
        if self.stride > 1:
            x = x[:, :, :: self.stride, :: self.stride]
            x = F.pad(x, (0, 0, 0, 0, 0, out.shape[1] - x.shape[1]))
        return F.relu(out + x)


class ResNet08(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv_1_3x3 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn_1 = nn.BatchNorm2d(16)
        self.stage_1 = nn.Sequential(Block(16, 16, 1))
        self.stage_2 = nn.Sequential(Block(16, 32, 2))
        self.stage_3 = nn.Sequential(Block(32, 64, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = F.relu(self.bn_1(self.conv_1_3x3(x)))
        return F.avg_pool2d(self.stage_3(self.stage_2(self.stage_1(first))), 8).flatten(1)
