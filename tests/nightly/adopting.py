"""Indices with odd aliases and templates are adopted, where they are and into copies, over twenty kills each.

python -m tests.nightly.adopting [SEED]     (the server at ES_URL, else an embedded one)
"""

import sys

from benchmarks import server
from tests.support.adopting import AdoptionUnderFire
from tests.support.names import new_names

KILLS = 20
TIMES = 2
ARTICLES = 6_000


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    faults: list[str] = []
    with server.client(lifetime_s=7_200) as client:
        for at in range(TIMES):
            for into in (False, True):
                with new_names(client) as name:
                    run = AdoptionUnderFire(
                        client, server.url_of(client), name, articles=ARTICLES, seed=seed + at
                    )
                    try:
                        faults += run.run(kills=KILLS, into=into)
                    finally:
                        run.close()
                    sys.stdout.write(f"{'into copies' if into else 'in place':12} {dict(run.counts)}\n")
    sys.exit("\n".join(faults) or None)


if __name__ == "__main__":
    main()
