"""Any encoder of transformers opens, trains and is saved; its vectors are those of a plain pass and a loop."""

import json
import pickle
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from encoders import reading
from model_files import POOLING, TRANSFORMER, with_pipeline
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer

import cse
from cse.encoder.devices import in_precision
from cse.errors import ArtefactError
from cse.methods.catalogue import METHODS, UNTRAINED
from cse.models.export import export_model
from cse.models.names import Kind, resolve

SIZES: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "pad_token_id": 0,
    "max_position_embeddings": 80, "attn_implementation": "eager",
}  # fmt: skip
RELATIVE: dict[str, Any] = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8}
ARCHITECTURES: dict[str, dict[str, Any]] = {  # name -> what its configuration has besides `SIZES`
    "mpnet": {"max_position_embeddings": 82, "pad_token_id": 1},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64},
    "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 8, "max_position_embeddings": 8192},
    "deberta-v2": {**RELATIVE, "position_biased_input": False, "share_att_key": True},
    "electra": {"embedding_size": 16},
    "albert": {"embedding_size": 16},
}
DECODERS: dict[str, dict[str, Any]] = {
    "qwen3": {"num_key_value_heads": 1, "head_dim": 16},
    "t5": {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2},
}


def random_model(kind: str, folder: Path, tokenizer: Path, *, head: bool = True) -> Path:
    """Write a model of an architecture, with its masked-language-model head unless told otherwise."""
    reader = AutoTokenizer.from_pretrained(tokenizer)
    values = {**SIZES, **(ARCHITECTURES | DECODERS).get(kind, {}), "vocab_size": len(reader)}
    torch.manual_seed(4)
    config = AutoConfig.for_model(kind, **values)
    model = (AutoModelForMaskedLM if head and kind in ARCHITECTURES else AutoModel).from_config(config)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(folder)
    reader.save_pretrained(folder)
    return folder


Folder = Callable[..., Path]
TEXTS = [*SENTENCES, "", "the dog [MASK] a cat [SEP]"]
READ = {  # mode of sentence-transformers -> a vector of the states (n, d) of a text's tokens
    "mean": lambda states: sum(states) / len(states),
    "cls": lambda states: states[0],
    "lasttoken": lambda states: states[-1],
    "max": lambda states: np.array([max(column) for column in states.T]),
    "mean_sqrt_len_tokens": lambda states: sum(states) / np.sqrt(len(states)),
    "weightedmean": lambda states: (
        sum(place * state for place, state in enumerate(states, 1)) / sum(range(1, len(states) + 1))
    ),
}
MODES = dict(zip((*ARCHITECTURES, *DECODERS), [*READ, "lasttoken", "mean"], strict=True))


@pytest.fixture(scope="module")
def folder_of(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Write a model of an architecture once."""
    root = tmp_path_factory.mktemp("architectures")

    def made(kind: str, *, head: bool = True) -> Path:
        folder = root / f"{kind}-{head}"
        return folder if folder.exists() else random_model(kind, folder, bert_folder, head=head)

    return made


def states_of(folder: Path, text: str, length: int = 80) -> np.ndarray:
    """The states (n, d) of a text's tokens by transformers alone."""
    model: Any = AutoModel.from_pretrained(folder).eval()
    ids = AutoTokenizer.from_pretrained(folder)(text, truncation=True, max_length=length, return_tensors="pt")
    run = model.encoder if model.config.is_encoder_decoder else model
    with torch.no_grad():
        return run(input_ids=ids["input_ids"]).last_hidden_state[0].numpy()


@pytest.mark.parametrize("kind", MODES)
def test_a_folder_is_read_as_its_modules_say(folder_of, kind, tmp_path):
    folder, mode = folder_of(kind, head=False), MODES[kind]
    with_pipeline(folder, [TRANSFORMER, POOLING], {"pooling_mode": mode}, length=8)
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "the park : "}}))
    encoder: Any = cse.load(str(folder))
    assert (encoder.backend, encoder.max_seq_length, encoder.dim) == ("torch", 8, 32)
    expected = [READ[mode](states_of(folder, text, 8)) for text in TEXTS]
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    if find_spec("onnxruntime"):
        import onnxruntime

        export_model(encoder, "onnx", tmp_path / "onnx")
        session = onnxruntime.InferenceSession(str(tmp_path / "onnx" / "onnx" / "model.onnx"))
        tokenizer = AutoTokenizer.from_pretrained(tmp_path / "onnx")
        inputs = tokenizer(TEXTS, padding=True, truncation=True, return_tensors="np")
        np.testing.assert_allclose(session.run(["sentence_embedding"], dict(inputs))[0], expected, atol=1e-5)
    export_model(encoder, "sentence-transformers", tmp_path / "export")
    np.testing.assert_allclose(cse.load(str(tmp_path / "export")).encode(TEXTS), expected, atol=1e-5)
    query = READ[mode](states_of(folder, f"the park : {TEXTS[0]}", 8))
    converted = cse.load(str(folder), backend="openvino")
    assert (converted.backend, encoder.backend) == ("openvino", "torch")
    np.testing.assert_allclose(converted.encode(TEXTS), expected, atol=1e-5)
    restored = pickle.loads(pickle.dumps(converted))
    assert (restored.backend, converted.to("cpu").backend) == ("torch", "openvino")
    np.testing.assert_allclose(restored.encode(TEXTS), expected, atol=1e-5)
    with pytest.raises(ValueError, match="`precision` int8 is for models of BERT's or RoBERTa's kind; leave it out"):
        in_precision(converted, "int8")
    with pytest.raises(ValueError, match="`device` is 'cuda:0', but OpenVINO runs on the CPU"):
        cse.load(str(folder), device="cuda:0", backend="openvino")
    for opened in (encoder, converted):
        np.testing.assert_allclose(opened.encode_query(TEXTS[0]), query, atol=1e-5)


