"""Reading of the configuration of sentence-transformers folders, saved by any of its releases.

Every key of their files is in `KEYS`: it is obeyed, or changes nothing, or is refused by name (docs/other-tools.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from posixpath import join
from typing import TYPE_CHECKING, Any

from cse.errors import ArtefactError
from cse.files import hub
from cse.files.weights import SINGLE, check_finite, find_weights, read_arrays
from cse.methods.method import LAYERS, Head, Method, Pooling, When

if TYPE_CHECKING:
    import numpy as np

    from cse.encoder.encoder import Encoder

ACTIVATIONS = {"Identity": (), "Tanh": ("tanh",)}  # classes of torch.nn -> layers after the linear one
LAYER_MODULES = {"Dense": "linear", "LayerNorm": "norm"}  # modules with arrays -> their layer, and prefix of these
COPY_AGAIN = "copy it again"
HEADS = {("linear",): Head.LINEAR, ("linear", "tanh"): Head.TANH}


@dataclass(frozen=True)
class RecordedLayers:
    """The `layers` after a pooling, as those of `cse.methods.method.Reading`, and the subfolder of each or ""."""

    layers: tuple[str, ...]
    paths: tuple[str, ...]

    @classmethod
    def of(cls, name: str, modules: Sequence[tuple[str, str]]) -> RecordedLayers | None:
        """Return those of a model's modules, by class and subfolder, without a last normalisation; None if it has none.

        Raises ArtefactError for one that is damaged, or has another activation than Identity and Tanh.
        """
        layers: list[tuple[str, str]] = []
        after = [(kind, path) for kind, path in modules if kind in AFTER_POOLING]
        for kind, path in after[:-1] if _ends_normalised(modules) else after:
            if kind == "Dense":
                called = str((_object(name, f"{path}/config.json")).get("activation_function", "torch.nn.Tanh"))
                activation = called.rsplit(".", 1)[-1]
                if not called.startswith("torch.nn.") or activation not in ACTIVATIONS:
                    raise ArtefactError(
                        f"{name}: its {path} has the activation {called}, which is not supported; {POOLING_CURE}"
                    )
                layers += [("linear", path), *((layer, "") for layer in ACTIVATIONS[activation])]
            else:
                layers.append(("unit", "") if kind == "Normalize" else (LAYER_MODULES[kind], path))
        return cls(*map(tuple, zip(*layers, strict=True))) if layers else None

    def applied_to(self, method: Method) -> Method:
        """Return the method with these layers as its head."""
        kind = HEADS.get(self.layers)
        if kind:
            return method.replaced(head=kind, head_when=When.ALWAYS)
        return method.replaced(head=Head.LAYERS, layers=self.layers, head_when=When.ALWAYS)

    def arrays(self, name: str, width: int) -> dict[str, np.ndarray]:
        """Return float32 arrays by the names of a head, for a pooled vector of `width` numbers.

        Raises ArtefactError for arrays that are missing, not finite, or of other sizes than the configuration says.
        """
        import numpy as np

        arrays: dict[str, np.ndarray] = {}
        for number, (layer, path) in enumerate(zip(self.layers, self.paths, strict=True)):
            if not path:
                continue
            config = _object(name, f"{path}/config.json")
            sizes: list[Any] = [config.get(key) for key in SIZES[layer]]
            inputs, outputs = sizes
            if inputs != width:
                raise ArtefactError(f"{name}: its {path} reads {inputs} numbers, but gets {width}; {COPY_AGAIN}")
            stored = _arrays(name, path)
            expected: dict[str, tuple[int, ...]] = {f"{layer}.weight": (outputs, inputs), f"{layer}.bias": (outputs,)}
            if layer == "norm":
                expected[f"{layer}.weight"] = (outputs,)
            elif not config.get("bias", True):
                del expected[f"{layer}.bias"]
            shapes = {key: array.shape for key, array in stored.items()}
            if shapes != expected:
                raise ArtefactError(f"{name}: its {path} holds {shapes}, not {expected}; {COPY_AGAIN}")
            stored.setdefault(f"{layer}.bias", np.zeros(outputs, np.float32))
            for part in ("weight", "bias"):
                arrays[f"{number}.{part}"] = np.ascontiguousarray(stored[f"{layer}.{part}"], np.float32)
            width = outputs
        return arrays


SIZES = {"linear": ("in_features", "out_features"), "norm": ("dimension", "dimension")}  # keys of a module's config


PACKAGE = "sentence_transformers."  # where the classes of modules are; code of a folder is not run
AFTER_POOLING = (*LAYER_MODULES, "Normalize")  # modules, in any order
LAYER_MEAN = "WeightedLayerPooling"  # a mean of layers, before the pooling
STATIC = "StaticEmbedding"
ROUTES = "has several routes (Router); give the folder of one of them, with `pooling`"
OTHER = "give a model of dense sentence vectors, or `pooling` to read its backbone"
PAIRS = f"is a CrossEncoder, which scores pairs of texts; {OTHER}"
SPARSE = f"is a sparse encoder (SparseEncoder); {OTHER}"
TOKENS = f"is a MultiVectorEncoder, with a vector per token; {OTHER}"
OTHER_MODELS = {  # modules, and model types, of models that are refused
    "Router": ROUTES, "Asym": ROUTES, "CrossEncoder": PAIRS, "MultiVectorMask": TOKENS, "MultiVectorEncoder": TOKENS,
    **dict.fromkeys(
        ("SpladePooling", "MLMTransformer", "SparseStaticEmbedding", "SparseAutoEncoder", "SparseEncoder"), SPARSE
    ),
}  # fmt: skip
IDLE = "Dropout"  # a module that does nothing outside training
MODULES, CALLS, TRANSFORMER = "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"
FAMILIES = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
TRANSFORMER_FILES = tuple(f"sentence_{family}_config.json" for family in FAMILIES)  # the first that there is is read
POOLINGS = {  # older keys -> the value of `pooling_mode` that they stand for
    "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max", "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean", "pooling_mode_lasttoken": "lasttoken",
}  # fmt: skip
READ_POOLINGS = {  # pooling of an encoder -> that of sentence-transformers
    "cls": ["cls"], "mean": ["mean"], "max": ["max"], "last": ["lasttoken"], "weighted-mean": ["weightedmean"],
    "mean-sqrt-len": ["mean_sqrt_len_tokens"], "cls-mean": ["cls", "mean"], "mean-cls": ["mean", "cls"],
    "first-last": ["mean"], "last-two": ["mean"], "cls-first-last": ["cls", "mean"],
}  # fmt: skip


def pooling_name(pooling: Pooling) -> str:
    """Return the name of a pooling in `READ_POOLINGS`, of one token as that of the first one."""
    return {Pooling.TOKEN: "cls"}.get(pooling, pooling.value)


EMPTY_PROMPTS = ("query", "document")  # every model has these
LAYERS_OF = {pooling.value: layers for pooling, layers in LAYERS.items()}
MAX_SHOWN_CHARACTERS = 60  # characters of a foreign value in an error
POOLING_CURE = "give `pooling` to read the backbone alone"

OBEYED, NOTHING = "obeyed", "changes nothing"
OWN_INPUT = (None, "sentence_embedding")
LOADING_KEYS = dict.fromkeys(
    ("trust_remote_code", "low_cpu_mem_usage", "use_safetensors", "attn_implementation"), NOTHING
)
MODEL_KEYS = {**LOADING_KEYS, "add_pooling_layer": NOTHING, "dtype": (None, "auto", "float32")}
MODEL_KEYS["torch_dtype"] = MODEL_KEYS["dtype"]
TOKENIZER_KEYS = {"model_max_length": OBEYED, "use_fast": NOTHING, "trust_remote_code": NOTHING}
CONFIG_KEYS = {"trust_remote_code": NOTHING}
FORWARD = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
# By file or module: a tuple holds the values that change nothing, and others are refused; an object has its own keys.
KEYS: dict[str, dict[str, Any]] = {
    MODULES: {"idx": NOTHING, "name": NOTHING, "path": OBEYED, "type": OBEYED, "kwargs": (None, [])},
    CALLS: {
        "prompts": OBEYED, "default_prompt_name": OBEYED, "similarity_fn_name": OBEYED, "truncate_dim": OBEYED,
        "model_type": (None, "SentenceTransformer"), "__version__": NOTHING, "requirements": NOTHING,
    },
    TRANSFORMER: {
        "max_seq_length": OBEYED, "do_lower_case": OBEYED, "unpad_inputs": NOTHING,
        "transformer_task": (None, "feature-extraction"), "modality_config": (None, FORWARD),
        "module_output_name": (None, "token_embeddings"), "processing_kwargs": (None, {}),
        "query_length": (None,), "document_length": (None,), "query_expansion": (None,),
        "tokenizer_name_or_path": (None,),
        **dict.fromkeys(("model_args", "model_kwargs"), MODEL_KEYS), "config_args": CONFIG_KEYS,
        **dict.fromkeys(("tokenizer_args", "processor_kwargs"), TOKENIZER_KEYS), "config_kwargs": CONFIG_KEYS,
    },
    "Pooling": {
        "pooling_mode": OBEYED, **dict.fromkeys(POOLINGS, OBEYED), "include_prompt": OBEYED,
        "word_embedding_dimension": NOTHING, "embedding_dimension": NOTHING,
    },
    LAYER_MEAN: {
        "layer_start": OBEYED, "num_hidden_layers": OBEYED, "word_embedding_dimension": NOTHING,
        "embedding_dimension": NOTHING,
    },
    "Dense": {
        "in_features": OBEYED, "out_features": OBEYED, "bias": OBEYED, "activation_function": OBEYED,
        "module_input_name": OWN_INPUT, "module_output_name": OWN_INPUT, "use_residual": (None, False),
    },
    "LayerNorm": {"dimension": OBEYED},
    "Normalize": {"module_input_name": OWN_INPUT, "module_output_name": OWN_INPUT},
    "Dropout": {"dropout": NOTHING},
}  # fmt: skip


@dataclass(frozen=True)
class RecordedPooling:
    """Pooling, maximum length in tokens (special ones included) and the layers after the pooling of a
    sentence-transformers model, defaults of its calls, and settings by the names of `cse.methods.method.Reading`.
    """

    pooling: str
    max_length: int | None
    head: RecordedLayers | None = None
    prompts: tuple[tuple[str, str], ...] = ()  # by name
    default_prompt_name: str | None = None
    truncate_dim: int | None = None
    similarity_fn_name: str | None = None
    normalised: bool = False
    prompt_pooled: bool = True
    typed_specials: bool = True
    lower_case: bool = False

    def applied_to(self, method: Method) -> Method:
        """Return a method that reads as the model says."""
        return method.replaced(
            normalised=self.normalised, prompt_pooled=self.prompt_pooled, typed_specials=self.typed_specials,
            lower_case=self.lower_case,
        )  # fmt: skip


def recorded_pooling(name: str) -> RecordedPooling | None:
    """Return the pooling that a model records; None for a plain transformers model.

    Raises ArtefactError for a pipeline other than a backbone, a pooling, and linear layers and normalisations, and for
    a setting that is not supported.
    """
    modules = modules_of(name)
    if modules is None:
        return None
    work = [(kind, path) for kind, path in modules if kind != IDLE]
    order = [kind for kind, _ in work]
    at = order.index("Pooling") + 1 if "Pooling" in order else 0
    if order[:at] not in (["Transformer", "Pooling"], ["Transformer", LAYER_MEAN, "Pooling"]) or not (
        set(order[at:]) <= set(AFTER_POOLING)
    ):
        raise ArtefactError(
            f"{name}: its pipeline ({', '.join(order)}) is not a backbone with a pooling, then linear layers and "
            f"normalisations; {POOLING_CURE}"
        )
    if work[0][1] and not Path(name).is_dir():
        raise ArtefactError(f"{name}: its backbone lies in {work[0][1]}; download it and give the folder")
    return replace(recorded_settings(name, modules), head=RecordedLayers.of(name, modules))


def check_vectors(name: str) -> None:
    """Raise ArtefactError, with the cure, for a model that gives no dense vector of a sentence."""
    kinds = [kind for kind, _ in modules_of(name) or ()]
    kind = next((kind for kind in (*kinds, str(_object(name, CALLS).get("model_type"))) if kind in OTHER_MODELS), None)
    if not kinds and str(_object(name, "config.json").get("architectures")).endswith("ForSequenceClassification']"):
        kind = "CrossEncoder"  # as saved before version 6, or by transformers
    if kind:
        raise ArtefactError(f"{name} {OTHER_MODELS[kind]}")


def static_folder(name: str) -> str | None:
    """Return the subfolder ("" for its own) of a model's table of static embeddings; None if it has another kind."""
    try:
        modules = modules_of(name)
    except ArtefactError:  # whoever reads the modules says why
        return None
    if modules is None:
        return "" if _object(name, "config.json").get("model_type") == "model2vec" else None
    return dict(modules).get(STATIC)


