"""The terms of the page, a sentence each, behind a "?" that a click or a key opens and Escape closes."""

from __future__ import annotations

from cse.app.drawing import html

TERMS = {
    "percentile": (
        "The share of random sentence pairs that are less similar than this pair, so 99 % means closer than 99 of 100 "
        "random pairs; it can be compared between models, a cosine cannot."
    ),
    "anisotropy": (
        "How much all vectors of a model point the same way, measured as the mean cosine of unrelated sentences: near "
        "0 they spread in all directions, near 1 every pair looks alike."
    ),
    "denoising": (
        "Subtracting what the template says without any sentence, so that what is left comes from the sentence alone "
        "(PromptBERT, section 4.2)."
    ),
    "prefix": (
        "Some trained vectors that every layer of a frozen backbone reads beside the sentence; DCPCSE trains only them."
    ),
    "prototype": (
        "The vector of a sentence in a template that affirms or denies it; ConPVP pulls a sentence to the first kind "
        "and pushes it from the second."
    ),
    "trustworthiness": (
        "The share of neighbours on the map that are also neighbours among the vectors; 1 means that the map invents "
        "none."
    ),
    "nDCG": (
        "A score of a ranked list from 0 to 100: relevant texts count more the earlier they come, and 100 means that "
        "all relevant ones come first."
    ),
    "Spearman": (
        "A correlation of ranks from -100 to 100: 100 means that the model orders all pairs by similarity exactly as "
        "people do."
    ),
    "STS": (
        "Semantic textual similarity: people grade how alike two sentences are, and a model scores by ordering pairs "
        "as they do."
    ),
    "noise": (
        "Differences this small also appear by chance: the 95 % interval of the difference contains zero."
    ),
}  # fmt: skip


def term(name: str, shown: str = "") -> str:
    """Return a term, or other words for it, with the "?" that opens its sentence."""
    return ask(f"term-{name.lower()}", shown or name, f"What is {name}?")


def ask(place: str, shown: str, said: str) -> str:
    """Return words with the "?" that opens the sheet of the id `place`; screen readers say `said`."""
    return (
        f'<button type="button" class="cse-term" popovertarget="{place}" aria-label="{html.escape(said)}">'
        f'{html.escape(shown)}<span aria-hidden="true">?</span></button>'
    )


def sheet(place: str, name: str, inside: str) -> str:
    """Return a sheet of HTML that is closed at first."""
    label = html.escape(name)
    return (
        f'<div popover class="cse-popover" id="{place}" role="dialog" aria-label="{label}"><h2>{label}</h2>'
        f"{inside}</div>"
    )


def glossary_html() -> str:
    """Return the sheets of all terms, once for the page."""
    return "".join(sheet(f"term-{name.lower()}", name, f"<p>{html.escape(said)}</p>") for name, said in TERMS.items())
