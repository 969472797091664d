"""Numbers that float32 holds exactly, how closely results must agree, and the files they are written to."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import torch

FIXTURES = Path(__file__).parents[1] / "fixtures"
OUTPUTS, GRADIENTS = 1e-5, 5e-5  # how closely float32 must agree with float64; tests ask for 1e-4 and 1e-3
VANISHING = 1e-12  # gradients below this are zero by the formula
MARGIN = 1e-4  # how far values stay from a kink


def coarse(values, step):
    """The nearest multiples of `step`, a power of two."""
    return torch.tensor(np.round(np.asarray(values) / step) * step, dtype=torch.float64)


def normal(rng, shape, deviation, step):
    return coarse(rng.normal(0, deviation, shape), step)


def shortened(gradient):
    """A gradient to 2^-17 of its largest value."""
    gradient = gradient.detach().numpy()
    largest = np.abs(gradient).max()
    if largest < VANISHING:
        return np.zeros(gradient.shape, np.float32)  # A gradient that vanishes by the formula.
    step = 2.0 ** (np.floor(np.log2(largest)) - 16)
    return (np.round(gradient / step) * step).astype(np.float32)


class IllConditioned(Exception):
    """Rounding shows in a result: another input must be drawn."""


def demand_agreement(what, wide, narrow):
    """Float64 and float32 results by name; gradients are compared relative to the largest value of a tensor."""
    worst = {"outputs": 0.0, "gradients": 0.0}
    steepest = max((value.abs().max().item() for name, value in wide.items() if "grad" in name), default=1)
    for name, expected in wide.items():
        expected, got = expected.detach(), narrow[name].detach().double()
        difference = (expected - got).abs().max().item()
        if "grad" in name:
            largest = expected.abs().max().item()
            # Of a gradient that vanishes by the formula rounding alone is left, a millionth of the others.
            difference /= largest if largest > VANISHING else 0.02 * steepest
        kind = "gradients" if "grad" in name else "outputs"
        worst[kind] = max(worst[kind], difference)
        if difference > (GRADIENTS if kind == "gradients" else OUTPUTS):
            raise IllConditioned(f"{what} {name}: {difference:.1e}")
    print(f"{what}: float32 differs by {worst['outputs']:.1e}, gradients by {worst['gradients']:.1e}")


def save(name, arrays):
    """An npz file with fixed dates, so that the same numbers make the same bytes."""
    with zipfile.ZipFile(FIXTURES / f"{name}.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for key, value in arrays.items():
            value = value.detach().numpy() if torch.is_tensor(value) else np.asarray(value)
            value = np.asarray(value, order="C")
            if value.dtype.kind == "f":
                with np.errstate(over="ignore"):
                    half = value.astype(np.float16)
                # Half precision where it is exact: the file is smaller.
                value = half if np.array_equal(half, value) else value.astype(np.float32)
            data = io.BytesIO()
            np.lib.format.write_array(data, value)
            archive.writestr(zipfile.ZipInfo(f"{key}.npy"), data.getvalue(), zipfile.ZIP_DEFLATED)


def save_json(name, document):
    """JSON with one entry of the outermost lists and objects per line."""

    def lines(value, depth):
        if depth == 0 or not isinstance(value, (dict, list)) or not value:
            return json.dumps(value, separators=(",", ":"))
        if isinstance(value, dict):
            inner = [f"{json.dumps(key)}:{lines(entry, depth - 1)}" for key, entry in value.items()]
            return "{" + ",\n".join(inner) + "}"
        return "[" + ",\n".join(lines(entry, depth - 1) for entry in value) + "]"

    (FIXTURES / f"{name}.json").write_text(lines(document, 2) + "\n")


def digits(values, count=8):
    """Numbers of a JSON file. Eight digits are more than float32 has."""
    values = values.detach().numpy() if torch.is_tensor(values) else np.asarray(values)
    return [0 if abs(value) < VANISHING else float(f"{value:.{count}g}") for value in np.ravel(values)]


def is_parameter(name):
    return "running" not in name


def single(tensors):
    return {name: tensor.detach().float() for name, tensor in tensors.items()}


def with_gradients(state):
    return {name: tensor.detach().clone().requires_grad_(is_parameter(name)) for name, tensor in state.items()}


def kept(name, value, every):
    """What a file holds of a result: all of an output, of a large gradient every so-manieth value."""
    return sampled(shortened(value), every) if "grad" in name else value.detach()


def sampled(values, every):
    """Every so-manieth value of a large tensor. The number is a prime that no axis has, so all places are met."""
    return values.ravel()[::every] if np.size(values) > 1000 else values
