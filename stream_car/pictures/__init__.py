"""Answers as SVG pictures, for light and dark pages, with a description in words for people who cannot see them.

Promise: pure functions from values to text. Everything that a publisher wrote is escaped.
"""
