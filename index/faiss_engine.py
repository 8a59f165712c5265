"""All calls to FAISS: create, train, tune, edit, store and move its index objects.

Every index uses inner products of unit rows, so scores are cosines. FAISS raises RuntimeError with a C++ location;
here it becomes a ValueError with the reason alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from cse.vectors import mixed
from index.manifest import DOCUMENTED_FACTORIES, cure

VERSION: str = faiss.__version__
MIN_PER_LIST, MAX_PER_LIST = 39, 256  # FAISS's bounds on training points per cluster
TRAINING_FLOOR, TRAINING_CAP = 65_536, 200_000  # 256 points for each of the 256 centroids of a product quantizer
EF_SEARCH = 64  # FAISS's default of 16 misses answers at k = 10
GPU_MAX_K = 2048
GPU_TYPES = ("IndexFlat", "IndexFlatIP", "IndexIVFFlat", "IndexIVFScalarQuantizer", "IndexIVFPQ")
CRASHING_FACTORY = re.compile(r"HNSW0*[01](?!\d)")  # with fewer than 2 neighbours, a C++ assertion aborts the process


@contextmanager
def _plain_errors(what: str, cure: str) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        reason = re.sub(r"^.*\.(cpp|h):\d+: (Error: '.*?' failed: (?=.))?", "", str(error), flags=re.DOTALL)
        raise ValueError(f"{what}: {reason.strip() or 'no reason given'}; {cure}") from error


def create(dimension: int, factory: str, seed: int) -> Any:
    """An empty FAISS index. Raises ValueError naming the factory and listing the documented ones."""
    choices = f"documented factories: {' '.join(DOCUMENTED_FACTORIES)}"
    what = f"FAISS cannot make {factory!r} for {dimension} dimensions"
    if CRASHING_FACTORY.search(factory):
        raise ValueError(f"{what}: HNSW needs at least 2 neighbours; {choices}")
    with _plain_errors(what, choices):
        index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
    ivf = _ivf(index)
    if ivf is not None:
        if ivf.nlist < 1:
            raise ValueError(f"{what}: IVF needs at least 1 list; {choices}")
        ivf.cp.seed = seed % 2**31  # FAISS takes no larger one
        ivf.cp.min_points_per_centroid = 1  # suppresses a warning on stderr; `train` checks the count
    coder = _core(index)
    if hasattr(coder, "pq"):
        coder.pq.cp.min_points_per_centroid = 1
    if hasattr(coder, "do_polysemous_training"):
        coder.do_polysemous_training = False  # 1.5 s per byte, for a search mode that is not used here
    return index


def is_exact(index: Any) -> bool:
    """True if the index stores vectors uncompressed and searches all of them."""
    index = faiss.downcast_index(index)
    return is_exact(index.index) if isinstance(index, faiss.IndexIDMap) else isinstance(index, faiss.IndexFlat)


def head_rows(index: Any) -> int:
    """Return the number of vectors to collect for training and for the recall probe before any is added."""
    if is_exact(index):
        return 1
    lists = 0 if _ivf(index) is None else _ivf(index).nlist
    return max(TRAINING_FLOOR, min(MAX_PER_LIST * lists, TRAINING_CAP), MIN_PER_LIST * lists)


def train(index: Any, vectors: np.ndarray, factory: str) -> None:
    """Train on `vectors` (n, d) unit rows. Raises ValueError if there are too few."""
    ivf, count = _ivf(index), len(vectors)
    if ivf is not None and count < ivf.nlist:
        raise ValueError(f"{factory} needs at least {ivf.nlist} sentences, got {count}: use Flat or fewer lists")
    with _plain_errors(f"{factory} cannot be trained on {count} sentences", "use Flat or a larger corpus"):
        index.train(vectors)


def add(index: Any, vectors: np.ndarray, first_row: int) -> None:
    """Append `vectors` (n, d) unit rows under the row numbers from `first_row` on."""
    with _plain_errors("FAISS cannot add to this index", cure()):
        if keeps_ids(index):
            index.add_with_ids(vectors, np.arange(first_row, first_row + len(vectors), dtype=np.int64))
        else:
            index.add(vectors)


def keeps_ids(index: Any) -> bool:
    """True if an index stores row numbers; other types store positions, which shift after a removal."""
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexPreTransform):
        return keeps_ids(index.index)
    return isinstance(index, (faiss.IndexIVF, faiss.IndexIDMap))


def remove(index: Any, labels: np.ndarray, factory: str) -> None:
    """Remove the vectors of `labels` (n,) int64. Raises ValueError, changing nothing, for a type that cannot."""
    with _plain_errors(f"{factory} cannot remove rows", "rebuild without them, or use Flat or an IVF factory"):
        index.remove_ids(labels)


def tune(index: Any, nprobe: int | None, ef_search: int | None) -> tuple[int | None, int | None]:
    """Set `nprobe` (IVF) and `ef_search` (HNSW) and return the values used, None for one that the type lacks.

    Defaults: nprobe is the square root of the number of lists, at least 8; ef_search is 64.
    """
    ivf = _ivf(index)
    cells = None if ivf is None else min(ivf.nlist, nprobe or max(8, math.isqrt(ivf.nlist)))
    depth = (ef_search or EF_SEARCH) if isinstance(_core(index), faiss.IndexHNSW) else None
    for name, value in (("nprobe", cells), ("efSearch", depth)):
        if value is not None:
            faiss.ParameterSpace().set_index_parameter(index, name, value)
    return cells, depth


def search_with(
    index: Any, queries: np.ndarray, k: int, labels: np.ndarray | None, probe: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (q, k) and labels (q, k) for unit `queries` (q, d); -1 if not found.

    Only `labels` (n,) int64 are searched, or all; `probe` is nprobe or efSearch, by default what `tune` set. Raises
    ValueError for a type that can only search all.
    """
    selector = None if labels is None else faiss.IDSelectorBatch(labels)
    with _plain_errors("FAISS cannot search some rows of this index", "search all rows, or build the index as Flat"):
        return index.search(queries, k, params=_parameters(faiss.downcast_index(index), selector, probe))


