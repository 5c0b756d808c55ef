"""Events as signed HTTP requests to addresses that others choose (Standard Webhooks)."""
