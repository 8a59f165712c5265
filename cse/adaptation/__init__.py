"""Adaptation of a model to the user's own texts: facts about them, a projection, candidates, and the choice."""
