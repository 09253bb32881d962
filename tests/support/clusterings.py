"""Clusterings of files in memory, of the default profile, without times."""

from datetime import timedelta

from esdedup.ingest.cluster import Clustering

from esdedup import VERIFIED, ArticleRejected, Fields


def clustering(rejected: list[ArticleRejected]) -> Clustering:
    return Clustering(
        profile=VERIFIED,
        fields=Fields(),
        use_time=False,
        retention=timedelta(days=30),
        on_rejected=rejected.append,
    )
