"""How long what was seen counts: for the present period and the one before it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Window:
    """Two periods of pages. A period ends with the page that brings the number of records to its capacity."""

    # At least 1.
    capacity: int
    # The records of the present period.
    count: int = 0
    # The numbers of the first page of the present period, and of the one before it.
    present_from: int = 1
    former_from: int = 1

    def after(self, records: int, *, page: int) -> "Window":
        """Return the window after so many records, the last of which are of this page."""
        count = self.count + records
        if count < self.capacity:
            return dataclasses.replace(self, count=count)
        return Window(self.capacity, 0, page + 1, self.present_from)
