"""How large a run of benchmarks is, and what it finds out about itself."""

import dataclasses


@dataclasses.dataclass(kw_only=True)
class Run:
    """One run; every benchmark gets it."""

    # Collections have this share of their usual size; less than 1 to try a benchmark, not to publish it.
    scale: float = 1.0
    # Detection is measured with so many hash functions.
    seeds: int = 5
    # What a benchmark has used beside the installed packages, such as a server, with its version.
    versions: dict[str, str] = dataclasses.field(default_factory=dict)

    def size(self, usual: int) -> int:
        """Return the size of a collection, by its usual size."""
        return max(1, round(usual * self.scale))
