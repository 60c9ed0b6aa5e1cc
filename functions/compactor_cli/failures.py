"""Exit codes, and how an error is reported: what happened, then what to do about it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compactor.errors import CompactorError, InvalidInput, no_credentials
from compactor_cli.machine.extras import missing
from compactor_cli.messages import form, write

EXIT_FAILED, EXIT_USAGE, EXIT_TIME_RAN_OUT, EXIT_INTERRUPTED = 1, 2, 3, 130
_REGION, _REGION_OF_BOTO3 = "AWS_REGION", "AWS_DEFAULT_REGION"
# Error codes for credentials, of services other than S3.
_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
# Errors of a disk, quota or file size limit that is reached.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# An error may quote a document that was given, or pages of an engine's stack traces.
_LONGEST_LINE = 1_000
_FREE = "free space there, or name another place; temporary files are below TMPDIR"


class Failure(CompactorError):
    """Ends the command with an exit code.

    Args:
        line: what happened; printed first.
        code: exit code.
        advice: what to do about it; printed on a line of its own.
    """

    def __init__(self, line: str, code: int = EXIT_FAILED, advice: str = "") -> None:
        super().__init__(line)
        self.code = code
        self.advice = advice


def message_of(cause: str | None) -> str:
    """Return the message in a cause, which is a JSON document for a failed Lambda function."""
    try:
        document = json.loads(cause or "")
    except ValueError:
        return cause or "no cause given"
    if isinstance(document, dict) and "errorMessage" in document:
        return str(document["errorMessage"])
    return str(cause)


def print_failure(happened: str, advice: str = "", raised: BaseException | None = None) -> None:
    """Print what happened and what to do; with ``-v`` in full, and the causes.

    Args:
        happened: in one line.
        advice: what to do about it; empty if it is not known.
        raised: the error, for its causes.
    """
    full = form().is_verbose
    happened, advice = (text if full else _shortened(text) for text in (happened, advice))
    causes = list(_causes(raised)) if full else []
    if form().as_json:
        more = {"advice": advice, "causes": causes}
        write("error", happened, **{name: value for name, value in more.items() if value})
        return
    write("error", f"compactor: {happened}")
    for line in (advice, *(f"caused by {one}" for one in causes)):
        if line:
            write("error", f"  {line}")


def report_error(raised: Exception) -> int | None:
    """Report an error that the user can act on; returns the exit code.

    Any other is a bug: it is not reported, and None is returned.
    """
    if isinstance(raised, Failure):
        print_failure(str(raised), raised.advice, raised)
        return raised.code
    error = missing(in_words(raised))
    if not _is_expected(error):
        return None
    print_failure(*_lines_of(error), raised)
    return EXIT_USAGE if isinstance(error, InvalidInput) else EXIT_FAILED


def _lines_of(error: Exception) -> tuple[str, str]:
    """Return what happened, and what to do; the latter is empty where the error does not say."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return f"{type(error).__name__}: {error}", _FREE
    if not isinstance(error, InvalidInput) or not error.message:
        return f"{type(error).__name__}: {error}", ""
    happened, found, _ = error.message.partition(f": {error.accepted}")
    return happened, error.accepted if found else ""


def _is_expected(error: Exception) -> bool:
    """Return whether the user can act on an error; any other is a bug and shows its traceback."""
    if isinstance(error, CompactorError | OSError):
        return True
    # By name, because importing botocore or the engine takes longer than printing the help.
    bases = type(error).__mro__
    return any(b.__name__ == "EngineError" or b.__module__.startswith("botocore.") for b in bases)


def _causes(raised: BaseException | None) -> Iterator[str]:
    """Yield the errors that led to this one, in full."""
    cause = raised and (raised.__cause__ or raised.__context__)
    while cause:
        yield f"{type(cause).__name__}: {cause}"
        cause = cause.__cause__ or cause.__context__


def _shortened(text: str) -> str:
    shown = " ".join(text.split())
    if len(shown) <= _LONGEST_LINE:
        return shown
    half = _LONGEST_LINE // 2
    return f"{shown[:half]} ... {shown[-half:]} (all of it: -v)"


@contextmanager
def region_of_environment() -> Iterator[None]:
    """Honour AWS_REGION within the block, as other AWS tools do; boto3 reads another name."""
    region = os.environ.get(_REGION)
    if not region or os.environ.get(_REGION_OF_BOTO3):
        yield
        return
    os.environ[_REGION_OF_BOTO3] = region
    try:
        yield
    finally:
        os.environ.pop(_REGION_OF_BOTO3, None)


def in_words(error: Exception) -> Exception:
    """Return an error of botocore about region, profile or credentials in words; else the error.

    Matches by class name, because importing botocore takes longer than printing the help.
    """
    names = {base.__name__ for base in type(error).__mro__}
    if "NoRegionError" in names:
        way = "name one with --region, in AWS_REGION, or in your profile (aws configure)"
        return InvalidInput("region", None, way, message=f"no AWS region found: {way}")
    if "InvalidRegionError" in names:
        region = os.environ.get(_REGION) or os.environ.get(_REGION_OF_BOTO3)
        return InvalidInput("region", region, "a region such as eu-central-1, in AWS_REGION")
    if "ProfileNotFound" in names:
        profile = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
        way = "aws configure list-profiles lists the existing profiles"
        happened = f"AWS_PROFILE names the profile {profile}, which does not exist"
        if not profile:
            happened, way = "AWS_PROFILE is set, but empty", "unset it, or name a profile"
        message = f"{happened}: {way}"
        return InvalidInput("AWS_PROFILE", profile, way, message=message)
    if names & {"NoCredentialsError", "PartialCredentialsError"}:
        return no_credentials(str(error) if "PartialCredentialsError" in names else "")
    if "ClientError" in names:
        code = str(getattr(error, "response", {}).get("Error", {}).get("Code", ""))
        return no_credentials(code) if code in _CREDENTIALS else error
    return error


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name a path in the error of a full disk; such an error of an open file names none."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL and error.filename is None:
            error.filename = str(path)
        raise
