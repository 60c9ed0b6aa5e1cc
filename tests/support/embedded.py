"""The embedded S3 as the one that this process finds."""

from __future__ import annotations

import pytest

from compactor_local.embedded import EmbeddedS3


def find_embedded(s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3, and every process that a test starts, finds this S3, and no credentials but its own.

    Args:
        s3: which runs.
        monkeypatch: of the test; it takes the environment back.
    """
    for name, value in s3.environment.items():
        if value:
            monkeypatch.setenv(name, value)
        else:
            monkeypatch.delenv(name, raising=False)
