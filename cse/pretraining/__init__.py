"""Masked-language-model pretraining of a small backbone."""
