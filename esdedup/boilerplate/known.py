"""`Known`: what is known of passages."""

import dataclasses

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.changes import LEARNED
from esdedup.neighbours.key_table import Values


@dataclasses.dataclass(frozen=True, kw_only=True)
class Known:
    """What is known of passages."""

    # uint32 (n,): as the table "passages" has it; 0 for nothing.
    values: Values

    @property
    def pages(self) -> npt.NDArray[np.int64]:
        """The page of the last new context of each; of boilerplate, one of the last period with it.

        Int64 ``(n,)``, 0 for none.
        """
        return (self.values & ~LEARNED).astype(np.int64)

    @property
    def are_learned(self) -> npt.NDArray[np.bool_]:
        """Which are boilerplate: bool ``(n,)``."""
        return self.values >= LEARNED
