"""What `import stream_car` offers."""

from types import ModuleType

import stream_car


def test_the_package_offers_its_own_names_only() -> None:
    public = {
        name
        for name, value in vars(stream_car).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }

    assert public <= set(stream_car.__all__)
    assert not any(isinstance(getattr(stream_car, name), ModuleType) for name in stream_car.__all__)
