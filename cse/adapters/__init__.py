"""Adapters of encoders to other libraries, each imported when its adapter is called: LangChain and MTEB 2."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.corpus.corpus import free_name
from cse.files.writing import digest

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from mteb.models import ModelMeta
    from mteb.types import PromptType

    from cse.adapters.langchain_embeddings import EncoderEmbeddings
    from cse.encoder.encoder import Encoder
    from index.stores import Hit

__all__ = ["documents", "langchain", "mteb"]

ENGLISH = ("eng-Latn",)


def langchain(model: str | Encoder, **options: Any) -> EncoderEmbeddings:
    """Return LangChain `Embeddings`: the vectors of `encode_document` and `encode_query` as lists, of length 1.

    Its stores compare by cosine, by products or by distances, which rank unit vectors alike. `options` are those of
    `encode`, such as `batch_size`, or `normalize_embeddings=False` for vectors as they are. Raises ImportError without
    langchain-core.
    """
    with needing("langchain-core"):
        from cse.adapters.langchain_embeddings import EncoderEmbeddings

    return EncoderEmbeddings(opened(model), {"normalize_embeddings": True, **options})


def documents(hits: Iterable[Hit]) -> list[Document]:
    """Return LangChain `Document`s of the hits of an index; `metadata` holds the fields, `row` and `score`.

    Where a column has one of these two names, it is called cse_row or cse_score. Raises ImportError without
    langchain-core.
    """
    with needing("langchain-core"):
        from langchain_core.documents import Document

    return [
        Document(
            page_content=hit.text,
            metadata={
                **hit.fields, free_name("row", hit.fields): hit.row, free_name("score", hit.fields): hit.score,
                **({} if hit.corpus is None else {free_name("corpus", hit.fields): hit.corpus}),
            },
        )
        for hit in hits
    ]  # fmt: skip


def mteb(model: str | Encoder, languages: Sequence[str] = ENGLISH) -> MTEBModel:
    """Return a model for `mteb.evaluate` from an encoder, or from what `cse.load` opens.

    `languages` (ISO 639-3 and script) are metadata only; the papers' models and the bundled ones are English. The
    revision in the metadata, by which MTEB knows its results, is the encoder's fingerprint, with a digest of prompts,
    dimensions and similarity that are set. Raises ImportError without mteb.
    """
    with needing("mteb"):
        from mteb.models import ModelMeta
        from mteb.models.model_meta import ScoringFunction

    encoder = opened(model)
    similarity = encoder.similarity_fn_name
    settings = [*encoder.call_settings, *([similarity] if similarity != "cosine" else [])]
    parts = PurePath(encoder.name).parts
    is_hub_id = len(parts) == 2 and parts[0].strip("./\\")
    meta = ModelMeta(
        loader=None,
        name=encoder.name if is_hub_id else f"cse/{PurePath(encoder.name).name}",  # MTEB requires an organisation
        revision="-".join([encoder.fingerprint, *([digest(json.dumps(settings))] if settings else [])]),
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
        similarity_fn_name=ScoringFunction(similarity),
        use_instructions=any(encoder.prompts.values()),
        training_datasets=None,
    )
    return MTEBModel(encoder, meta)


class MTEBModel:
    """MTEB 2's `EncoderProtocol` of an encoder; prompts are the encoder's own "query" and "document"."""

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


def opened(model: str | Encoder) -> Encoder:
    """Return an encoder unchanged; open a name, folder or id with `cse.load`."""
    from cse.encoder.encoder import Encoder
    from cse.models.loading import load

    return model if isinstance(model, Encoder) else load(model)


@contextmanager
def needing(package: str) -> Iterator[None]:
    """Turn the absence of `package` in the block into a one-line ImportError that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package.replace("-", "_"):
            raise  # the package is installed, but one of its dependencies is not
        raise ImportError(f"{package} is not installed; run `pip install {package}`") from error
