"""A certificate for the front, made on the spot, and what makes the clients trust it.

It is signed by an authority of its own, because rustls, with which obstore speaks TLS, takes no
authority for a server. Nobody needs to be told to trust whatever comes.
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
    """Files of one server, all of them PEM.

    Attributes:
        chain: the server's certificate.
        key: its private key, for its owner's eyes alone.
        trusted: who signed it, beside whom the system trusts: reading all those is part of what
            every client does at its start.
    """

    chain: Path
    key: Path
    trusted: Path

    @property
    def trust(self) -> Mapping[str, str]:
        """Variables by which botocore and obstore trust this server."""
        return {"AWS_CA_BUNDLE": str(self.trusted), "SSL_CERT_FILE": str(self.trusted)}


def files(directory: Path) -> Certificate:
    """Where the files are that :func:`make` makes."""
    return Certificate(*(directory / name for name in ("tls.pem", "tls.key", "trusted.pem")))


def make(directory: Path) -> Certificate:
    """Make a certificate for the loopback interface, valid for two days, in a directory."""
    signing, serving = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    name = _name("s3-compactor benchmark")
    authority = _signed(signing, name, _begun(name, signing.public_key()), ca=True)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(_LOOPBACK)])
    begun = _begun(_name("its front"), serving.public_key()).add_extension(
        addresses, critical=False
    )
    made = files(directory)
    made.chain.write_bytes(_signed(signing, name, begun, ca=False))
    made.trusted.write_bytes(_of_the_system() + authority)
    made.key.touch(mode=0o600)
    made.key.write_bytes(
        serving.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return made


def _of_the_system() -> bytes:
    known = ssl.get_default_verify_paths().cafile
    return Path(known).read_bytes() + b"\n" if known else b""


def _begun(name: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _VALID)
    )


def _signed(
    key: ec.EllipticCurvePrivateKey, issuer: x509.Name, begun: x509.CertificateBuilder, *, ca: bool
) -> bytes:
    constraints = x509.BasicConstraints(ca=ca, path_length=0 if ca else None)
    whole = begun.issuer_name(issuer).add_extension(constraints, critical=True)
    return whole.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
