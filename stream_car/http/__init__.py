"""The service over HTTP."""

from stream_car.http.app import application

__all__ = ["application"]
