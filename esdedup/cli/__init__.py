"""The command line: options become calls, results tables or JSON, errors advice and exit codes."""

import signal


def main() -> None:
    """Run the command line. Importing it takes a while: until the command begins, Ctrl-C just ends it."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from esdedup.cli.app import main as run

    run()
