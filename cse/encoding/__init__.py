"""Encoding of text as vectors: rows, batches, backbone, heads and the encoder."""
