"""44 classes of Tiny-ImageNet with a list of kinds written by hand: `gpn fit` beside logistic regression.

    pip install numpy scikit-learn
    python bench/tiny_classes.py GPN tiny-imagenet-200.tar lite0.onnx

GPN is the command, lite0.onnx what `bench/encode.py export` writes. 60 photos of each class are fitted and 10 others tested, drawn with seed
0. Both sides have the same embeddings, which `gpn embed` makes; logistic regression is the best of C = 1 and C = 100 on raw embeddings and
on centred ones of length 1, which favours it. Prints accuracy in % and how many of the 44 classes were answered at least once.
"""

import argparse
import json
import pathlib
import subprocess
import tarfile
import tempfile
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression

warnings.filterwarnings("ignore")

KINDS = {
    "cat": "persian-cat:n02123394 egyptian-cat:n02124075 tabby:n02123045 cougar:n02125311 lion:n02129165",
    "dog": "chihuahua:n02085620 yorkshire-terrier:n02094433 golden-retriever:n02099601 labrador:n02099712 german-shepherd:n02106662 poodle:n02113799",
    "bird": "goose:n01855672 albatross:n02058221 black-stork:n02002724 king-penguin:n02056570",
    "insect": "ladybug:n02165456 bee:n02206856 grasshopper:n02226429 walking-stick:n02231487 cockroach:n02233338 mantis:n02236044 dragonfly:n02268443 monarch:n02279972",
    "vehicle": "school-bus:n04146614 sports-car:n04285008 police-van:n03977966 limousine:n03670208 trolleybus:n04487081 moving-van:n03796401 freight-car:n03393912 bullet-train:n02917067",
    "fruit": "orange:n07747607 lemon:n07749582 banana:n07753592 pomegranate:n07768694",
    "clothing": "sock:n04254777 sandal:n04133789 kimono:n03617480 poncho:n03980874 cardigan:n02963159 academic-gown:n02669723",
    "building": "barn:n02793495 beacon:n02814860 water-tower:n04562935",
}
ABOVE = {"cat": "mammal", "dog": "mammal", "mammal": "animal", "bird": "animal", "insect": "animal"}
FIT, TEST = 60, 10


def classes():
    """Name, id and kind of each class."""
    for kind, words in KINDS.items():
        for word in words.split():
            if ":" in word:
                name, wnid = word.split(":")
                yield name, wnid, kind


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpn")
    parser.add_argument("archive")
    parser.add_argument("encoder")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    chosen = {wnid: (name, kind) for name, wnid, kind in classes()}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        files = {wnid: [] for wnid in chosen}
        with tarfile.open(args.archive) as archive:
            for member in archive:
                parts = member.name.split("/")
                if member.isfile() and "train" in parts and parts[-1].endswith(".JPEG"):
                    wnid = parts[-1].split("_")[0]
                    if wnid in files:
                        files[wnid].append(member.name)
            missing = [wnid for wnid, found in files.items() if not found]
            assert not missing, missing
            want = {}
            for wnid, found in files.items():
                for place, name in enumerate(rng.permutation(sorted(found))[: FIT + TEST]):
                    want[name] = (wnid, "fit" if place < FIT else "test")
        with tarfile.open(args.archive) as archive:
            for member in archive:
                if member.name in want:
                    wnid, part = want[member.name]
                    target = folder / part / chosen[wnid][0] / pathlib.Path(member.name).name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.extractfile(member).read())
        edges = [(name, kind) for name, kind in chosen.values()]
        edges += list(ABOVE.items()) + [(kind, "thing") for kind in [*KINDS, "animal"] if kind not in ABOVE]
        (folder / "kinds.csv").write_text("child,parent\n" + "".join(f"{a},{b}\n" for a, b in edges), encoding="utf-8")
        run = lambda *words: subprocess.run([args.gpn, *map(str, words)], check=True, capture_output=True, text=True).stdout
        for part in ["fit", "test"]:
            run("embed", args.encoder, folder / part, "--out", folder / f"{part}.npz")
        run("fit", folder / "fit", "--taxonomy", folder / "kinds.csv", "--encoder", args.encoder, "--out", folder / "m.safetensors")
        result = json.loads(run("test", folder / "m.safetensors", folder / "test", "--json", "--samples-csv", folder / "samples.csv"))
        answers = run("predict", folder / "m.safetensors", folder / "test.npz", "--top", "1", "--format", "csv")
        answered = {line.split(",")[2] for line in answers.splitlines()[1:]}
        train, test = np.load(folder / "fit.npz"), np.load(folder / "test.npz")
        mean = train["embeddings"].mean(0)
        unit = lambda x: (x - mean) / np.linalg.norm(x - mean, axis=1, keepdims=True)
        best = {}
        for form, of in [("raw", lambda x: x), ("centred, length 1", unit)]:
            for c in [1, 100]:
                model = LogisticRegression(C=c, max_iter=500).fit(of(train["embeddings"]), train["labels"])
                best[form, c] = 100 * (model.predict(of(test["embeddings"])) == test["labels"]).mean()
        means = np.stack([train["embeddings"][train["labels"] == label].mean(0) for label in np.unique(train["labels"])])
        nearest = ((test["embeddings"][:, None] - means) ** 2).sum(2).argmin(1)
        nearest = 100 * (np.unique(train["labels"])[nearest] == test["labels"]).mean()
    print(f"{len(chosen)} classes, {len(train['labels'])} photos fitted, {len(test['labels'])} tested")
    print(f"| gpn fit | {100 * result['accuracy']:.1f} |\n| logistic regression | {max(best.values()):.1f} {best} |")
    print(f"| nearest mean | {nearest:.1f} |\nclasses answered at least once: {len(answered)} of {len(chosen)}")


if __name__ == "__main__":
    main()
