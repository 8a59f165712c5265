"""Encoders as models of LangChain and MTEB, with those libraries, and what is said where one is missing."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, SENTENCES

import cse
from cse import adapters
from cse.corpus.supervised import scored_pairs
from cse.encoder.torch_encoder import TorchEncoder
from cse.evaluation.metrics import spearman
from index import Hit

# Where a newer Python lacks them, this file fails: nothing skips them in silence.
with_packages = pytest.mark.skipif(sys.version_info < (3, 11), reason="MTEB and LangChain need Python 3.11, 2026-11-23")
PAIRS = scored_pairs(ROOT / "cse/bundled/demo/pairs.tsv")


@pytest.fixture
def encoder(bert_folder: Path) -> TorchEncoder:
    encoder = cse.load(str(bert_folder), "prompt", device="cpu")
    encoder.prompts = {"query": "a dog : ", "document": "the "}
    return encoder


@with_packages
def test_langchain_gets_the_numbers_of_encode(encoder, bert_folder):
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    embeddings = adapters.langchain(encoder, normalize_embeddings=False)
    assert isinstance(embeddings, Embeddings)
    assert embeddings.embed_documents(SENTENCES) == encoder.encode([f"the {text}" for text in SENTENCES]).tolist()
    assert embeddings.embed_query("the cat") == encoder.encode("a dog : the cat").tolist()
    assert embeddings.embed_documents([]) == []
    unit = adapters.langchain(encoder, batch_size=2)
    np.testing.assert_allclose(np.linalg.norm(unit.embed_documents(SENTENCES), axis=1), 1, atol=1e-6)
    named = adapters.langchain(str(bert_folder))
    vector = cse.load(str(bert_folder)).encode("the cat", normalize_embeddings=True)
    assert named.embed_query("the cat") == vector.tolist()

    store = InMemoryVectorStore.from_texts(SENTENCES, embeddings)
    ranked = encoder.similarity(encoder.encode_query("the cat"), encoder.encode_document(SENTENCES))[0].argsort()
    (hit,) = store.similarity_search("the cat", k=1)
    assert hit.page_content == SENTENCES[int(ranked[-1])]


@with_packages
def test_documents_have_the_row_and_fields_of_hits():
    hits = [
        Hit(1, 0.5, 3, "a dog", {"id": "T-3"}, 2), Hit(2, 0.25, 1, "a cat", {"row": "mine", "score": 7}, 0, "b.csv"),
    ]  # fmt: skip
    first, second = adapters.documents(hits)
    assert (first.page_content, first.metadata) == ("a dog", {"id": "T-3", "row": 3, "score": 0.5})
    assert second.metadata == {"row": "mine", "score": 7, "cse_row": 1, "cse_score": 0.25, "corpus": "b.csv"}


def demo_task() -> Any:
    """The demo's graded pairs as a task of MTEB that needs no network."""
    from datasets import Dataset
    from mteb.abstasks.sts import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata

    unknown = "date domains task_subtypes license annotations_creators dialect sample_creation reference".split()

    class DemoPairs(AbsTaskSTS):
        metadata = TaskMetadata(
            name="DemoPairs", description="Graded pairs.", type="STS", category="t2t", modalities=["text"],
            dataset={"path": "demo/pairs", "revision": "1"}, eval_splits=["test"], eval_langs=["eng-Latn"],
            main_score="cosine_spearman", bibtex_citation="", **dict.fromkeys(unknown),
        )  # fmt: skip

        def load_data(self, **options: Any) -> None:
            grades, first, second = map(list, zip(*PAIRS, strict=True))
            self.dataset = {"test": Dataset.from_dict({"sentence1": first, "sentence2": second, "score": grades})}
            self.data_loaded = True

    return DemoPairs()


@with_packages
def test_a_task_of_mteb_gives_this_projects_spearman(encoder):
    import mteb
    from mteb.models import EncoderProtocol

    model = adapters.mteb(encoder)
    assert isinstance(model, EncoderProtocol)
    results = mteb.evaluate(model, demo_task(), cache=None, show_progress_bar=False, co2_tracker=False)
    revisions = [results.model_revision]
    for name, value in (("truncate_dim", 8), ("prompts", {}), ("truncate_dim", None)):
        setattr(encoder, name, value)
        revisions.append(adapters.mteb(encoder).mteb_model_meta.revision)
    assert len(set(revisions)) == 4  # MTEB keeps the scores of each
    assert revisions[-1] == encoder.fingerprint
    encoder = model.encoder
    (task,) = results.task_results
    expected = spearman(encoder.encode, PAIRS)
    assert abs(expected) > 1
    assert 100 * task.get_score() == pytest.approx(expected, abs=0.01)  # float32 cosines may tie or not


@with_packages
def test_mteb_prompts_queries_and_documents(encoder):
    from mteb.types import PromptType

    model, where = adapters.mteb(encoder), {"task_metadata": None, "hf_split": "test", "hf_subset": "default"}
    batches = [{"text": SENTENCES[:3]}, {"text": SENTENCES[3:]}]
    for kind, before in ((None, ""), (PromptType.query, "a dog : "), (PromptType.document, "the ")):
        rows = model.encode(batches, prompt_type=kind, batch_size=4, **where)
        np.testing.assert_allclose(rows, encoder.encode([before + text for text in SENTENCES]), atol=1e-6)
