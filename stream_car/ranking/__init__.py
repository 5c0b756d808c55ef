"""How relevance is scored and turned into an order: pure functions over values."""
