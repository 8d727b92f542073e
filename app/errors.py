"""The error tree of the program: each message is one sentence with cause and remedy, fit to show.

AppError
├── StorageError             a disk or folder: full, read-only, gone, failing
│   ├── NewerFilesError      written by a newer version; nothing was touched
│   └── DamagedChatsError    the conversations can no longer be read in full
├── SettingError             a setting that does not exist or a value that it cannot take
├── ExchangeError            a file to import that is not what it claims
└── DownloadError            a transfer that failed
    └── DownloadCancelled    a transfer that the person ended
"""


class AppError(Exception):
    """Something went wrong; `str(error)` is one sentence fit to show to a person."""


class StorageError(AppError):
    """A disk or folder did not do what was asked; nothing that was stored before is lost."""


class NewerFilesError(StorageError):
    """The files were written by a newer version of the program and were left alone."""


class DamagedChatsError(StorageError):
    """The database of conversations is damaged."""


class SettingError(AppError):
    """A setting does not exist or cannot take this value."""


class ExchangeError(AppError):
    """A file to import holds nothing that can be read."""


class DownloadError(AppError):
    """A transfer failed; what the person had before is unchanged."""


class DownloadCancelled(DownloadError):
    """The person ended the transfer."""
