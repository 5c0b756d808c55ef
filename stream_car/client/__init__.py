"""Clients of a service: the calls of the library over HTTP, synchronous and asynchronous."""
