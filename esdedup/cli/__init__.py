"""The command line: turns options into calls, results into tables or JSON, and errors into exit codes."""

import signal


def main() -> None:
    """Run the command line; Ctrl-C during the import exits silently."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from esdedup.cli.app import main as run

    run()