def _parameters(index: Any, selector: Any, probe: int | None) -> Any:
    """Search parameters of an index, with those of the indexes inside it."""
    library: Any = faiss  # its stubs lack these parameters
    if isinstance(index, faiss.IndexPreTransform):
        return library.SearchParametersPreTransform(
            index_params=_parameters(faiss.downcast_index(index.index), selector, probe)
        )
    if isinstance(index, faiss.IndexRefine):
        return library.IndexRefineSearchParameters(
            k_factor=index.k_factor,
            base_index_params=_parameters(faiss.downcast_index(index.base_index), selector, probe),
        )
    if isinstance(index, faiss.IndexIDMap):
        return _parameters(faiss.downcast_index(index.index), selector, probe)
    if isinstance(index, faiss.IndexIVF):
        return library.SearchParametersIVF(sel=selector, nprobe=min(index.nlist, probe or index.nprobe))
    if isinstance(index, faiss.IndexHNSW):
        return library.SearchParametersHNSW(sel=selector, efSearch=probe or index.hnsw.efSearch)
    return library.SearchParameters(sel=selector)


def expanded(index: Any, queries: np.ndarray, count: int) -> np.ndarray:
    """Return unit `queries` (q, d), each mixed with its `count` nearest stored vectors (`cse.vectors.mixed`).

    Query expansion of image retrieval (Arandjelović and Zisserman 2012). Raises ValueError for a `count` below 0 and
    for a type that cannot reconstruct vectors.
    """
    if count < 0:
        raise ValueError(f"`expand` is {count}; give 0 or more neighbours")
    if not (count and len(queries) and index.ntotal):
        return queries
    with _plain_errors("FAISS gives no vectors back to mix", "search with `expand` 0, or build the index as Flat"):
        scores, labels, near = index.search_and_reconstruct(queries, min(count, index.ntotal))
    is_hit = labels >= 0
    return mixed(queries, np.where(is_hit[:, :, None], near, 0), np.where(is_hit, scores, 0))


def write(index: Any, path: Path) -> None:
    """Write the FAISS file. Raises OSError if that fails."""
    try:
        faiss.write_index(index, str(path))
    except RuntimeError as error:
        raise OSError(f"{path}: {error}") from error


def read_mapped(path: Path) -> Any:
    """A memory-mapped, read-only index. Raises ValueError for a file FAISS cannot read."""
    with _plain_errors("FAISS cannot read the file", cure()):
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)


def in_memory(index: Any) -> Any:
    """Return an editable copy: editing a memory-mapped index makes FAISS abort the process."""
    return faiss.deserialize_index(faiss.serialize_index(index))


def reconstruct(index: Any, labels: np.ndarray) -> np.ndarray:
    """The stored vectors (n, d) float32 of `labels` (n,) int64, decompressed if the type compresses.

    Raises ValueError for a type that cannot reconstruct vectors.
    """
    index = in_memory(index)  # setting the direct map is an edit
    ivf = _ivf(index)
    with _plain_errors("FAISS gives no vectors back", "build the index as Flat"):
        if isinstance(ivf, faiss.IndexIVFFastScan):
            raise RuntimeError("it cannot for a factory with fs")  # FAISS ends the process
        if ivf is not None:
            ivf.set_direct_map_type(faiss.DirectMap.Hashtable)  # type: ignore[attr-defined]  # not in faiss's stubs
        return index.reconstruct_batch(np.ascontiguousarray(labels, dtype=np.int64))


def gpu_clone(index: Any) -> Any:
    """A copy on the first GPU; None without a GPU, without enough memory, or for a type GPUs do not have."""
    core = _core(index)
    half = isinstance(core, faiss.IndexScalarQuantizer) and core.sq.qtype == faiss.ScalarQuantizer.QT_fp16
    if faiss.get_num_gpus() == 0 or not (half or type(core).__name__ in GPU_TYPES):
        return None
    try:
        return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)
    except RuntimeError:
        return None


def nearest(queries: np.ndarray, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores (q, k) float32 and positions (q, k) int64 of the exact `k` best of `vectors` (n, d), n >= k."""
    return faiss.knn(queries, vectors, k, metric=faiss.METRIC_INNER_PRODUCT)


def _ivf(index: Any) -> Any:
    ivf = faiss.try_extract_index_ivf(index)
    return None if ivf is None else faiss.downcast_index(ivf)


def _core(index: Any) -> Any:
    """The index inside id maps and vector transforms."""
    index = faiss.downcast_index(index)
    return _core(index.index) if isinstance(index, (faiss.IndexIDMap, faiss.IndexPreTransform)) else index
