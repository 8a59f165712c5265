"""Generate templates from words and their definitions with a sequence-to-sequence model (PromptBERT's T5 search).

T5 is trained to fill gaps in text. It fills three gaps around a word and its definition; replacing the word by [MASK]
and the definition by [X] gives a template. The paper says only that it generated 500 templates from such pairs; the
pairs, the two orders and the ranking are this project's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from cse.errors import ArtefactError
from cse.files import hub
from cse.files.writing import write_file
from cse.methods.templates import Template

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

GAP = "<extra_id_{}>"
GAPS = 3
BEAMS = 20  # of each of 24 texts: at most 480 templates
MAX_NEW_TOKENS = 24
WORD_DEFINITIONS = (
    ("bakery", "a shop where bread and cakes are made and sold"),
    ("island", "a piece of land with water on every side"),
    ("orphan", "a child whose parents are dead"),
    ("drought", "a long time without enough rain"),
    ("whisper", "to speak so softly that only those nearby can hear"),
    ("surgeon", "a doctor who operates on patients"),
    ("generous", "happy to give more than is expected"),
    ("archive", "a place where old documents are kept"),
    ("referee", "the person who sees that players keep to the rules"),
    ("fragile", "easily broken or damaged"),
    ("migrate", "to move from one region to another with the seasons"),
    ("rumour", "a story that many people tell though nobody knows whether it is true"),
)
Seq2Seq = tuple["PreTrainedModel", "PreTrainedTokenizerBase"]


def load_seq2seq(name: str) -> Seq2Seq:
    """Load a model that fills gaps (eval mode, float32) and its tokenizer from a folder or hub id.

    Raises ArtefactError if there is none, or its tokenizer lacks T5's gap tokens.
    """
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    offline = not Path(name).is_dir() and not hub.reachable()
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=offline, trust_remote_code=False)
        model = AutoModelForSeq2SeqLM.from_pretrained(
            name, local_files_only=offline, trust_remote_code=False, dtype=torch.float32, use_safetensors=True
        )
    except Exception as error:  # loading an arbitrary folder raises many types, with one remedy
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = "no such folder, and the model hub cannot be reached" if offline else lines[0][:160]
        raise ArtefactError(f"cannot open {name!r} to write templates: {reason}; give a T5 in safetensors") from error
    if any(GAP.format(number) not in tokenizer.get_vocab() for number in range(GAPS)):
        raise ArtefactError(f"{name}: its tokenizer has no {GAP.format(0)}, which marks a gap; give a T5")
    return model.eval(), tokenizer


def generated(
    model: Seq2Seq, pairs: Sequence[tuple[str, str]] = WORD_DEFINITIONS, beams: int = BEAMS
) -> list[Template]:
    """Generate templates from (word, definition) pairs, sorted by the number of pairs they come from.

    Each pair is used in both orders; each order gives the templates among the `beams` likeliest texts.
    """
    counts: dict[str, int] = {}
    for word, definition in pairs:
        for parts in (("[MASK]", "[X]"), ("[X]", "[MASK]")):
            known = {"[MASK]": word, "[X]": definition}
            gaps = [GAP.format(number) for number in range(GAPS)]
            source = f"{gaps[0]} {known[parts[0]]} {gaps[1]} {known[parts[1]]} {gaps[2]}"
            templates = (template_of(text, parts, (word, definition)) for text in _fill(model, source, beams))
            for text in dict.fromkeys(text for text in templates if text):
                counts[text] = counts.get(text, 0) + 1
    return [Template(text) for text in sorted(counts, key=lambda text: -counts[text])]  # ties: in order of generation


def template_of(filled: str, parts: tuple[str, str], source: Sequence[str] = ()) -> str | None:
    """The template of the text in the gaps of `filled` around `parts`, or None.

    It is None if a gap is missing, if all are empty, and if the text has brackets or repeats a text of `source`, which
    would make a template for that pair only.
    """
    pieces = re.split(r"<extra_id_\d+>", re.sub(r"<pad>|</s>", "", filled))[1 : GAPS + 1]
    if len(pieces) < GAPS:
        return None
    written = [" ".join(piece.split()) for piece in pieces]
    text = " ".join(written).lower()
    if not text.strip() or "[" in text or "]" in text or any(word.lower() in text for word in source):
        return None
    between = zip(written, (*parts, ""), strict=True)
    return re.sub(r" (?=[.,;:?!])", "", " ".join(piece for pair in between for piece in pair if piece))


def write_templates(path: Path, templates: Sequence[Template]) -> None:
    """Write templates to a text file, one per line. Raises ValueError if there are none."""
    if not templates:
        raise ValueError("the model generated no template; give another `generate`")
    lines = "".join(f"{template.text}\n" for template in templates)
    write_file(path, lambda target: target.write_text(lines, encoding="utf-8"))


@torch.no_grad()
def _fill(model: Seq2Seq, source: str, beams: int) -> list[str]:
    """The model's texts for the gaps of `source`, likeliest first."""
    tokenizer = model[1]
    network: Any = model[0]
    inputs = tokenizer(source, return_tensors="pt")
    options: dict[str, Any] = {"num_beams": beams, "num_return_sequences": beams, "max_new_tokens": MAX_NEW_TOKENS}
    ids = network.generate(
        input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], do_sample=False, **options
    )
    return tokenizer.batch_decode(ids, skip_special_tokens=False)
