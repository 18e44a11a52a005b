"""REST's datastore for table models: a real one, of texts that the model itself might have written."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from decoding.codec import Codec
from decoding.model.table import TableModel
from decoding.parts.datastore import Store, fingerprint, load_store
from decoding.sampling import draw
from lab.training.datastore import write_store

DOCUMENTS, LENGTH = 8, 40


def make(model: TableModel) -> Store:
    """Make a few hundred tokens drawn from the model, a little surer of itself than it is."""
    chance, documents = random.Random(7), list[tuple[list[int], bool]]()
    for _ in range(DOCUMENTS):
        text = [chance.randrange(model.card.vocabulary)]
        while len(text) < LENGTH:
            text.append(draw(torch.softmax(1.5 * model.logits(text), -1), chance.random()))
        documents.append((text, True))
    return open_store(documents, model.card.vocabulary)


def open_store(documents: list[tuple[list[int], bool]], vocabulary: int, chunk: int = 2**10) -> Store:
    """Make a datastore of token ids; the open one does not need its file's name any more."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "toy.safetensors"
        write_store(path, fingerprint(Codec()), vocabulary, documents, chunk=chunk)
        return load_store(path, fingerprint(Codec()))
