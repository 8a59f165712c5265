"""Which of sentence-transformers' tests are not run against this project's encoder, and which fail there, and why.

Names are those of its files below `tests/`; a name ends anywhere, so that parameters may be left out.
"""

MODEL, BASE = "sentence_transformer/test_model.py::test_", "base/test_model.py::"
ENCODE, MINING = "sentence_transformer/test_compute_embeddings.py::test_", "util/test_hard_negatives.py::test_"

# Calls that mean something else here, on purpose.
DIFFERENCES = {
    f"{ENCODE}encode_token_embeddings": "vectors of single tokens are refused",
    f"{ENCODE}encode_routes_through_module_call": "encode calls the forward pass of its class, since accelerate wraps "
    "that of the instance while it trains",
    f"{MODEL}encode_truncate[None": "`output_value=None`, all that the modules give, is refused",
    f"{MODEL}prompt_output_value_None": "the same",
    f"{MODEL}encode_quantization[error": "the error has other words",
    f"{MODEL}similarity_fn_name_rejects_multi_vector_names": "the error has other words",
    f"{MODEL}prompts": "no warning where both `prompt` and `prompt_name` are given; the prompt counts in both",
    f"{MODEL}encode_per_call_processing_kwargs": "options of a tokenizer are refused",
    f"{BASE}test_encode_numpy_2d_string_array": "a pair of texts as one input is refused",
    f"{BASE}test_evaluate_": "an evaluator is called with the encoder; the encoder has no `evaluate`",
    f"{BASE}test_get_max_seq_length": "`max_seq_length` has no second name",
}

NOT_HERE = {
    "sentence_transformer/evaluation/test_nanobeir_evaluator.py": "downloads its data",
    f"{ENCODE}encode_single_sentences": "has the numbers of one model of the hub",
    f"{ENCODE}encode_normalize": "has the width of one model of the hub",
    f"{ENCODE}encode_tuple_sentences": "has the numbers of one model of the hub",
    f"{MINING}cross_encoder": "needs a cross-encoder of the hub",
    f"{MINING}faiss_corpus_smaller_than_k_with_cross_encoder": "needs a cross-encoder of the hub",
    f"{MINING}multi_process": "starts processes, by a method of its own class",
    f"{MINING}mine_hard_negatives_with_prompt": "looks into the modules of its class",
    f"{MINING}non_faiss_batched_search_matches_single_batch": "replaces a private function of its class",
    **{
        f"{MINING}{form}_output_scores_match_similarity[multiple": "left out for speed"
        for form in ("triplet", "n_tuple", "n_tuple_scores_alias", "labeled_pair", "labeled_list")
    },
    f"{MINING}missing_negatives": "20 combinations of what another test covers; left out for speed",
    f"{MINING}multiple_positives[multiple": "15 combinations of what the first five cover; left out for speed",
    **{
        f"{MODEL}{name}": "opens, saves or uploads folders by its class, most of them of the hub"
        for name in (
            "load_ to torch_dtype push_to_hub safe_serialization save_load_prompts similarity_score_save model_card "
            "similarity_fn_name_constructor_overrides_saved safetensors multiple_adapters clip default_pooling "
            "conversion"
        ).split()
    },
    **{
        f"{MODEL}{name}": "looks into the modules of its class"
        for name in "prompt_length_calculation get_model_kwargs transformers_model router parse_model_config".split()
    },
    **{
        f"{BASE}{name}": "opens, saves, uploads or looks into the modules of its class"
        for name in (
            "Test test_preprocess test_config test_sentence_transformer test_sparse test_cross test_supports "
            "test_use_auth test_empty_modules test_cache_folder test_save test_load test_model_path test_push "
            "test_tokenize test_gradient test_device_ test_can_flatten test_dtype test_is_singular test_parse "
            "test_get_model_type test_met test_unmet test_modules test_third test_private"
        ).split()
    },
}