def test_a_model_without_positions_reads_as_many_tokens_as_its_folder_records(folder_of, bert_folder, tmp_path):
    folder, text = random_model("t5", tmp_path / "t5", bert_folder, head=False), "the dog in the park " * 160
    with_pipeline(folder, [TRANSFORMER, POOLING], {"pooling_mode": "mean"}, length=700)
    config = json.loads((folder / "config.json").read_text())
    config.pop("max_position_embeddings", None)
    (folder / "config.json").write_text(json.dumps(config))
    np.testing.assert_allclose(cse.load(str(folder)).encode(text), states_of(folder, text, 700).mean(0), atol=1e-5)


def random_copy(source: Path, target: Path) -> Path:
    AutoModel.from_pretrained(source).save_pretrained(target)
    AutoTokenizer.from_pretrained(source).save_pretrained(target)
    return target


TRAINED = [
    ("mpnet", "promptbert"),
    ("distilbert", "promptbert"),
    ("modernbert", "conpvp"),
    ("deberta-v2", "promptbert"),
]
TRAINED += [("modernbert", "conpvp"), ("electra", "esimcse"), ("albert", "consert"), ("qwen3", "simcse")]


@pytest.mark.parametrize(("kind", "method"), TRAINED)
def test_a_method_trains_and_its_run_opens(folder_of, tmp_path, kind, method):
    run, start = tmp_path / "run", str(folder_of(kind))
    cse.train(method, SENTENCES, output=run, backbone=start, batch_size=4, max_steps=1, progress=False)
    encoder = cse.load(str(run))
    vectors = encoder.encode(SENTENCES)
    before = AutoModel.from_pretrained(start).get_input_embeddings().weight
    assert not np.array_equal(encoder.word_embeddings()[: len(before)], before.detach().numpy())
    if method != "consert":
        theirs = SentenceTransformer(str(run), device="cpu").encode(SENTENCES)
        np.testing.assert_allclose(vectors, theirs, atol=1e-5)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_likely_tokens_are_those_of_the_models_own_head(folder_of, kind):
    encoder = reading(str(folder_of(kind)), UNTRAINED["prompt"])
    row = encoder.rows_of([SENTENCES[0]], [encoder.prompt])
    whole = AutoModelForMaskedLM.from_pretrained(folder_of(kind)).eval()
    with torch.no_grad():
        expected = whole(input_ids=torch.from_numpy(row.ids[None].astype(np.int64))).logits[0, int(row.read_at[0])]
    np.testing.assert_allclose(encoder.mask_logits(SENTENCES[0])[0], expected.numpy(), atol=1e-4)


