"""Encoding of text as vectors: rows, batches, prompts, shards and the encoder that every engine fills in."""
