"""From text to vector: rows, batches, backbone, heads and the encoder."""
