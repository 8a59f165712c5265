"""The encoder of static embeddings (model2vec's): a vector is the mean of its tokens' rows in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cse.encoder.encoder import Encoder, Update
from cse.encoder.rows import TokenRows, embedding_means
from cse.encoder.stored_backbone import float32
from cse.encoder.stored_tokenizer import StoredTokenizer
from cse.errors import ArtefactError
from cse.files.checksums import backbone_digest
from cse.files.weights import check_finite
from cse.methods.method import Method

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
    first_position = 0
    row_limit = MAX_TOKENS

    def __init__(self, table: np.ndarray, tokenizer: Tokenizer, method: Method, *, name: str, backbone: str) -> None:
        vocabulary = tokenizer.get_vocab()
        if vocabulary and max(vocabulary.values()) >= len(table):
            raise ArtefactError(f"{backbone}: its tokenizer has more tokens than its table has rows; {COPY_CURE}")
        self.tokenizer, self.method, self.table = StoredTokenizer(tokenizer, {}), method, table
        self.width = table.shape[1]
        self._set_reading(name, backbone, backbone_digest({"embedding.weight": table}, vocabulary))

    def to(self, device: Any) -> Self:
        return self  # copying texts to a device would take longer than their vectors

    def computing_in(self, precision: str) -> Self:
        return self  # there is no product to round

    def learned_arrays(self) -> dict[str, np.ndarray]:
        return {}

    @property
    def parameter_count(self) -> int:
        return self.table.size

    def word_embeddings(self) -> np.ndarray:
        return self.table

    def vectors_of(self, rows: TokenRows, passes: Sequence[np.ndarray], report: Update) -> np.ndarray:
        report(len(rows))
        return embedding_means(rows[np.concatenate(passes)], self.table)

    def mask_states(self, rows: TokenRows) -> tuple[np.ndarray, np.ndarray]:
        raise ArtefactError(f"{self.name} {NO_WORDS}")
