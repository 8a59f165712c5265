"""An encoder as an MTEB 2 model, following its `EncoderProtocol`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.adapters.opening import needing, opened

if TYPE_CHECKING:
    from mteb.models import ModelMeta
    from mteb.types import PromptType

    from cse.encoder.encoder import Encoder

ENGLISH = ("eng-Latn",)


def mteb(model: str | Encoder, languages: Sequence[str] = ENGLISH) -> MTEBModel:
    """Return a model for `mteb.evaluate` from an encoder, or from what `cse.load` opens.

    `languages` (ISO 639-3 and script) are metadata only; the papers' models and the bundled ones are English.
    Raises ImportError without mteb.
    """
    encoder = opened(model)
    return MTEBModel(encoder, metadata(encoder, languages))


def metadata(encoder: Encoder, languages: Sequence[str]) -> ModelMeta:
    """MTEB's metadata of an encoder; its revision is the fingerprint, which distinguishes results."""
    with needing("mteb"):
        from mteb.models import ModelMeta
        from mteb.models.model_meta import ScoringFunction

    return ModelMeta(
        loader=None,
        name=_two_part_name(encoder.name),
        revision=encoder.fingerprint,
        release_date=None,
        languages=list(languages),
        n_parameters=encoder.parameter_count,
        n_embedding_parameters=encoder.word_embeddings().size,
        memory_usage_mb=round(encoder.parameter_count * 4 / 2**20, 1),
        max_tokens=encoder.max_seq_length,
        embed_dim=encoder.get_embedding_dimension(),
        license=None,
        open_weights=None,
        public_training_code=None,
        public_training_data=None,
        framework=["PyTorch"],
        similarity_fn_name=ScoringFunction(encoder.similarity_fn_name),
        use_instructions=any(encoder.prompts.values()),
        training_datasets=None,
    )


class MTEBModel:
    """MTEB's interface to an encoder; prompts are the encoder's own "query" and "document"."""

    def __init__(self, encoder: Encoder, meta: ModelMeta) -> None:
        self.encoder, self.mteb_model_meta = encoder, meta
        self.similarity, self.similarity_pairwise = encoder.similarity, encoder.similarity_pairwise

    def encode(
        self,
        inputs: Iterable[Mapping[str, Sequence[str]]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: PromptType | None = None,
        **kwargs: Any,
    ) -> np.ndarray:
        """(N, d) vectors of the texts in MTEB's batches; `kwargs` are those of `Encoder.encode`."""
        texts = [text for batch in inputs for text in batch["text"]]
        if prompt_type is None:
            return self.encoder.encode(texts, **kwargs)
        named = {"query": self.encoder.encode_query, "document": self.encoder.encode_document}
        return named[prompt_type.value](texts, **kwargs)


def _two_part_name(name: str) -> str:
    """Return a hub id unchanged, any other name as cse/NAME, since MTEB requires an organisation."""
    parts = PurePath(name).parts
    return name if len(parts) == 2 and parts[0].strip("./\\") else f"cse/{PurePath(name).name}"
