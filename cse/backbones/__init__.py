"""Backbones as they are stored: their files, sizes, tokenizers and heads, read with PyTorch or without it."""
