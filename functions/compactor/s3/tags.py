"""Object tags, by S3's GetObjectTagging, PutObjectTagging and DeleteObjectTagging."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compactor.errors import InvalidInput, ObjectMissing
from compactor.model import SourceObject
from compactor.s3.base import S3Base
from compactor.s3.bodies import TimeIsUp


class S3Tags(S3Base):
    """The tagging part of :class:`compactor.ports.TaggedStore`."""

    def tags(self, bucket: str, key: str) -> Mapping[str, str]:
        def request(_: TimeIsUp) -> Any:
            return self.client.get_object_tagging(Bucket=bucket, Key=key)

        answer = self._answer("GET", "get tags", bucket, key, request)
        return {one["Key"]: one["Value"] for one in answer["TagSet"]}

    def may_have_tags(self, source: SourceObject) -> bool:
        try:
            return bool(self.tags(source.bucket, source.key))
        except ObjectMissing:
            return False
        except InvalidInput as error:
            return _is_denied(error)

    def sees_tags(self, source: SourceObject) -> bool:
        bucket, known = source.bucket, self.sees_tags_of
        if bucket not in known:
            try:
                self.tags(bucket, source.key)
                known[bucket] = True
            except ObjectMissing:
                return True
            except InvalidInput as error:
                known[bucket] = not _is_denied(error)
        return known[bucket]

    def put_tags(self, bucket: str, key: str, tags: Mapping[str, str]) -> None:
        wanted: Any = {"TagSet": [{"Key": name, "Value": text} for name, text in tags.items()]}

        def request(_: TimeIsUp) -> Any:
            # Not every server accepts an empty set.
            if not tags:
                return self.client.delete_object_tagging(Bucket=bucket, Key=key)
            return self.client.put_object_tagging(Bucket=bucket, Key=key, Tagging=wanted)

        self._answer("PUT", "put tags", bucket, key, request)


def _is_denied(error: InvalidInput) -> bool:
    """Return True if the role lacks the permission, False if the store has no tags.

    Raises:
        InvalidInput: ``error`` itself, if it means neither.
    """
    if error.field not in {"permission", "request"}:
        raise error
    return error.field == "permission"
