"""A comparison of the schemes by which fingerprints within three bits are looked up."""
