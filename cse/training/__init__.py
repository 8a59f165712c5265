"""The contrastive training loop: plan, steps, losses, state, output."""
