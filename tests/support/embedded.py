"""Makes this process use the embedded S3."""

from __future__ import annotations

import pytest

from compactor_local.embedded import EmbeddedS3


def find_embedded(s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make boto3 and every process that a test starts use this S3 and only its credentials.

    Args:
        s3: the running S3.
        monkeypatch: the test's monkeypatch, which restores the environment.
    """
    for name, value in s3.environment.items():
        if value:
            monkeypatch.setenv(name, value)
        else:
            monkeypatch.delenv(name, raising=False)
