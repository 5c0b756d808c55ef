"""What the errors of Kafka's client mean.

Promise: every driver error becomes `Unavailable` (try again later) or a `StreamCarError` that says what to change.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from aiokafka import errors

from stream_car.errors import StreamCarError, Unavailable

_REFUSED = (
    errors.AuthenticationFailedError,
    errors.SaslAuthenticationFailed,
    errors.UnsupportedSaslMechanismError,
    errors.AuthenticationMethodNotSupported,
    errors.TopicAuthorizationFailedError,
    errors.ClusterAuthorizationFailedError,
    errors.GroupAuthorizationFailedError,
)
_TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError, errors.RecordTooLargeError)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turns driver errors within into ours; `what` names the topic or the place."""
    try:
        yield
    except _REFUSED as error:
        raise StreamCarError(f"Kafka refuses this user or password for {what}: {_words(error)}") from error
    except _TOO_LARGE as error:
        raise StreamCarError(f"a record is larger than max.message.bytes of {what} allows") from error
    except errors.UnknownTopicOrPartitionError as error:
        raise StreamCarError(f"{what} does not exist in Kafka; `stream-car topics apply` makes it") from error
    except (errors.KafkaError, errors.ConsumerStoppedError, OSError, TimeoutError) as error:
        raise Unavailable(f"Kafka cannot be used now for {what}: {_words(error)}") from error


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
