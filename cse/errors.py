"""The error types of this project; both end a command with exit code 4."""


class ArtefactError(ValueError):
    """A model, checkpoint or saved state is missing, damaged or of another kind."""

    exit_code = 4


class IndexFolderError(ValueError):
    """An index folder is missing, damaged, of another format, or built by another model."""

    exit_code = 4
