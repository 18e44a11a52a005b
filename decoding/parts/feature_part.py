"""What drafters on the target's features have in common: the target's embedding and output layer, or their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ..model import quiet
from ..model.attention import recorded_width
from ..model.cache import Cache
from ..model.draft_vocabulary import DraftVocabulary
from ..model.kernels import by_torch, choose
from ..model.linear import linear
from ..model.replays import Replays
from ..model.transformers_model import AnyModel
from .part_files import NamedWeights

if TYPE_CHECKING:
    from ..model.graphs import Recorder
    from ..model.upload import Tokens


class FeaturePart:
    """A drafter beside its target, on the target's last device and in its dtype."""

    def __init__(
        self, taps: tuple[int, ...], weights: NamedWeights, head_dim: int, model: AnyModel, about: str
    ) -> None:
        """`weights` may hold the draft vocabulary's `ids`; a missing embedding or output layer is the target's."""
        self.layers, self.about, self._model = taps, about, model
        self.device, self.dtype = model.device, model.dtype
        ids = weights.get("ids")
        self.vocabulary: DraftVocabulary | None = (
            None if ids is None else DraftVocabulary(ids.long(), model.shape.vocabulary, self.device)
        )
        with torch.inference_mode():
            floats = ((name, weight) for name, weight in weights.items() if name != "ids")
            self._weights = {name: weight.detach().to(self.device, self.dtype, copy=True) for name, weight in floats}
            embedding = self._weights.pop("embed_tokens.weight", None)
            output = self._weights.pop("lm_head.weight", None)
            self._embed = model.embed if embedding is None else lambda ids: quiet.rows(embedding, ids)
            if output is not None:
                self._head = linear(output, None)
            else:
                self._head = model.head if self.vocabulary is None else self.vocabulary.head(model.embeddings()[1])
        cuda = self.device.type == "cuda"
        self.kernel = choose(self.device, self.dtype, head_dim).attend if cuda else by_torch

    @property
    def recorder(self) -> Recorder | None:
        """Return the recorder of the passes of target and drafter."""
        return getattr(self._model, "recorder", None)

    def embed(self, ids: Tokens) -> torch.Tensor:  # T ids -> (T, H)
        """Return the embeddings of tokens."""
        return self._embed(ids)

    def logits(self, rows: torch.Tensor) -> torch.Tensor:  # (R, H) of a session's answers -> (R, draft vocabulary)
        """Return next-token logits for these rows, over the draft vocabulary."""
        return self._head(rows)


class FeatureSession:
    """One text under such a drafter: the keys and values of `length` rows."""

    def __init__(self, part: FeaturePart, cache: Cache, window: int | None) -> None:
        """`window` is how many tokens the layer that sees the fewest sees; None or 0: the whole text."""
        self.capacity, self.largest_step = cache.capacity, cache.largest_step
        self._part, self._cache, self._window, self.replays = part, cache, window, Replays(part.recorder)

    @property
    def length(self) -> int:
        """Return the number of rows read of the text."""
        return self._cache.length

    def rewind(self, length: int) -> None:
        """Forget the rows after `length`: at most `largest_step` of them, or all."""
        self._cache.rewind(length)

    def logits(self, rows: torch.Tensor) -> torch.Tensor:  # (R, H) -> (R, draft vocabulary)
        """Return next-token logits for these rows, over the draft vocabulary."""
        return self._part.logits(rows)

    def width(self, rows: int) -> int:
        """Return how many slots recorded work attends to for `rows` after the text; 0 if they do not fit."""
        return recorded_width(self._cache, rows, self._window)
