"""How an error is reported: what happened, then what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from compactor.errors import CompactorError, InvalidInput
from compactor_cli.commands.account import in_words
from compactor_cli.commands.failures import EXIT_FAILED, EXIT_USAGE, Failure
from compactor_cli.disk import FULL
from compactor_cli.machine.extras import missing
from compactor_cli.messages import form, write

# An error may quote a document that was given, or pages of an engine's stack traces.
_LONGEST_LINE = 1_000
_FREE = "free space there, or name another place; temporary files are below TMPDIR"


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
    if isinstance(error, OSError) and error.errno in FULL:
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
