"""Templates become rows whose mask, positions and slots are where they should be."""

from itertools import product

import pytest
from conftest import SENTENCES
from transformers import AutoTokenizer

from cse.encoder.rows import render
from cse.methods.templates import CONTINUOUS, MEANS, MEANS_ROBERTA, NEGATIVE, OPTI, PLAIN, POSITIVE, Template


def test_a_row_is_what_the_tokenizer_makes_of_the_filled_in_text(backbone: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    for template, sentence in product([PLAIN, MEANS, MEANS_ROBERTA, *POSITIVE, *NEGATIVE], SENTENCES[:3]):
        rendered = render(template, tokenizer)
        content = tokenizer((" " if rendered.spaced else "") + sentence, add_special_tokens=False)["input_ids"]
        filled = template.text.replace("[X]", sentence).replace(" [MASK]", "[MASK]")
        expected = tokenizer(filled.replace("[MASK]", tokenizer.mask_token))["input_ids"]
        assert list(rendered.row(content).ids) == expected, template.text


def test_the_vector_is_read_at_the_template_mask_even_where_the_sentence_holds_one(backbone: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    mask = tokenizer.mask_token_id
    for template in (MEANS, *POSITIVE, *NEGATIVE):
        row = render(template, tokenizer).row([mask, 7, mask])
        masks = [position for position, token in enumerate(row.ids) if token == mask]
        assert row.pool_at == masks[-1], template.text
        assert row.positions == tuple(range(len(row.ids)))


def test_a_bias_row_keeps_the_positions_of_a_row_with_that_many_words(bert_folder: str) -> None:
    rendered = render(MEANS, AutoTokenizer.from_pretrained(bert_folder))
    full, bias = rendered.row([9, 9, 9]), rendered.bias_row(3)
    content = range(len(rendered.before), len(rendered.before) + 3)
    kept = [position for position in range(len(full.ids)) if position not in content]
    assert bias.ids == tuple(full.ids[position] for position in kept)
    assert bias.positions == tuple(full.positions[position] for position in kept)
    assert bias.positions[bias.pool_at] == full.pool_at
    inner = rendered.bias_row(3, specials=False)
    assert (inner.ids, inner.positions) == (bias.ids[1:-1], bias.positions[1:-1])
    assert inner.ids[inner.pool_at] == bias.ids[bias.pool_at]


def test_learned_slots_stand_right_before_the_mask_in_conpvp_and_on_every_word_in_optiprompt(bert_folder: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    row = render(CONTINUOUS, tokenizer).row([9])
    assert row.slots == (-1, -1, 0, 1, 2, 3, -1, -1, -1)
    assert row.pool_at == 6
    soft = render(OPTI, tokenizer).row([9, 9])
    assert soft.slots == (-1, 0, 1, 2, 3, -1, -1, 4, 5, -1, 6, -1)


@pytest.mark.parametrize("text", ["no sentence [MASK]", "[X] [X] [MASK]", "[X] [MASK] [MASK]"])
def test_a_template_without_one_sentence_or_with_two_masks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Template(text)


def test_a_mask_before_the_sentence_is_found(bert_folder: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    row = render(Template("it means [MASK] . [X]"), tokenizer).row([9, 9])
    assert row.ids[row.pool_at] == tokenizer.mask_token_id
