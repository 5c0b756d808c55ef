"""How well memories find their keys without a model: `python -m benchmarks.memory [FOLDER]`."""
