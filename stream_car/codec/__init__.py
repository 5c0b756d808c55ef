"""Convert bytes to values and values to bytes: the strict decoder of documents, and the encoder.

Promise: `encode` writes every statement that `decode` accepts, and `decode` reads it back equal. What `decode`
rejects is rejected everywhere, with the same stable code. The format versions are defined here.
"""

from stream_car.codec.decode import FORMAT, decode, decode_with_digest
from stream_car.codec.encode import content_digest, encode, encode_mapping
from stream_car.codec.json_lines import split_documents
from stream_car.codec.json_scan import DEFAULT_LIMITS, EARLIER_LIMITS, Limits
from stream_car.codec.publishable import Publishable, Publishables, encode_batches, encode_document, iterate_documents
from stream_car.codec.requests import check_request, read_parameters, read_request
from stream_car.codec.times import format_time, parse_time

__all__ = [
    "DEFAULT_LIMITS",
    "EARLIER_LIMITS",
    "FORMAT",
    "Limits",
    "Publishable",
    "Publishables",
    "check_request",
    "content_digest",
    "decode",
    "decode_with_digest",
    "encode",
    "encode_batches",
    "encode_document",
    "encode_mapping",
    "format_time",
    "iterate_documents",
    "parse_time",
    "read_parameters",
    "read_request",
    "split_documents",
]
