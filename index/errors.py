"""The one error type of this package that is not a plain `ValueError`."""


class IndexFolderError(ValueError):
    """An index folder that is missing, damaged, of a foreign format, or built by another model."""

    exit_code = 4
