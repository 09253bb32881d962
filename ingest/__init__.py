"""All that attaches fields to articles before they are indexed: `Dedup`, bulk actions, batches, files.

May import everything but the shells (`cli`, `web`, `node`) and `maintenance`.
"""
