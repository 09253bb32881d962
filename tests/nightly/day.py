"""Checks quality, time and memory for a full day of pages, in memory and with Elasticsearch.

python -m tests.nightly.day     (on the server at ES_URL, otherwise on an embedded node)
"""

from benchmarks import rows, server
from benchmarks.day.table import PAGES, SITES, Outcome, outcome_of

# For all pages, including pages that arrive before any boilerplate of their site is learned.
LEAST_PRECISION, LEAST_RECALL = 0.93, 0.94
# The minimum precision and recall for each quarter of the day.
LEAST_OF_A_QUARTER = 0.89
# The maximum memory of the last quarter, as a multiple of the second quarter's. Only expired pages and nodes
# may accumulate in the store.
MOST_GROWTH = 1.5
# The maximum processor time of the last quarter, as a multiple of the second quarter's, on a busy machine.
MOST_SLOWER = 2.0


def check(outcome: Outcome) -> None:
    by_case = {each.case: each.shares for each in outcome.quality}
    assert by_case["all"].precision >= LEAST_PRECISION, by_case["all"]
    assert by_case["all"].recall >= LEAST_RECALL, by_case["all"]
    for quarter in outcome.quarters:
        shares = by_case[quarter.case]
        assert min(shares.precision, shares.recall) >= LEAST_OF_A_QUARTER, (quarter.case, shares)
    _, second, _, last = outcome.quarters
    for one, other in ((second.clustered, last.clustered), (second.fed.usage, last.fed.usage)):
        assert other.resident_bytes <= MOST_GROWTH * one.resident_bytes, (one, other)
        assert other.processor_s <= MOST_SLOWER * one.processor_s, (one, other)
    assert outcome.differences == 0


def main() -> None:
    with server.client(lifetime_s=7_200) as client:
        outcome = outcome_of(client, pages=PAGES, sites=SITES)
    rows.show([*outcome.quality, *outcome.quarters])
    check(outcome)


if __name__ == "__main__":
    main()