def recorded_static(name: str) -> RecordedPooling:
    """Return what a model of static embeddings records. Raises ArtefactError for other modules beside its table."""
    modules = modules_of(name)
    if modules is None:
        return RecordedPooling("static", None, normalised=bool(_object(name, "config.json").get("normalize")))
    order = [kind for kind, _ in modules if kind != IDLE]
    if order not in ([STATIC], [STATIC, "Normalize"]):
        raise ArtefactError(f"{name}: its pipeline ({', '.join(order)}) is not a {STATIC}, normalised or not")
    return RecordedPooling("static", None, **_recorded_calls(name), normalised=order[-1] == "Normalize")


def recorded_settings(name: str, modules: list[tuple[str, str]]) -> RecordedPooling:
    """Return what the files of these modules say, but not the layers. Raises ArtefactError as above."""
    paths = dict(modules)
    files = {kind: _object(name, join(path, "config.json"), kind) for kind, path in modules if kind in KEYS}
    pooling, backbone = files["Pooling"], paths["Transformer"]
    if not pooling:
        raise ArtefactError(f"{name}: its {join(paths['Pooling'], 'config.json')} is missing or empty; {COPY_AGAIN}")
    modes = pooling.get("pooling_mode") or [mode for key, mode in POOLINGS.items() if pooling.get(key)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    layers = _mean_layers(name, paths, backbone)
    pooled = next((
        pooling for pooling, order in READ_POOLINGS.items() if modes == order and LAYERS_OF.get(pooling) == layers
    ), None)  # fmt: skip
    if pooled is None:
        wrong = " and ".join(map(_shown, modes)) if isinstance(modes, list) else _shown(modes)
        wrong += f" of the layers {layers}" if layers else ""
        known = ", ".join(POOLINGS.values())
        raise ArtefactError(
            f"{name}: its pooling is {wrong}, but only {known}, and cls with mean, are supported, and some of them for "
            f"first and last or the last two layers; {POOLING_CURE}"
        )
    options = transformer_options(name, backbone)
    tokenizer = _object(name, join(backbone, "tokenizer_config.json"))
    # The maximum length in tokens, which the arguments of the tokenizer override; None: the model's positions.
    overrides = [(options.get(key) or {}).get("model_max_length") for key in ("tokenizer_args", "processor_kwargs")]
    lengths = (*overrides, options.get("max_seq_length"), tokenizer.get("model_max_length"))
    length = next((length for length in lengths if length is not None), None)
    if length is not None and type(length) is not int:
        raise ArtefactError(f"{name}: its max_seq_length is {_shown(length)}, not a whole number; {POOLING_CURE}")
    normalizer = json.dumps(_object(name, join(backbone, "tokenizer.json")).get("normalizer"))
    lowers = '"lowercase": true' in normalizer and tokenizer.get("do_lower_case", True)
    return RecordedPooling(
        pooled, length, **_recorded_calls(name),
        normalised=_ends_normalised(modules),
        prompt_pooled=bool(pooling.get("include_prompt", True)),
        typed_specials=not tokenizer.get("split_special_tokens"),
        lower_case=bool(options.get("do_lower_case")) and not ('"Lowercase"' in normalizer or lowers),
    )  # fmt: skip


def _mean_layers(name: str, paths: Mapping[str, str], backbone: str) -> tuple[int, ...] | None:
    """Return the layers that are averaged before the pooling, as `cse.methods.method.LAYERS`; None for the last alone.

    sentence-transformers passes the module over where the backbone's configuration does not ask for all layers.
    Raises ArtefactError for weights that are no equal shares.
    """
    if LAYER_MEAN not in paths or not _object(name, join(backbone, "config.json")).get("output_hidden_states"):
        return None
    folder = paths[LAYER_MEAN]
    config = _object(name, f"{folder}/config.json")
    weights = _arrays(name, folder).get("layer_weights")
    count, start = config.get("num_hidden_layers"), config.get("layer_start")
    if type(count) is not int or type(start) is not int or weights is None or weights.shape != (count + 1 - start,):
        raise ArtefactError(f"{name}: its {folder} is damaged; {COPY_AGAIN}")
    used = weights.nonzero()[0]
    if len(set(weights[used].tolist())) != 1:
        raise ArtefactError(f"{name}: its {folder} gives layers different weights; {POOLING_CURE}")
    return tuple(0 if number == 0 else number - count - 1 for number in (used + start).tolist())


def _ends_normalised(modules: Sequence[tuple[str, str]]) -> bool:
    return [kind for kind, _ in modules if kind != IDLE][-1:] == ["Normalize"]


def transformer_options(name: str, folder: str = "") -> dict[str, Any]:
    """Return the configuration of a model's `Transformer` in a subfolder. Raises ArtefactError for an unknown key."""
    files = (join(folder, file) for file in TRANSFORMER_FILES)
    return next((value for file in files if (value := _object(name, file, TRANSFORMER))), {})


def modules_of(name: str) -> list[tuple[str, str]] | None:
    """Return class and subfolder ("" for the model's own) of each module in a `modules.json`; None if there is none.

    A class of another package has its whole name. Raises ArtefactError for a damaged file.
    """
    modules = _value(name, MODULES)
    if modules is None:
        return None
    entries = []
    for module in modules:
        try:
            kind, path = str(module["type"]), PurePosixPath(module["path"])
        except (KeyError, TypeError) as error:
            raise ArtefactError(f"{name}: its {MODULES} is damaged ({error!r}); copy it again") from error
        _check(name, MODULES, module, KEYS[MODULES])
        if path.is_absolute() or ".." in path.parts:
            raise ArtefactError(f"{name}: {MODULES} names {str(path)!r}, which is outside the model; copy it again")
        entries.append((kind.rpartition(".")[2] if kind.startswith(PACKAGE) else kind, "/".join(path.parts)))
    return entries


def transformer_folder(folder: str) -> str:
    """Return where a model's backbone lies: in the model's folder or, as before version 2, in a subfolder of that."""
    try:
        modules = modules_of(folder) if Path(folder).is_dir() else None
    except ArtefactError:  # whoever reads the modules says why
        return folder
    kinds = dict(modules or ())
    return str(Path(folder) / kinds.get("Transformer", kinds.get(STATIC, "")))


def _recorded_calls(name: str) -> dict[str, Any]:
    """Return the defaults of a model's calls. Raises ArtefactError for a damaged file."""
    value = _object(name, CALLS, CALLS)
    prompts, default = value.get("prompts") or {}, value.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(text, str | None) for text in prompts.values()):
        raise ArtefactError(f"{name}: its {CALLS} is damaged (prompts {_shown(prompts)}); copy it again")
    if default is not None and default not in (*prompts, *EMPTY_PROMPTS):
        raise ArtefactError(f"{name}: {CALLS} has no prompt for its default_prompt_name {default!r}; copy it again")
    kept = value.get("truncate_dim")
    if kept is not None and (type(kept) is not int or kept < 1):
        raise ArtefactError(f"{name}: the truncate_dim in its {CALLS} is {_shown(kept)}, not a number of dimensions")
    texts = tuple((key, text or "") for key, text in prompts.items())
    similarity = value.get("similarity_fn_name")
    return {
        "prompts": texts, "default_prompt_name": default, "truncate_dim": kept, "similarity_fn_name": similarity
    }  # fmt: skip


