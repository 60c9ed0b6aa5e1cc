"""Object tags, by S3's GetObjectTagging, PutObjectTagging and DeleteObjectTagging."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compactor.s3.base import S3Base
from compactor.s3.bodies import TimeIsUp


class S3Tags(S3Base):
    """The tagging part of :class:`compactor.ports.TaggedStore`."""

    def tags(self, bucket: str, key: str) -> Mapping[str, str]:
        def request(_: TimeIsUp) -> Any:
            return self.client.get_object_tagging(Bucket=bucket, Key=key)

        answer = self._answer("GET", "get tags", bucket, key, request)
        return {one["Key"]: one["Value"] for one in answer["TagSet"]}

    def put_tags(self, bucket: str, key: str, tags: Mapping[str, str]) -> None:
        wanted: Any = {"TagSet": [{"Key": name, "Value": text} for name, text in tags.items()]}

        def request(_: TimeIsUp) -> Any:
            # Not every server accepts an empty set.
            if not tags:
                return self.client.delete_object_tagging(Bucket=bucket, Key=key)
            return self.client.put_object_tagging(Bucket=bucket, Key=key, Tagging=wanted)

        self._answer("PUT", "put tags", bucket, key, request)
