"""The paper's tables, measured: benchmark sets, the systems that are compared, and their scores.

Promise: the engine gets the same requests as from any user, and only systems marked `gold` see gold data.
"""