def call_as(recorded: RecordedPooling, encoder: Encoder, source: str) -> None:
    """Give an encoder the recorded defaults and length; a prompt of another name stays.

    Raises ArtefactError, beginning with `source`, for a similarity function or length that it cannot have.
    """
    encoder.prompts |= dict(recorded.prompts)
    encoder.default_prompt_name, encoder.truncate_dim = recorded.default_prompt_name, recorded.truncate_dim
    try:
        encoder.similarity_fn_name = recorded.similarity_fn_name
    except ValueError as error:
        raise ArtefactError(f"{source}: its own {error}") from error
    if encoder.any_length:
        encoder.row_limit = max(encoder.row_limit, recorded.max_length or 0)
    positions = encoder.row_limit - encoder.reading.prefix
    length = positions if recorded.max_length is None else min(recorded.max_length, positions)
    if length != encoder.max_seq_length:
        encoder.max_row_length = length
    if encoder.max_content < 1:
        raise ArtefactError(f"{source}: its max_seq_length {length} leaves no token of a sentence")


def _arrays(name: str, path: str) -> dict[str, np.ndarray]:
    """Return the arrays of a module in a subfolder. Raises ArtefactError if there are none or they are not finite."""
    arrays = read_arrays(find_weights(name, [f"{path}/{file}" for file in (SINGLE, "pytorch_model.bin")]))
    check_finite(arrays, f"{name}: {path}", COPY_AGAIN)
    return arrays


