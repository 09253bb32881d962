"""Reading: the list with dedup, and the similar articles. Pure: what is asked of the server, in steps."""
