"""Compares schemes for looking up all fingerprints within three bits of a given fingerprint."""
