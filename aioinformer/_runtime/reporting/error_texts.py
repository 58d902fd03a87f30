"""The texts of exceptions for logs and health, without raising."""

from __future__ import annotations

from aioinformer.errors.texts import printable


def error_text(error: BaseException) -> str:
    """Return an exception's text in one line. ``__str__`` may be the program's, and may raise."""
    try:
        return printable(str(error))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as failure:  # noqa: BLE001 - the program's code
        return f"<its __str__ raised {type(failure).__name__}>"


def describe_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error_text(error)}"


def lasting_text(error: BaseException) -> str:
    """Describe an error without the resourceVersion of its object, for a text that is written to
    the server: the write may give the object another version, and so would have another text.
    """
    version = getattr(error, "resource_version", "")
    return describe_error(error).replace(f" at resourceVersion {version}:", ":")


def cut_watches_text(seconds: float) -> str:
    """Return what to do if each watch is cut after ``seconds``."""
    remedy = "raise its timeout, or set watch_seconds below it"
    return f"a proxy cuts watches after {seconds:.0f} s: {remedy}"
