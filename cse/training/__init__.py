"""The contrastive training loop: settings, steps, losses, output."""
