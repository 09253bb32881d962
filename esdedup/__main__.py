"""``python -m esdedup`` is the command ``esdedup``."""

from esdedup.cli import main

main()
