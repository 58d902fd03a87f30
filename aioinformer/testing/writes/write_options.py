"""The query parameters of writes, checked as by apimachinery's ``pkg/apis/meta/v1/validation``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aioinformer.testing.wire import statuses

MANAGER_LENGTH = 128
"""The most bytes of a ``fieldManager``."""
_DRY_RUN_ALL = "All"
"""The only value of ``dryRun``."""
_FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_GO_ESCAPES: Mapping[str, str] = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
"""The escapes of Go's ``%q`` for characters that have one of their own."""


def check_write_options(kind: str, query: Mapping[str, str], *, is_apply: bool) -> None:
    """Raise ``Invalid`` with all invalid or missing parameters of, say, ``CreateOptions``."""
    causes = [*_iterate_causes(kind, query, is_apply=is_apply)]
    if causes:
        raise statuses.invalid_options(kind, causes)


def _iterate_causes(
    kind: str, query: Mapping[str, str], *, is_apply: bool
) -> Iterator[Mapping[str, str]]:
    if kind == "PatchOptions" and "force" in query and not is_apply:
        text = "Forbidden: may not be specified for non-apply patch"
        yield _cause("FieldValueForbidden", "force", text)
    manager = query.get("fieldManager", "")
    if is_apply and not manager:
        text = "Required value: is required for apply patch"
        yield _cause("FieldValueRequired", "fieldManager", text)
    if kind != "DeleteOptions":
        yield from _manager_causes(manager)
    dry_run = query.get("dryRun", _DRY_RUN_ALL)
    if dry_run != _DRY_RUN_ALL:
        yield unsupported_cause("dryRun", f'["{dry_run}"]', (_DRY_RUN_ALL,))
    validation = query.get("fieldValidation", "")
    if validation not in _FIELD_VALIDATIONS and kind != "DeleteOptions":
        yield unsupported_cause("fieldValidation", f'"{validation}"', _FIELD_VALIDATIONS)


def _manager_causes(manager: str) -> Iterator[Mapping[str, str]]:
    if len(manager.encode()) > MANAGER_LENGTH:
        text = f"Too long: may not be more than {MANAGER_LENGTH} bytes"
        yield _cause("FieldValueTooLong", "fieldManager", text)
    if manager.isprintable():
        return
    place = 0
    for character in manager:
        if not character.isprintable():
            text = (
                f"Invalid value: {quote(manager)}: invalid character U+{ord(character):04X} "
                f"(at position {place})"
            )
            yield _cause("FieldValueInvalid", "fieldManager", text)
        place += len(character.encode())


def quote(text: str) -> str:
    """Return a text as Go's ``%q`` writes it."""
    return f'"{"".join(map(_escape, text))}"'


def _escape(character: str) -> str:
    if character in _GO_ESCAPES:
        return _GO_ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def unsupported_cause(field: str, value: str, known: tuple[str, ...]) -> Mapping[str, str]:
    """Return the cause for a parameter with an unknown value, which is already quoted."""
    listed = ", ".join(f'"{each}"' for each in known)
    text = f"Unsupported value: {value}: supported values: {listed}"
    return _cause("FieldValueNotSupported", field, text)


def _cause(reason: str, field: str, text: str) -> dict[str, str]:
    return {"reason": reason, "message": text, "field": field}
