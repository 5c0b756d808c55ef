"""Answers as pictures: SVG by hand, for pages in light and dark, with words for those who do not see them.

Promise: pure; values in, text out; whatever a publisher wrote is escaped.
"""
