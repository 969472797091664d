"""Writes the seeds of fuzz/corpus: one or some small valid files for every target.

Run with NumPy, Pillow and pyarrow: python make_corpus.py GPN
GPN is the program: it writes the seeds of the targets `benchmark`, `checkpoint`, `config`, `model` and `weights`.
"""

import gzip
import io
import json
import pickle
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

HERE = Path(__file__).parent
FIXTURES = HERE.parent / "crates/gpn-data/fixtures"
rng = np.random.default_rng(3)


def seed(target, name, content):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def parts(*files):
    return b"\n%%%%\n".join(file if isinstance(file, bytes) else file.encode() for file in files)


def fixtures(archive, limit, keep):
    with np.load(FIXTURES / archive) as arrays:
        for name in arrays.files:
            if name.endswith("/file") and keep(name) and arrays[name].size <= limit:
                yield name.removesuffix("/file"), arrays[name].tobytes()


for archive in ("jpeg.npz", "jpeg_other.npz"):
    for name, content in fixtures(archive, 1600, lambda name: True):
        seed("jpeg", name.replace(",", "_"), content[2:])
for name, content in fixtures("formats.npz", 700, lambda name: "_interlaced" in name or not name.startswith("png")):
    seed("image", name, content)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


seed("npy", "f4", npy(np.arange(6, dtype="<f4").reshape(3, 2)))
seed("npy", "f2_big_endian", npy(np.arange(6, dtype=">f2").reshape(3, 2)))
seed("npy", "labels_text", npy(np.array(["a", "bcd", "a"])))
seed("npy", "labels_bytes", npy(np.array([b"a", b"bcd", b"a"])))
seed("npy", "labels_numbers", npy(np.array([3, 1, 3])))
seed("npy", "fortran", npy(np.asfortranarray(np.arange(6.0).reshape(3, 2))))
for compressed in (False, True):
    file = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(file, embeddings=np.arange(6, dtype="f4").reshape(3, 2), labels=np.array(["b", "a", "b"]))
    seed("npz", "compressed" if compressed else "stored", file.getvalue())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as archive:
        # Without the time of writing.
        for name, text in [("a/words.txt", "n01\tgoldfish\n" * 3), ("words.txt", "hello")]:
            archive.writestr(zipfile.ZipInfo(name), text, archive.compression)
        archive.comment = b"a comment"
    seed("zip", "deflated" if compressed else "stored", file.getvalue())
file = io.BytesIO()
with zipfile.ZipFile(file, "w") as archive:
    with archive.open("words.txt", "w", force_zip64=True) as entry:
        entry.write(b"hello")
seed("zip", "zip64", file.getvalue())
for form, number in {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}.items():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=number) as archive:
        for name in ["words.txt", "a/" + "b" * (90 if form == "ustar" else 120) + ".txt"]:
            entry = tarfile.TarInfo(name)
            entry.size = 5
            archive.addfile(entry, io.BytesIO(b"hello"))
    tar = file.getvalue()[: 512 * 10]
    seed("tar", form, tar)
seed("tar", "gzip", gzip.compress(tar, mtime=0))

table = pa.table(
    {
        "embedding": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32())),
        "class_name": ["a", "b"],
    }
)
for codec in ("none", "snappy", "zstd", "gzip"):
    file = io.BytesIO()
    pq.write_table(table, file, compression=codec, use_dictionary=codec == "snappy", store_schema=False)
    seed("parquet", codec, file.getvalue())
doubles = table.set_column(0, "embedding", pa.array([[1.0], [3.0]], pa.list_(pa.float64())))
file = io.BytesIO()
pq.write_table(doubles, file, data_page_version="2.0", store_schema=False)
seed("parquet", "pages_2", file.getvalue())

record = lambda coarse, fine: bytes([coarse, fine]) + bytes(3072)
seed("cifar", "two", parts(record(0, 1) + record(1, 0), "apple\nbear\n", "things\nanimals\n"))


def image():
    file = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, (2, 3, 3), dtype=np.uint8)).save(file, "PNG")
    return np.frombuffer(file.getvalue(), dtype=np.uint8)


names = parts("tench, Tinca\ncrane\n", "n01440764\nn02012849\n")
for protocol in range(6):
    labels = {"label_specific": [0, 1], "label_specific_str": ["tench, Tinca", "crane"]}
    seed("pickle", f"labels_{protocol}", parts(pickle.dumps(labels, protocol), names))
    labels["label_specific"] = np.array([0, 1])
    seed("pickle", f"labels_numpy_{protocol}", pickle.dumps(labels, protocol))
    seed("pickle", f"images_{protocol}", pickle.dumps([image(), image()], protocol))
seed("pickle", "images_bytes", pickle.dumps([image().tobytes(), image().tobytes()], 2))

seed("leaves", "list", "wnid,super\r\nn3,x\r\n\"n1\",x\r\n")
seed("labels", "lines", "class_name\nb\na\nb\n")
seed("labels", "quoted", '"b"\r\n"a, c"\r\nb\r\n')
seed("tasks", "two", json.dumps([{"classes": [3, 4], "support": [[1], [2]], "query": [[5, 6], []]}]))
seed("tasks", "other", json.dumps([{"classes": [0, 1], "support": [[1], [2], [3]], "query": [[4], [5], [6]]}]))

