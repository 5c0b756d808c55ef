"""The service from a program's side: the calls of the library over HTTP, synchronous and asynchronous."""

from stream_car.client.aio import AsyncClient, AsyncSubscription
from stream_car.client.sync import Client, Subscription

__all__ = ["AsyncClient", "AsyncSubscription", "Client", "Subscription"]