def _value(name: str, file: str) -> Any:
    """Return the JSON value in a file of a model; None if it has no such file. Raises ArtefactError if damaged."""
    path = hub.cached_file(name, file)
    try:
        return None if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ArtefactError(f"{name}: {file} is damaged ({error})") from error


def _object(name: str, file: str, kind: str | None = None) -> dict[str, Any]:
    """Return the object in a file, {} if there is none. Raises ArtefactError for a key that no file of `kind` has."""
    value = _value(name, file)
    value = {} if value is None else value
    if not isinstance(value, dict):
        raise ArtefactError(f"{name}: {file} is damaged (it holds {_shown(value)}, not an object); copy it again")
    if kind:
        _check(name, file, value, KEYS[kind])
    return value


def _check(name: str, where: str, value: dict[str, Any], keys: dict[str, Any]) -> None:
    for key, item in value.items():
        rule = keys.get(key)
        if rule is None:
            raise ArtefactError(f"{name}: the key {_shown(key)} in its {where} is unknown; {POOLING_CURE}")
        if isinstance(rule, dict) and isinstance(item, dict):
            _check(name, f"{where}: {key}", item, rule)
        elif item not in ((None,) if isinstance(rule, dict) else rule if isinstance(rule, tuple) else (item,)):
            raise ArtefactError(
                f"{name}: {key} in its {where} is {_shown(item)}, which is not supported; {POOLING_CURE}"
            )


def _shown(value: Any) -> str:
    """A value of a foreign file, cut to a line."""
    text = value if isinstance(value, str) and value.isprintable() else repr(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"
