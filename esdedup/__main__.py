"""Runs the command ``esdedup`` as ``python -m esdedup``."""

from esdedup.cli import main

main()
