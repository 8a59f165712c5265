"""Templates become rows whose mask, positions and slots are where they should be."""

from itertools import product

import numpy as np
import pytest
from conftest import SENTENCES
from transformers import AutoTokenizer

from cse.encoder.rows import TokenRows, TokenTemplate, bias_rows, render
from cse.methods.templates import CONTINUOUS, MEANS, MEANS_ROBERTA, NEGATIVE, OPTI, PLAIN, POSITIVE, Template


def row_of(template: TokenTemplate, content: list[int]) -> TokenRows:
    return TokenRows.of([content], [template])


def test_a_row_is_what_the_tokenizer_makes_of_the_filled_in_text(backbone):
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    for template, sentence in product([PLAIN, MEANS, MEANS_ROBERTA, *POSITIVE, *NEGATIVE], SENTENCES[:3]):
        rendered = render(template, tokenizer)
        content = tokenizer((" " if rendered.spaced else "") + sentence, add_special_tokens=False)["input_ids"]
        filled = template.text.replace("[X]", sentence).replace(" [MASK]", "[MASK]")
        expected = tokenizer(filled.replace("[MASK]", tokenizer.mask_token))["input_ids"]
        assert row_of(rendered, content).ids.tolist() == expected, template.text


def test_the_vector_is_read_at_the_template_mask_even_where_the_sentence_holds_one(backbone):
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    mask = tokenizer.mask_token_id
    for template in (MEANS, *POSITIVE, *NEGATIVE):
        row = row_of(render(template, tokenizer), [mask, 7, mask])
        assert row.read_at == np.flatnonzero(row.ids == mask)[-1], template.text
        assert row.tokens[2].tolist() == list(range(len(row.ids)))


def test_a_bias_row_keeps_the_positions_of_a_row_with_that_many_words(bert_folder):
    rendered = render(MEANS, AutoTokenizer.from_pretrained(bert_folder))
    full, bias = row_of(rendered, [9, 9, 9]), bias_rows([(rendered, 3)], specials=True)
    content = range(rendered.start, rendered.start + 3)
    kept = [position for position in range(len(full.ids)) if position not in content]
    np.testing.assert_array_equal(bias.tokens, full.tokens[:, kept])
    assert bias.tokens[2, bias.read_at] == full.read_at
    inner = bias_rows([(rendered, 3)], specials=False)
    np.testing.assert_array_equal(inner.tokens, bias.tokens[:, 1:-1])
    assert inner.ids[inner.read_at] == bias.ids[bias.read_at]


def test_learned_slots_stand_right_before_the_mask_in_conpvp_and_on_every_word_in_optiprompt(bert_folder):
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    row = row_of(render(CONTINUOUS, tokenizer), [9])
    assert row.tokens[1].tolist() == [-1, -1, 0, 1, 2, 3, -1, -1, -1]
    assert row.read_at == 6
    soft = row_of(render(OPTI, tokenizer), [9, 9])
    assert soft.tokens[1].tolist() == [-1, 0, 1, 2, 3, -1, -1, 4, 5, -1, 6, -1]


@pytest.mark.parametrize("text", ["no sentence [MASK]", "[X] [X] [MASK]", "[X] [MASK] [MASK]"])
def test_a_template_without_one_sentence_or_with_two_masks_is_refused(text):
    with pytest.raises(ValueError, match="exactly one"):
        Template(text)


def test_a_mask_before_the_sentence_is_found(bert_folder):
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    row = row_of(render(Template("it means [MASK] . [X]"), tokenizer), [9, 9])
    assert row.ids[row.read_at] == tokenizer.mask_token_id
