"""Templates: the text around a sentence that the backbone reads. `cse.encoder.rows` turns them into token ids.

A template is text with one `[X]` (the sentence), at most one `[MASK]` (where the vector is read; without it the vector
is read at the first token) and any number of `[P]` (learned slots). The sentence is truncated before it is inserted, so
the mask is never cut off, and the mask is located by its position in the template, never by its id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TEMPLATE_PARTS = re.compile(r"(\[X\]|\[MASK\]|\[P\])")


@dataclass(frozen=True)
class Template:
    """A template's text. `soft`: each of its words becomes a learned vector, initialised from the word's embedding."""

    text: str
    soft: bool = False

    def __post_init__(self) -> None:
        parts = TEMPLATE_PARTS.split(self.text)
        if parts.count("[X]") != 1 or parts.count("[MASK]") > 1:
            raise ValueError(f"template {self.text!r} needs exactly one [X] and at most one [MASK]")

    @property
    def prompts(self) -> bool:
        """True if the template asks for a word at a [MASK]."""
        return "[MASK]" in TEMPLATE_PARTS.split(self.text)


PLAIN = Template("[X]")
# PromptBERT 4.1 and its released settings: view 1, also used for encoding, and view 2, the best untrained template.
MEANS_OF = Template('This sentence of "[X]" means [MASK].')
MEANS = Template('This sentence : "[X]" means [MASK].')
MEANS_ROBERTA = Template("This sentence : ' [X] ' means [MASK].")
MEANS_ROBERTA_THE = Template("The sentence : ' [X] ' means [MASK].")
OPTI = Template(MEANS.text, soft=True)
SHALLOW = Template('This sentence : "[X]" means [MASK]', soft=True)  # DCPCSE, appendix A: no period
# ConPVP, section 3.2 and its released data (one positive template more than in Table 1; wording as released).
CONTINUOUS = Template("[X] [P][P][P][P] [MASK] .")
MANUAL = Template('This sentence : " [X] " means [MASK] .')
# PromptBERT's templates as released for RoBERTa: single quotes with spaces inside, and another second view. The soft
# templates, released for BERT only, are initialised from the same words.
ON_ROBERTA = {
    MEANS_OF: MEANS_ROBERTA,
    MEANS: MEANS_ROBERTA_THE,
    MANUAL: MEANS_ROBERTA,
    OPTI: Template(MEANS_ROBERTA.text, soft=True),
    SHALLOW: Template("This sentence : ' [X] ' means [MASK]", soft=True),
}
POSITIVE = tuple(
    map(
        Template,
        (
            'Given " [X] " , we assume that " [MASK] "',
            '" [X] " , Is this review positive ? [MASK] .',
            '" [X] " , is related to " [MASK] "',
            '" [X] " is a [MASK] news',
            '" [X] " is a [MASK] one',
            '" [X] " . In summary : " [MASK] "',
            'By " [X] " they mean [MASK] .',
            'Article " [X] " belongs to a [MASK] topic',
            'This sentence : " [X] " means [MASK] .',
        ),
    )
)
NEGATIVE = tuple(
    map(
        Template,
        (
            '" [X] " , Is this review negative ? [MASK] .',
            'Without " [X] " they mean [MASK] .',
            '" [X] " is inconsistent to " [MASK] "',
            '" [X] " is totally different to : " [MASK] "',
            '" [X] " which not denotes [MASK] .',
            '" [X] " is not a [MASK] one',
            'This sentence : " [X] " not means [MASK] .',
            'Article " [X] " is definitely not about the [MASK] topic',
        ),
    )
)
