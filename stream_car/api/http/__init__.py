"""The service over HTTP."""

from stream_car.api.http.app import application

__all__ = ["application"]
