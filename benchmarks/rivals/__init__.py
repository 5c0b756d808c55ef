"""Rivals that are programs of their own, each in a folder with a README that says what it does not do."""
