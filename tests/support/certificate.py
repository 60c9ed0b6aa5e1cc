"""A generated certificate for servers on this machine, and settings that make clients trust it.

It is signed by a separate authority, because rustls, which obstore uses for TLS, does not accept an
authority as a server. So no client has to disable verification.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LOOPBACK = IPv4Address("127.0.0.1")
_VALID = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of one server, all PEM.

    Attributes:
        chain: the server's certificate.
        key: its private key, readable only by its owner.
        trusted: the authority, together with those of the system, because every client reads them
            all at its start.
    """

    chain: Path
    key: Path
    trusted: Path

    @property
    def trust(self) -> Mapping[str, str]:
        """Variables that make botocore and obstore trust this server."""
        return {"AWS_CA_BUNDLE": str(self.trusted), "SSL_CERT_FILE": str(self.trusted)}


def files(directory: Path) -> Certificate:
    """Return the paths of the files that :func:`make` writes."""
    return Certificate(*(directory / name for name in ("tls.pem", "tls.key", "trusted.pem")))


def make(directory: Path) -> Certificate:
    """Write a certificate for the loopback interface, valid for two days, to a directory."""
    signing, serving = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    made = files(directory)
    authority = _signed(signing.public_key(), "s3-compactor benchmark", signing, ca=True)
    made.chain.write_bytes(_signed(serving.public_key(), "its front", signing, ca=False))
    known = ssl.get_default_verify_paths().cafile
    of_the_system = Path(known).read_bytes() + b"\n" if known else b""
    made.trusted.write_bytes(of_the_system + authority)
    made.key.touch(mode=0o600)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    made.key.write_bytes(serving.private_bytes(*form, serialization.NoEncryption()))
    return made


def _signed(
    key: ec.EllipticCurvePublicKey, subject: str, issuer: ec.EllipticCurvePrivateKey, *, ca: bool
) -> bytes:
    now = datetime.now(UTC)
    names = [
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
        for text in (subject, "s3-compactor benchmark")
    ]
    constraints = x509.BasicConstraints(ca=ca, path_length=0 if ca else None)
    address = x509.SubjectAlternativeName([x509.IPAddress(_LOOPBACK)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(names[0])
        .issuer_name(names[1])
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _VALID)
        .add_extension(constraints, critical=True)
    )
    if not ca:
        builder = builder.add_extension(address, critical=False)
    return builder.sign(issuer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
