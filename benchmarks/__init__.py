"""Measurements: `speed` of the program beside its rivals, `paper` of its answers beside published figures.

Not part of the package that people install; run them from a checkout.
"""
