"""Long tests that kill and pause processes, and check that no article is lost, duplicated or changed."""
