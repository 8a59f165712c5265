"""The error types of this project that are not plain `ValueError`s; both end a command with exit code 4."""


class ArtefactError(ValueError):
    """A model, checkpoint or saved state that is missing, damaged or made for something else."""

    exit_code = 4


class IndexFolderError(ValueError):
    """An index folder that is missing, damaged, of a foreign format, or built by another model."""

    exit_code = 4
