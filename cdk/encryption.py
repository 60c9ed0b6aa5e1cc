"""The encryption that functions and Spark jobs name in each write, as their variable says it."""

from __future__ import annotations

from collections.abc import Iterable

from aws_cdk import aws_kms as kms

from cdk.config import Config
from cdk.storage import Place, Storage


def encryption_of(config: Config, places: Iterable[Place], others: kms.IKey | None = None) -> str:
    """Return the value of :data:`compactor.settings.encryption.ENCRYPTION_VARIABLE`.

    Args:
        config: says what is named where there is no key.
        places: where the process writes; of two places in one bucket the last one counts.
        others: the key of all other buckets, and of Iceberg tables that Spark writes.
    """
    keys = {one.bucket.bucket_name: one.key.key_arn for one in places if one.key is not None}
    rest = config.encryption if others is None else others.key_arn
    return ",".join([rest, *(f"{bucket}={key}" for bucket, key in keys.items())])


def encryption_of_runs(config: Config, storage: Storage) -> str:
    """Return the value for everything that takes part in a run."""
    tables = storage.tables
    places = (storage.state, *tables, storage.destination)
    return encryption_of(config, places, tables[0].key if tables else None)