def test_a_method_that_a_model_cannot_learn_is_refused_with_those_that_it_can(folder_of):
    with pytest.raises(ValueError, match=r"dcpcse learns keys .* of bert, roberta.* is mpnet; simcse, esimcse and"):
        reading(str(folder_of("mpnet")), METHODS["dcpcse"])
    with pytest.raises(ValueError, match=r"promptbert reads a vector at \[MASK\], and this electra model has no"):
        reading(str(folder_of("electra", head=False)), METHODS["promptbert"])


def test_a_backbone_without_dropout_gets_it_for_training(folder_of, tmp_path):
    run = tmp_path / "run"
    cse.train("simcse", SENTENCES, output=run, backbone=str(folder_of("modernbert")), batch_size=4, max_steps=1)
    assert json.loads((run / "cse_checkpoint.json").read_text())["settings"]["dropout"] == 0.1


def static_model(folder: Path, bert_folder: Path) -> tuple[Path, np.ndarray]:
    """Write a model2vec folder whose tokens share rows and have weights; return each token's own row."""
    folder.mkdir()
    (folder / "tokenizer.json").write_text((bert_folder / "tokenizer.json").read_text())
    tokens = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab_size()
    rng = np.random.default_rng(5)
    rows, mapping, weights = rng.normal(size=(30, 8)), rng.integers(30, size=tokens), rng.random(tokens)
    arrays = {"embeddings": rows.astype(np.float16), "mapping": mapping.astype(np.int32), "weights": weights}
    save_file(arrays, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
    return folder, arrays["embeddings"].astype(np.float64)[mapping] * weights[:, None]


def test_static_embeddings_are_the_mean_of_their_tokens(bert_folder, tmp_path):
    folder, rows = static_model(tmp_path / "static", bert_folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    expected = np.zeros((len(TEXTS), 8))
    for number, text in enumerate(TEXTS):
        if ids := tokenizer.encode(text, add_special_tokens=False).ids:
            mean = sum(rows[token] for token in ids) / len(ids)
            expected[number] = mean / np.linalg.norm(mean)
    encoder = cse.load(str(folder), device="cpu", backend="torch")
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)
    assert (encoder.backend, resolve(str(folder)).kind) == ("static", Kind.STATIC)
    assert repr(encoder).endswith("8 dimensions, a table, static pooling)")
    with pytest.raises(ArtefactError, match="is a table of static embeddings, without layers to train"):
        cse.train("simcse", SENTENCES, output=tmp_path / "run", backbone=str(folder))
    with pytest.raises(ArtefactError, match="predicts no words"):
        encoder.top_tokens("a dog")


def test_a_static_embedding_of_sentence_transformers_opens(bert_folder, tmp_path):
    table = StaticEmbedding(Tokenizer.from_file(str(bert_folder / "tokenizer.json")), embedding_dim=8)
    theirs = SentenceTransformer(modules=[table], device="cpu", prompts={"query": "the dog "})
    theirs.save(str(tmp_path / "model"))
    encoder = cse.load(str(tmp_path / "model"))
    np.testing.assert_allclose(encoder.encode_query(TEXTS), theirs.encode_query(TEXTS), atol=1e-6)


@pytest.mark.parametrize(
    ("kinds", "model_type", "message"),
    [
        (["Router"], "SentenceTransformer", "has several routes"),
        (["Transformer"], "CrossEncoder", "is a CrossEncoder"),
        (["Transformer", "SpladePooling"], "SparseEncoder", "is a sparse encoder"),
    ],
)
def test_other_models_of_sentence_transformers_are_refused_by_name(bert_folder, tmp_path, kinds, model_type, message):
    folder = random_copy(bert_folder, tmp_path / "model")
    modules = [{"path": "", "type": f"sentence_transformers.models.{kind}"} for kind in kinds]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"model_type": model_type}))
    with pytest.raises(ArtefactError, match=message):
        cse.load(str(folder))
    if kinds != ["Router"]:
        assert cse.load(str(folder), "mean").dim == 32  # the cure


def test_a_model_that_reads_word_vectors_otherwise_than_tokens_is_refused(bert_folder, tmp_path):
    with pytest.raises(ArtefactError, match=r"a model of type esm does not read word vectors .*; give another model"):
        cse.load(random_model("esm", tmp_path / "esm", bert_folder), pooling="mean")


def test_a_cross_encoder_without_modules_is_refused_too(bert_folder, tmp_path):
    folder = random_copy(bert_folder, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = ["BertForSequenceClassification"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ArtefactError, match="is a CrossEncoder"):
        cse.load(str(folder))
