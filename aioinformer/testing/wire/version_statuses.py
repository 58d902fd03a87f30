"""Errors about resource versions and continue tokens, with the server's own texts.

The requested state is not reached yet, is forgotten, or never was.
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
    """Return the error for a version that is not a number: 400 for a list, 500 for a watch."""
    parsing = f'strconv.ParseUint: parsing "{text}": invalid syntax'
    message = f'resourceVersion: Invalid value: "{text}": {parsing}'
    if for_watch:
        return server_error(Status(500, "", message))
    return statuses.bad_request(f"invalid resource version: {message}")


def too_large_version(version: int, current: int) -> ServerError:
    """Return the error for a resourceVersion that is not reached yet."""
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
    """Return the error for a watch from a forgotten version."""
    return server_error(Status(410, "Expired", f"too old resource version: {version} ({oldest})"))


def expired_version() -> ServerError:
    """Return the error for a list at exactly a forgotten resourceVersion."""
    message = "The resourceVersion for the provided list is too old."
    return server_error(Status(410, "Expired", message))


def expired_token(fresh: str) -> ServerError:
    """Return the error for a token of a forgotten snapshot; ``fresh`` lists the rest."""
    return server_error(Status(410, "Expired", _INCONSISTENT_CONTINUE, continue_token=fresh))


def unsupported_watch_list() -> ServerError:
    """Return the error for a storage that can't serve a WatchList."""
    message = (
        "a watch stream was requested by the client but the required storage feature "
        "RequestWatchProgress is disabled"
    )
    return server_error(Status(500, "InternalError", message))


def invalid_token(reason: str) -> ServerError:
    """Return the error for a continue token that this server didn't make."""
    return statuses.bad_request(f"invalid continue token: continue key is not valid: {reason}")
