"""The paper's tables, measured: benchmark sets, the systems that are compared, and what they score.

Promise: the engine is asked as anybody asks it, and gold data reach a system only where its name says so.
"""
