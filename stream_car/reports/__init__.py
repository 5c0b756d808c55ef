"""Answers about packages in the formats of other tools. Pure."""
