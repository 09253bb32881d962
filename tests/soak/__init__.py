"""Long tests that kill and stop processes, and check that no article is lost, doubled or changed."""
