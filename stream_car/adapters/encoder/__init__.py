"""Encoders: texts to vectors, on this machine."""
