"""Certificates for tests of encryption, made with openssl: an authority, and a server at 127.0.0.1."""

import subprocess
from pathlib import Path

from msgspec import Struct


class Certificates(Struct, frozen=True):
    """Paths of PEM files."""

    ca: str
    server: str
    server_key: str


def made(folder: Path) -> Certificates:
    """Certificates that are good for a day."""
    ca, ca_key, server, key, request = (
        folder / name for name in ("ca.pem", "ca.key", "server.pem", "server.key", "csr")
    )
    names = folder / "names"
    names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    _openssl("req", "-x509", *curve, "-keyout", ca_key, "-out", ca, "-days", "1", "-subj", "/CN=test authority")
    _openssl("req", *curve, "-keyout", key, "-out", request, "-subj", "/CN=127.0.0.1")
    signing = ("-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "1", "-extfile", names)
    _openssl("x509", "-req", "-in", request, *signing, "-out", server)
    return Certificates(ca=str(ca), server=str(server), server_key=str(key))


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
