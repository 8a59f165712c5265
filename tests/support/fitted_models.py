"""Models with a projection that is fitted on texts, as `adapt` writes them."""

from collections.abc import Sequence
from pathlib import Path

from cse.adaptation.projection import Projection, check_projectable, fit_projection, raw_vectors, write_projected
from cse.models.loading import open_model
from cse.models.names import resolve


def project(
    model: str, texts: Sequence[str], output: Path, *, components: int | None = None, pooling: str | None = None
) -> Projection:
    """Write a model with the projection of its own reading, fitted on texts, to a new folder."""
    reference = resolve(model, pooling)
    encoder = open_model(reference)
    check_projectable(reference, encoder)
    projection = fit_projection(raw_vectors(encoder, texts), components)
    output.mkdir()
    write_projected(reference, encoder, projection, len(texts), output)
    return projection
