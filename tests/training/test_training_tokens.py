"""A run's texts as token ids: the same steps from the file as from the texts, and one file for a run and its resume."""

from pathlib import Path

import numpy as np
import pytest
from encoders import IN_FAMILIES, make
from training_runs import run_of

from cse.encoder.torch_encoder import TorchEncoder
from cse.errors import ArtefactError
from cse.training.step import step_data
from cse.training.tokens import TokenisedTexts, tokenised_meanwhile


def of_file(encoder: TorchEncoder, run: object, work: Path, numbers: np.ndarray) -> TokenisedTexts:
    with tokenised_meanwhile(encoder, run, work, "of these texts", True) as examples:
        while not isinstance(batch := examples(numbers), TokenisedTexts):
            pass
        return batch


@pytest.mark.parametrize(("family", "name", "supervised"), IN_FAMILIES)
def test_a_step_reads_the_same_rows_from_the_file_as_from_the_texts(open_backbone, tmp_path, family, name, supervised):
    encoder = make(open_backbone(family), name, supervised)
    run = run_of(encoder, max_length=9)
    for step in (0, 3):
        tokens = of_file(encoder, run, tmp_path, run.numbers(step))
        for mine, theirs in zip(
            step_data(encoder, tokens, run.config, step)[1:],
            step_data(encoder, run.batch(step), run.config, step)[1:],
            strict=True,
        ):
            assert mine.templates == theirs.templates
            for array in ("kinds", "lengths", "offsets", "read_at", "tokens"):
                np.testing.assert_array_equal(getattr(mine, array), getattr(theirs, array))


def test_a_damaged_file_of_tokens_is_refused_with_the_cure(bert_folder, tmp_path):
    encoder = make(str(bert_folder), "simcse")
    run = run_of(encoder)
    of_file(encoder, run, tmp_path, run.numbers(0))
    (path,) = tmp_path.glob("tokens-*/texts.ids")
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(ArtefactError, match=r"texts\.ids: damaged .*; delete its folder to have it made again"):
        of_file(encoder, run, tmp_path, run.numbers(0))
