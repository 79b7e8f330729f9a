"""What can go wrong that is not our own mistake, as one family.

    PriorkitError
    ├── SettingError (ValueError)          a setting or argument out of its domain
    ├── FileError (ValueError)             a file that cannot be vouched for
    │   ├── PoolFileError
    │   ├── OutcomesFileError
    │   ├── PriorFileError
    │   ├── ProbeFolderError
    │   └── RunFolderError
    ├── MismatchError (ValueError)         two files, each sound, that do not belong together
    ├── OutputError (OSError)              a result that could not be written
    └── EngineError (RuntimeError)         a model that cannot be loaded or run here
        ├── ModelNotFoundError
        └── MissingExtraError (ImportError)

The command line prints any of them as one `error:` line and exits with 1. A message names the
file, what was expected, what was found, where first, and what to do about it. `assert` is for
what we got wrong; these are for what reached us wrong.
"""

from __future__ import annotations


class PriorkitError(Exception):
    """Base of every error priorkit raises on purpose."""


class SettingError(PriorkitError, ValueError):
    """A setting or argument is outside its domain."""


class FileError(PriorkitError, ValueError):
    """A file cannot be read, or holds what no reader may accept."""


class PoolFileError(FileError):
    """A prompt pool breaks its schema: ids, prompts or answers."""


class OutcomesFileError(FileError):
    """An outcomes file, or a reference table of solve rates, breaks its schema."""


class PriorFileError(FileError):
    """A prior file breaks its schema: a column, a domain, a version."""


class ProbeFolderError(FileError):
    """A probe's folder is in use, damaged, or was started with other settings."""


class RunFolderError(FileError):
    """A run's folder is in use, damaged, or was started with other settings."""


class MismatchError(PriorkitError, ValueError):
    """Two sound files do not belong together, such as a prior and another pool."""


class OutputError(PriorkitError, OSError):
    """A result could not be written: no permission, no space, or already there."""


class EngineError(PriorkitError, RuntimeError):
    """A model cannot be loaded or run on this machine."""


class ModelNotFoundError(EngineError):
    """No local copy of a model, and no hub to fetch it from."""


class MissingExtraError(EngineError, ImportError):
    """An optional dependency is not installed; the message names the extra."""
