"""Cases g: Pillow's antialiased bilinear filter and the test transform."""

import numpy as np
from PIL import Image

from .numbers import save


def picture(rng, height, width):
    """Smooth waves with noise and some hard black and white, so that rounding and clipping both matter."""
    y, x = np.mgrid[0:height, 0:width]
    base = 128 + 100 * np.sin(0.35 * x[..., None] + 0.21 * y[..., None] + rng.uniform(0, 6, 3))
    base = base + rng.normal(0, 40, (height, width, 3))
    base[rng.random((height, width)) < 0.1] = 255
    base[rng.random((height, width)) < 0.1] = 0
    return np.clip(base, 0, 255).astype(np.uint8)


def resized(image, width, height):
    """Along the rows first, then along the columns: Pillow up to version 12 does so, later ones choose the order."""
    bilinear = Image.Resampling.BILINEAR
    return image.resize((width, image.height), bilinear).resize((width, height), bilinear)


def test_transform(pixels, side):
    """The shorter side becomes round(side * 150 / 112), the longer one is cut to a whole number; then the centre."""
    image, short = Image.fromarray(pixels), round(side * 150 / 112)
    smaller = min(image.size)
    width, height = (short if edge == smaller else int(short * edge / smaller) for edge in image.size)
    left, top = round((width - side) / 2), round((height - side) / 2)
    return np.asarray(resized(image, width, height).crop((left, top, left + side, top + side)))


def write():
    rng = np.random.default_rng(60)
    # The sides that training and evaluation use, on stored squares.
    squares = np.stack([picture(rng, 64, 64) for _ in range(1)])
    evaluated = {f"eval{side}": np.stack([test_transform(image, side) for image in squares]) for side in (32, 64, 84)}
    save("g_transform", {"images": squares} | evaluated)
    # Other shapes.
    for height, width, side in ((17, 23, 10), (23, 17, 9), (5, 6, 16), (33, 8, 5)):
        images = picture(rng, height, width)[None]
        arrays = {"images": images, f"eval{side}": test_transform(images[0], side)[None]}
        save(f"g_transform_{height}x{width}", arrays)
    # Parts of an image: source (height, width), region (left, top, width, height), resized (height, width).
    arrays = {}
    for index, ((height, width), (left, top, w, h), (out_height, out_width)) in enumerate([
        ((1, 1), (0, 0, 1, 1), (5, 4)), ((7, 9), (0, 0, 9, 7), (3, 4)), ((7, 9), (2, 1, 5, 6), (11, 13)),
        ((9, 7), (0, 0, 7, 9), (9, 7)), ((9, 7), (0, 0, 7, 9), (9, 3)), ((9, 7), (0, 0, 7, 9), (4, 7)),
        ((1, 40), (0, 0, 40, 1), (3, 6)), ((40, 1), (0, 0, 1, 40), (7, 2)), ((24, 24), (3, 5, 17, 14), (16, 16)),
        ((24, 24), (23, 23, 1, 1), (6, 6)), ((30, 21), (0, 0, 21, 30), (1, 1)), ((31, 33), (1, 2, 32, 29), (8, 8)),
    ]):  # fmt: skip
        source = picture(rng, height, width)
        part = Image.fromarray(source).crop((left, top, left + w, top + h))
        arrays |= {f"{index:02}/source": source, f"{index:02}/region": np.array([left, top, w, h])}
        arrays[f"{index:02}/resized"] = np.asarray(resized(part, out_width, out_height))
    save("g_resize_of_a_crop", arrays)
