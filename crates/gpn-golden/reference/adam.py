"""Case f: Adam with weight decay."""

import numpy as np
import torch

from .numbers import normal, save

RATE, DECAY, BETAS, ADAM_EPSILON = 1e-3, 1e-5, (0.9, 0.999), 1e-8


def adam_step(step, parameter, gradient, moments):
    """One step of Adam; the weight decay is a part of the gradient."""
    gradient = gradient + DECAY * parameter
    moments[0] = BETAS[0] * moments[0] + (1 - BETAS[0]) * gradient
    moments[1] = BETAS[1] * moments[1] + (1 - BETAS[1]) * gradient**2
    mean, square = moments[0] / (1 - BETAS[0] ** step), moments[1] / (1 - BETAS[1] ** step)
    return parameter - RATE * mean / (square.sqrt() + ADAM_EPSILON)


def write():
    rng = np.random.default_rng(10)
    parameter = normal(rng, 60, 1, 2**-8)
    torch_parameter = parameter.float().requires_grad_()
    optimiser = torch.optim.Adam([torch_parameter], lr=RATE, weight_decay=DECAY)
    arrays, moments = {"p0": parameter}, [0, 0]
    for step in range(12):
        # Gradients of many sizes, and some that are zero for a while.
        gradient = normal(rng, 60, 1, 2**-8) * torch.tensor(2.0 ** rng.integers(-12, 4, 60))
        gradient[: 5 * step] *= step % 3 != 1
        parameter = adam_step(step + 1, parameter, gradient, moments)
        torch_parameter.grad = gradient.float()
        optimiser.step()
        assert (torch_parameter.double() - parameter).abs().max() < 5e-7
        arrays |= {f"grad{step}": gradient, f"p{step + 1}": parameter}
    save("f_adam", arrays)
