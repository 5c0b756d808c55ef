"""What the errors of the Kafka clients mean.

Promise: every driver error becomes `Unavailable` (try again later) or a `StreamCarError` that says what to change.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from aiokafka import errors

from stream_car.errors import StreamCarError, Unavailable

_DENIED = (
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
def translate_errors(what: str) -> Iterator[None]:
    """Raise the errors of aiokafka as ours. `what` names the topic or the server."""
    try:
        yield
    except _DENIED as error:
        cure = "Check the user, the password and the permissions of the user."
        raise StreamCarError(f"Kafka denied access to {what} ({_text(error)}). {cure}") from error
    except _TOO_LARGE as error:
        cure = "Raise that setting, or send smaller records."
        raise StreamCarError(f"A record is larger than max.message.bytes of {what} allows. {cure}") from error
    except errors.UnsupportedCodecError as error:
        cure = "Install the codecs: pip install 'stream-car[kafka]'."
        raise Unavailable(f"A record of {what} is compressed in a way that cannot be read ({error}). {cure}") from error
    except errors.UnknownTopicOrPartitionError as error:
        raise StreamCarError(f"Kafka does not have {what}. Create it with `stream-car topics apply`.") from error
    except (errors.KafkaError, errors.ConsumerStoppedError, OSError, TimeoutError) as error:
        raise Unavailable(f"Kafka cannot be used now for {what} ({_text(error)}). Try again later.") from error


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
