"""Files that the embedding scripts beside this one write.

A data set is a folder with
- `embeddings.npz` (`embeddings` [N, D] float32, `labels`): `gpn data build --source embeddings:embeddings.npz`;
- `embeddings.npy` and `labels.txt`: the same rows and labels, one label a line;
- `samples.csv` (`row,class,part,file`): where each row comes from; part is the data set's own division;
- `taxonomy.csv` (`child,parent`, everything below `root`): `gpn data build --taxonomy edges:taxonomy.csv`;
- `classes.csv` (`class,name,description`): leaf and inner classes, read by `embed_names.py`.
"""

import csv
import pathlib

import numpy as np


def write_rows(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def read_rows(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def write_data_set(out, embeddings, samples, taxonomy, classes):
    """`samples`: (class, part, file) of each row; `taxonomy`: (child, parent); `classes`: (class, name, description)."""
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    labels = [sample[0] for sample in samples]
    assert embeddings.shape[0] == len(labels) and np.isfinite(embeddings).all()
    assert len({child for child, _ in taxonomy}) == len(taxonomy) == len(classes)
    np.savez(out / "embeddings.npz", embeddings=embeddings, labels=np.array(labels))
    np.save(out / "embeddings.npy", embeddings)
    (out / "labels.txt").write_text("".join(f"{label}\n" for label in labels), encoding="utf-8")
    write_rows(out / "samples.csv", ["row", "class", "part", "file"], [(i, *s) for i, s in enumerate(samples)])
    write_rows(out / "taxonomy.csv", ["child", "parent"], taxonomy)
    write_rows(out / "classes.csv", ["class", "name", "description"], classes)
    print(
        f"{out}: {embeddings.shape[0]} embeddings of {embeddings.shape[1]} values, {len(set(labels))} leaves, "
        f"{len(classes)} classes below the root"
    )
