"""When very many fingerprints share a half."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotLimits:
    """When a key is hot."""

    # A bucket is checked when its chain reaches this many overflow buckets, and whenever it has doubled.
    chain_length: int = 8
    # A key in a checked bucket is hot if more fingerprints than this share it, ...
    max_per_key: int = 32
    # ... and all keys of a checked bucket are hot if more fingerprints than this would be left in it.
    max_per_bucket: int = 512