seed("edges", "csv", 'child,parent\ncat,animal\n"dog, hound",animal\nanimal,thing\n')
seed("edges", "columns", "parent\tname\tchild\nanimal\tCat\tcat\nanimal\tDog\tdog\n")
seed("edges", "plain", "# is_a\nn1 n2\nn1 n3\nn3 n4\n")
seed("json", "nested", json.dumps({"id": "a", "name": "A", "children": [{"id": "b"}, {"id": "c", "children": []}]}))
seed("json", "flat", json.dumps({"classes": [{"id": "a"}, {"id": "b", "name": "B", "parents": ["a"]}]}))
seed("json", "parents", json.dumps({"cat": ["animal"], "dog": ["animal", "pet"], "pet": []}))
seed(
    "xml",
    "released",
    '<?xml version="1.0"?><ImageNetStructure><releaseData>x</releaseData><synset wnid="n1" words="a &amp; b" gloss="g">'
    '<synset wnid="n2" words="c"/><!-- c --><synset wnid="n3"><synset wnid="n2"/></synset></synset></ImageNetStructure>',
)
seed(
    "obo",
    "terms",
    "format-version: 1.2\n\n[Term]\nid: A:1\nname: root\n\n[Term]\nid: A:2 ! comment\nname: leaf\n"
    'def: "a \\"leaf\\"" [x:1]\nis_a: A:1 {source="x"} ! root\n\n[Typedef]\nid: part_of\n\n'
    "[Term]\nid: A:3\nis_obsolete: true\n",
)
seed(
    "wordnet",
    "nouns",
    "  1 This is the licence.\n"
    "00001740 03 n 01 entity 0 001 ~ 00001930 n 0000 | that which is perceived\n"
    "00001930 03 n 02 physical_entity 0 thing 1 001 @ 00001740 n 0000 | an entity\n"
    "00002137 03 n 01 abstraction 0 002 @ 00001740 n 0000 + 00694068 v 0101 | a general concept  \n",
)

header = {"a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}, "b": {"dtype": "F16", "shape": [1], "data_offsets": [8, 10]}}
header = json.dumps(header).encode()
seed("weights", "plain", struct.pack("<Q", len(header)) + header + struct.pack("<ffe", 1, 2, 3))

# --- What gpn writes ---


def gpn(*arguments):
    subprocess.run([Path(sys.argv[1]).resolve(), *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def safetensors(path):
    """The metadata text and the tensors as lines `NAME 2x3 VALUE`."""
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
    metadata = header.pop("__metadata__")
    text = next(value for key, value in metadata.items() if value.startswith("{"))
    lines = [f"{name} {'x'.join(map(str, tensor['shape']))} 1" for name, tensor in header.items()]
    return text, "\n".join(lines)


with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    kinds = {"cat": "animal", "dog": "animal", "car": "thing", "cup": "thing", "oak": "plant", "fir": "plant"}
    edges = [*kinds.items(), ("animal", "being"), ("plant", "being"), ("being", "all"), ("thing", "all")]
    (folder / "edges.csv").write_text("child,parent\n" + "".join(f"{child},{parent}\n" for child, parent in edges))
    labels = np.repeat(list(kinds), 12)
    np.savez(folder / "x.npz", embeddings=rng.normal(size=(labels.size, 2)).astype("f4"), labels=labels)
    bench, run = folder / "bench", folder / "run"
    gpn("data", "build", "--source", f"embeddings:{folder / 'x.npz'}", "--taxonomy", f"edges:{folder / 'edges.csv'}",
        "--images-per-leaf", 2, "--min-distance", 1, "--train-share", 0.5, "--close", "1..1", "--far", "2..9", "--out", bench)
    manifest = (bench / "benchmark.toml").read_text()
    manifest = manifest[: manifest.index("# blake3")].replace(str(folder), "")
    names = ["taxonomy.csv", "classes.csv", "samples.csv", "assignments.csv", "blocks.csv", "embeddings.npy"]
    seed("benchmark", "embeddings", parts(manifest, *((bench / name).read_bytes() for name in names)))
    settings = ["model.backbone=identity", "train.episodes=2", "train.checkpoint_every=1", "train.log_every=1",
                "task.way=2", "propagation.heads=1", "propagation.hidden=4"]
    gpn("train", "--data", bench, "--out", run, *(word for setting in settings for word in ("--set", setting)))
    config = (run / "config.toml").read_text()
    seed("config", "whole", config)
    seed("config", "settings", "\n".join(settings))
    model = safetensors(run / "model.safetensors")
    seed("model", "identity", parts(*model))
    newest = max((run / "checkpoints").glob("*.safetensors"))
    origin = (run / "run.json").read_text().replace(str(folder), "")
    metrics = (run / "metrics.jsonl").read_text()
    text, tensors = safetensors(newest)
    # The target puts the hash of the settings in.
    text = re.sub(r'"settings":"[0-9a-f]{64}"', '"settings":"SETTINGS"', text)
    seed("checkpoint", "identity", parts(config, origin, metrics, text, tensors))
    seed("weights", "checkpoint", newest.read_bytes())
    gpn("teach", run / "model.safetensors", "--class", "elm", "--parent", "plant", folder / "x.npz", "--out", folder / "taught")
    seed("model", "taught", parts(*safetensors(folder / "taught")))
