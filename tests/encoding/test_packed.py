"""Rows as one sequence: the vectors of a plain pass a sentence, whatever the lengths, and no token of padding.

What a GPU computes by its own kernels is computed on a CPU by plain products; the rest is the same there.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SENTENCES
from test_encoder import ALL, make, reading
from test_passes import TEXTS, plain
from test_scripts import refused, run
from torch.nn.functional import scaled_dot_product_attention
from transformers import DistilBertConfig, DistilBertForMaskedLM

import cse
from cse.analysis.prefix import prefix_attention
from cse.encoding.packed import PACKED, Packing, pack, read_in
from cse.methods.method import UNTRAINED


@pytest.mark.parametrize(("name", "supervised"), ALL)
def test_every_method_gives_the_vectors_of_the_plain_path(backbone: str, name: str, supervised: bool) -> None:
    encoder = make(backbone, name, supervised)
    expected = plain(encoder, TEXTS)
    pack(encoder.model)
    encoder.forget_biases()
    for count in (0, 1, len(TEXTS)):
        np.testing.assert_allclose(encoder.encode(TEXTS[:count]), expected[:count], atol=1e-5)


@pytest.mark.parametrize("name", sorted(UNTRAINED.keys() - {"pooler"}))
def test_every_pooling_gives_the_vectors_of_the_plain_path(backbone: str, name: str) -> None:
    encoder = reading(backbone, UNTRAINED[name])
    expected = plain(encoder, TEXTS)
    pack(encoder.model)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)


@pytest.mark.parametrize("prefix", [0, 3])
def test_every_query_attends_to_the_keys_of_its_row_alone(prefix: int) -> None:
    lengths, heads, width = [3, 7, 1, 5], 2, 8
    packing = Packing(lengths, prefix, torch.device("cpu"))
    keys = [length + prefix for length in lengths]
    query = torch.randn(1, heads, sum(lengths), width)
    single = torch.randn(1, heads, len(lengths), width)
    key, value = (torch.randn(1, heads, sum(keys), width) for _ in range(2))
    for asked, counts, one in ((query, lengths, False), (single, [1] * len(lengths), True)):
        rows = zip(*(states.split(n, 2) for states, n in ((asked, counts), (key, keys), (value, keys))), strict=True)
        expected = torch.cat([scaled_dot_product_attention(*row).transpose(1, 2) for row in rows], 1)
        torch.testing.assert_close(packing.attend(asked, key, value, single=one), expected)


def test_rows_come_back_from_where_they_were_put() -> None:
    packing = Packing([2, 4, 1], 0, torch.device("cpu"))
    rows = torch.tensor([[1, 2, 0, 0], [3, 4, 5, 6], [7, 0, 0, 0]])
    assert packing.pack(rows).tolist() == [[1, 2, 3, 4, 5, 6, 7]]
    assert torch.equal(packing.unpack(packing.pack(rows)[..., None])[..., 0], rows)


def test_the_blocks_compute_no_padding_and_the_last_one_a_token_a_row(backbone: str) -> None:
    encoder, widths = make(backbone, "promptbert"), []
    pack(encoder.model)
    for block in encoder.model.base_model.encoder.layer:
        block.intermediate.register_forward_hook(lambda module, inputs, output: widths.append(output.shape[:2]))
    encoder.encode_ids([[7] * length for length in range(1, 9)])
    around = encoder.views[0][0].length
    assert widths == [(1, sum(around + length for length in range(1, 9))), (1, 8)]


def test_training_and_looking_inside_are_as_they_were(bert_folder: Path) -> None:
    encoder = make(str(bert_folder), "dcpcse").train()
    template = encoder.views[0][0]
    ids = encoder.tokenise(SENTENCES, [template] * len(SENTENCES))

    def step() -> torch.Tensor:
        torch.manual_seed(0)
        return encoder(ids, [template] * len(ids))

    before, seen = step(), prefix_attention(encoder, SENTENCES[0])
    pack(encoder.model)
    torch.testing.assert_close(step(), before)
    assert repr(prefix_attention(encoder, SENTENCES[0])) == repr(seen)
    assert encoder.model.config._attn_implementation == PACKED


def test_compiled_blocks_share_what_is_compiled_whatever_the_lengths(
    bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs, encoder = [], make(str(bert_folder), "promptbert")
    expected = plain(encoder, TEXTS)
    compiled = torch.nn.Module.compile

    def counting(graph: torch.fx.GraphModule, inputs: list) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    monkeypatch.setattr(torch.nn.Module, "compile", lambda module: compiled(module, backend=counting))
    encoder.forget_biases()
    read_in(encoder.model, "compiled")
    for texts, vectors in ((TEXTS, expected), (TEXTS[:7], expected[:7])):
        np.testing.assert_allclose(encoder.encode(texts), vectors, atol=1e-5)
    before = len(graphs)
    np.testing.assert_allclose(encoder.encode(TEXTS[5:25]), expected[5:25], atol=1e-5)
    assert len(graphs) == before > 0


def test_another_family_and_another_word_are_refused(bert_folder: Path, tmp_path: Path) -> None:
    other = DistilBertForMaskedLM(DistilBertConfig(vocab_size=9, dim=8, n_layers=1, n_heads=1, hidden_dim=8))
    with pytest.raises(ValueError, match="a distilbert model does not support packed rows"):
        pack(other)
    with pytest.raises(ValueError, match="`passes` is 'all'; choose from padded, packed, compiled"):
        read_in(other, "all")


def test_a_file_is_encoded_in_packed_passes(bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    options = ("--model", bert_folder, "--pooling", "mean", "--input", tmp_path / "text.txt", "--passes")
    assert run("encode", *options, "packed", "--output", tmp_path / "v.npy").exit_code == 0
    expected = cse.load(str(bert_folder), "mean").encode(SENTENCES)
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-5)
    assert run("encode", *options, "packed", "--shards", 2, "--output", tmp_path / "parts").exit_code == 0
    refused(run("encode", *options, "some", "--output", tmp_path / "w.npy"), 2, "unknown passes 'some'")
    bench = ("--model", bert_folder, "--pooling", "mean", "--input", tmp_path / "text.txt", "--rounds", 1)
    done = run("bench", "encode", *bench, "--passes", "packed", "--precision", "bf16")
    assert done.exit_code == 0, done.output
    assert [line.split(":")[0] for line in done.stdout.splitlines()[2:]] == [
        "cse", "cse, bf16", "cse, packed", "cse, bf16, packed"
    ]  # fmt: skip
