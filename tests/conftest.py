"""Settings that all tests share: a property is judged by its truth, never by the speed of the machine."""

from hypothesis import settings

settings.register_profile("stream-car", deadline=None, print_blob=True)
settings.load_profile("stream-car")
