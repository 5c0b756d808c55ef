"""Damage of every file of a data directory, one at a time: never a different answer, never a traceback."""
