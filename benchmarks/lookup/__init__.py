"""The schemes by which fingerprints within three bits are looked up, side by side."""
