"""`WritableIndex`: properties of an index that articles may be written to."""

import dataclasses

from esdedup.fields import Fields


@dataclasses.dataclass(frozen=True, kw_only=True)
class WritableIndex:
    """Properties of an index that articles may be written to."""

    fields: Fields
    # Its own name, not that of an alias; None if that is not known.
    name: str | None = None
    # Whether articles are routed by their roots where they are written.
    is_routed_by_root: bool = False
    # The forest that it belongs to; None: any may take its articles.
    forest: str | None = None
    # The objects with other forests' roots that its articles have by migrations.
    other_objects: tuple[str, ...] = ()

    @property
    def objects(self) -> tuple[str, ...]:
        """The names of all objects that only esdedup may write into its articles, the forest's first."""
        return (self.fields.dedup, *self.other_objects)

    def refusal(self, forest: str) -> str | None:
        """Return why a forest may not take its articles; None if it may."""
        if self.forest in {None, forest}:
            return None
        return other_forest(self.name, self.forest, forest)


def other_forest(index: str | None, owner: str | None, forest: str | None) -> str:
    """Return that an index belongs to another forest than the one that was named."""
    return f"the index {index!r} belongs to the forest {owner!r}, and not to {forest!r}"
