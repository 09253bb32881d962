"""`esdedup --version`: this package, and all that decides what it computes and what it can read."""

import platform
from collections.abc import Iterator
from importlib import metadata

from esdedup.cli.extras import is_installed

# They decide the bits of fingerprints; the first two are pinned.
DECIDE_FINGERPRINTS = ("jieba", "rjieba", "mmh3", "numpy")


def versions() -> Iterator[str]:
    """Yield a line for each part; the first is the name and the version of the package alone."""
    from esdedup.elastic.forest.meta import FORMAT
    from esdedup.fingerprint.profile import PROFILES

    yield f"esdedup {metadata.version('esdedup')}"
    yield f"profiles {', '.join(profile.label for profile in PROFILES.values())}"
    yield f"forest format {FORMAT}"
    yield f"fingerprints by {', '.join(f'{name} {metadata.version(name)}' for name in DECIDE_FINGERPRINTS)}"
    yield f"Elasticsearch client {metadata.version('elasticsearch')}"
    if is_installed("node"):
        from esdedup.node import DEFAULT_VERSION

        yield f"embedded Elasticsearch {DEFAULT_VERSION}"
    else:
        yield "no embedded Elasticsearch: pip install 'esdedup[node]'"
    yield f"{platform.python_implementation()} {platform.python_version()} on {platform.platform(terse=True)}"
