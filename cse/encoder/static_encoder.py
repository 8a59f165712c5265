"""The encoder of static embeddings (model2vec's): a vector is the mean of its tokens' rows in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.encoder.encoder import Encoder
from cse.encoder.protocol import Update
from cse.encoder.rows import TokenRows, embedding_means, rendered
from cse.encoder.stored_backbone import float32
from cse.encoder.stored_tokenizer import StoredTokenizer
from cse.errors import ArtefactError
from cse.files.checksums import backbone_digest
from cse.files.weights import check_finite
from cse.methods.method import Method
from cse.vectors import unit_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from typing_extensions import Self

MAX_TOKENS = 1 << 20  # of a text; there are no positions to limit it
NO_WORDS = "is a table of static embeddings, which predicts no words; give a masked language model"
COPY_CURE = "copy it again"


def static_table(arrays: Mapping[str, np.ndarray], source: str) -> np.ndarray:
    """Return the (V, d) float32 rows of a file's arrays by token id: those of sentence-transformers or of model2vec.

    model2vec stores rows that tokens share (`mapping`) and a weight for each token (`weights`). Raises ArtefactError,
    beginning with `source`, for other arrays.
    """
    table = arrays.get("embedding.weight", arrays.get("embeddings"))
    unknown = arrays.keys() - {"embedding.weight", "embeddings", "mapping", "weights"}
    if table is None or table.ndim != 2 or unknown:
        raise ArtefactError(f"{source}: holds {', '.join(sorted(arrays))}, not one table of embeddings; {COPY_CURE}")
    check_finite(arrays, source, COPY_CURE)
    try:
        rows = float32(table[arrays["mapping"].astype(np.int64)] if "mapping" in arrays else table)
        return rows * float32(arrays["weights"])[:, None] if "weights" in arrays else rows
    except (IndexError, ValueError) as error:
        raise ArtefactError(f"{source}: its mapping or weights do not fit its embeddings; {COPY_CURE}") from error


class StaticEncoder(Encoder):
    """A `table` (V, d) of a tokenizer's tokens, on numpy and scipy; nothing of a text's order is in its vector."""

    backend = "static"
    device = "cpu"
    first_position = 0
    row_limit = MAX_TOKENS

    def __init__(self, table: np.ndarray, tokenizer: Tokenizer, method: Method, *, name: str, backbone: str) -> None:
        vocabulary = tokenizer.get_vocab()
        if vocabulary and max(vocabulary.values()) >= len(table):
            raise ArtefactError(f"{backbone}: its tokenizer has more tokens than its table has rows; {COPY_CURE}")
        self.tokenizer, self.method, self.table = StoredTokenizer(tokenizer, {}), method, table
        self.views = rendered(method, self.tokenizer)
        self.width = self.dim = table.shape[1]
        self._set_reading(name, backbone, backbone_digest({"embedding.weight": table}, vocabulary))

    def to(self, device: Any) -> Self:
        """Return the encoder: copying texts to a device would take longer than their vectors."""
        return self

    def bfloat16(self) -> Self:
        """Return the encoder: there is no product to round."""
        return self

    def select_learned(self, freeze_embeddings: bool = False) -> None:
        """Do nothing: no method of this project learned the table."""

    def forget_biases(self) -> None:
        """Do nothing: there is no template."""

    def learned_arrays(self) -> dict[str, np.ndarray]:
        """Return no arrays."""
        return {}

    @property
    def parameter_count(self) -> int:
        """The numbers of the table."""
        return self.table.size

    def word_embeddings(self) -> np.ndarray:
        """Return the table."""
        return self.table

    def encode_ids(
        self, contents: Sequence[Sequence[int]], batch_size: int | None = None, report: Update = lambda done: None
    ) -> np.ndarray:
        """Return (N, d) float32 vectors of N sentences' token ids; zeros for a sentence without tokens."""
        rows = TokenRows.of(contents, [self.views[0][0]] * len(contents))
        vectors = embedding_means(rows, self.table)
        report(len(rows))
        return unit_rows(vectors) if self.reading.normalised else vectors

    def mask_states(self, rows: TokenRows) -> tuple[np.ndarray, np.ndarray]:
        """Raise ArtefactError: no word is predicted."""
        raise ArtefactError(f"{self.name} {NO_WORDS}")
