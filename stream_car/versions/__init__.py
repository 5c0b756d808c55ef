"""Packages, their versions, and which of them a publisher calls affected. Pure."""
