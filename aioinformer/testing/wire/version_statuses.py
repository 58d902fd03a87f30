"""Errors about resource versions and continue tokens, with the server's own texts.

A list or watch asks for a state by its version. The errors say that this state is not reached yet,
is forgotten, or never was (recordings 20, 23, 41, 43 and 61 to 64).
"""

from __future__ import annotations

from aioinformer.errors import ServerError, Status, server_error
from aioinformer.testing.wire import statuses

_INCONSISTENT_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


def malformed_version(text: str, *, for_watch: bool) -> ServerError:
    """Return the error for a resourceVersion that is not a number (recording 41).

    The code is 400 for a list and 500 for a watch.
    """
    parsing = f'strconv.ParseUint: parsing "{text}": invalid syntax'
    message = f'resourceVersion: Invalid value: "{text}": {parsing}'
    if for_watch:
        return server_error(Status(500, "", message))
    return statuses.bad_request(f"invalid resource version: {message}")


def too_large_version(version: int, current: int) -> ServerError:
    """Return the error for a resourceVersion that is not reached yet (recording 20)."""
    text = "Too large resource version"
    cause = {"reason": "ResourceVersionTooLarge", "message": text}
    return server_error(
        Status(
            504,
            "Timeout",
            f"Timeout: {text}: {version}, current: {current}",
            {"causes": [cause], "retryAfterSeconds": 1},
            retry_after=1.0,
        )
    )


def too_old_version(version: int, oldest: int) -> ServerError:
    """Return the error for a watch from a forgotten version (recordings 61 and 64)."""
    return server_error(Status(410, "Expired", f"too old resource version: {version} ({oldest})"))


def expired_version() -> ServerError:
    """Return the error for a list at exactly a forgotten resourceVersion (recording 63)."""
    message = "The resourceVersion for the provided list is too old."
    return server_error(Status(410, "Expired", message))


def expired_token(fresh: str) -> ServerError:
    """Return the error for a continue token of a forgotten snapshot (recording 62).

    Args:
        fresh: a token with which the client can list the rest without that snapshot.
    """
    return server_error(Status(410, "Expired", _INCONSISTENT_CONTINUE, continue_token=fresh))


def unsupported_watch_list() -> ServerError:
    """Return the error of a storage that can't serve a WatchList (recording 43)."""
    message = (
        "a watch stream was requested by the client but the required storage feature "
        "RequestWatchProgress is disabled"
    )
    return server_error(Status(500, "InternalError", message))


def invalid_token(reason: str) -> ServerError:
    """Return the error for a continue token that this server didn't make (recording 23)."""
    return statuses.bad_request(f"invalid continue token: continue key is not valid: {reason}")
