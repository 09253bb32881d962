"""What the pages and the sidecar share: sockets and connections, guards and limits, answers to errors."""
