"""Logistic regression for transfer: SentEval's hypotheses, a linear layer under a softmax, solved to convergence.

SentEval takes early-stopped Adam steps (`cse.evaluation.senteval_classifier`); this has no seed of its own. Features
are standardised with the mean and deviation of the rows trained on, so that the penalty means the same for vectors of
any length; the solver then needs a third of the steps. Of equally good strengths the strongest penalty is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse.evaluation.labelled_data import Part, stratified

if TYPE_CHECKING:
    import numpy as np
    from sklearn.pipeline import Pipeline

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # scikit-learn's C


def classifier(strength: float = 1.0) -> Pipeline:
    """Unfitted standardisation and logistic regression with C = `strength`; 1 is scikit-learn's default."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000))


def chosen_by_folds(train: Part, test: np.ndarray, folds: int) -> np.ndarray:
    """Labels predicted for the rows of `test` after cross-validation on `train` chose the strength."""
    from sklearn.model_selection import GridSearchCV

    grid = {"logisticregression__C": STRENGTHS}
    return GridSearchCV(classifier(), grid, cv=stratified(folds), error_score="raise").fit(*train).predict(test)


def chosen_on_dev(train: Part, dev: Part, test: np.ndarray) -> np.ndarray:
    """Labels predicted for the rows of `test` by that classifier trained on `train` which does best on `dev`."""
    fitted = [classifier(strength).fit(*train) for strength in STRENGTHS]
    return max(fitted, key=lambda each: each.score(*dev)).predict(test)
