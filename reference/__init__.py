"""Plain-Python oracles: slow and obviously right."""
