"""The one error type of this package that is not a plain `ValueError`."""


class ArtefactError(ValueError):
    """A model, checkpoint or saved state that is missing, damaged or made for something else."""

    exit_code = 4
