"""A JSON Schema as a document: its subschemas with their places, and where references lead."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urljoin

from engine.errors import GrammarError

MAX_DEPTH = 100  # values inside values
MAX_VALUES = 10_000
MAX_TEXT = 2 * 1024 * 1024  # characters
MAX_BITS = 13_000  # of a whole number, 3,900 digits: more cannot be written in one piece
MAX_SHOWN = 120  # characters of what a sentence repeats
_DRAFTS = ("json-schema.org/draft/2020-12/", "json-schema.org/draft/2019-09/", "/draft-07/")
_NOT_SCHEMAS = ("const", "enum", "default", "examples")


class SchemaNode:
    """One subschema: `value` a dict or bool, `path` such as "#/properties/a", `base` its URI."""

    def __init__(self, value: Any, path: str, base: str) -> None:
        self.value, self.path, self.base = value, path, base

    def refuse(self, keyword: str, why: str) -> GrammarError:
        """Return the error that says why a keyword of this subschema cannot be honoured."""
        place = f"“{_short(keyword)}” at {_short(self.path)}"
        return GrammarError(f"The schema cannot be honoured: {place} {_short(why, 320)}.")

    def get(self, keyword: str, default: Any = None) -> Any:
        """Return the value of a keyword, or the default."""
        return self.value.get(keyword, default) if isinstance(self.value, dict) else default


class EitherNode(SchemaNode):
    """A subschema that says: one of `parts` holds."""

    def __init__(self, parts: tuple[SchemaNode, ...]) -> None:
        super().__init__({}, " or ".join(part.path for part in parts), parts[0].base)
        self.parts = parts


class Document:
    """All subschemas of one schema; raises GrammarError for what is no schema."""

    def __init__(self, schema: Any) -> None:
        value = _read(schema)
        _check_size(value)
        self._nodes: dict[str, SchemaNode] = {}
        self._bases: dict[str, str] = {}
        self._resources: dict[str, str] = {"": "#"}
        self._anchors: dict[tuple[str, str], str] = {}
        self._dynamic: dict[str, list[str]] = {}
        self._value = value
        self._check_draft(value)
        self._index(value, "#", "")
        self.root = self.at("#")

    def _check_draft(self, value: Any) -> None:
        draft = value.get("$schema") if isinstance(value, dict) else None
        if draft is not None and not any(known in str(draft) for known in _DRAFTS):
            raise GrammarError(
                f"The schema cannot be honoured: “$schema” at # names {_short(str(draft))}; use"
                " draft 2020-12."
            )

    def _index(self, value: Any, path: str, base: str) -> None:
        """Note the base URI of each place and the identifiers and anchors that are declared."""
        waiting = [(value, path, base)]
        while waiting:
            value, path, base = waiting.pop()
            if isinstance(value, dict):
                if isinstance(value.get("$id"), str):
                    base = _join(base, value["$id"]).removesuffix("#")
                    self._resources[base] = path
                for key in ("$anchor", "$dynamicAnchor"):
                    if isinstance(name := value.get(key), str):
                        self._anchors[(base, name)] = path
                        if key == "$dynamicAnchor":
                            self._dynamic.setdefault(name, []).append(path)
            self._bases[path] = base
            waiting += [(v, child, base) for v, child in _inside(value, path)]

    def at(self, path: str) -> SchemaNode:
        """Return the subschema at a path; the same object each time."""
        if path not in self._nodes:
            value: Any = self._value
            for part in path.split("/")[1:]:
                value = _step(value, part)
            self._nodes[path] = SchemaNode(value, path, self._bases.get(path, ""))
        return self._nodes[path]

    def below(self, node: SchemaNode, *keys: str | int) -> SchemaNode:
        """Return the subschema under a keyword (and a key or index) of another."""
        path = node.path + "".join(f"/{_pointer(str(key))}" for key in keys)
        if path in self._nodes:
            return self._nodes[path]
        value = node.value
        for key in keys:
            value = value[key]
        if not isinstance(value, dict | bool):
            raise GrammarError(
                f"The schema cannot be honoured: a schema must be an object or a truth value,"
                f" but {_short(path)} is {json.dumps(value, ensure_ascii=False)[:60]}."
            )
        self._nodes[path] = SchemaNode(value, path, self._bases.get(path, node.base))
        return self._nodes[path]

    def made(self, node: SchemaNode, keyword: str, index: int, value: Any) -> SchemaNode:
        """Return a subschema that says in other words what entry `index` of a keyword means."""
        path = f"{node.path}/{keyword}/{index} (as a schema)"
        return self._nodes.setdefault(path, SchemaNode(value, path, node.base))

    def either(self, *parts: SchemaNode) -> SchemaNode:
        """Return a subschema that holds where one of `parts` does; the same object each time."""
        made = EitherNode(parts)
        return self._nodes.setdefault(f"either {made.path}", made)

    def target(self, node: SchemaNode, keyword: str) -> SchemaNode:
        """Return the subschema that a `$ref` or `$dynamicRef` leads to."""
        reference = node.get(keyword)
        if not isinstance(reference, str):
            raise node.refuse(keyword, "must be a text")
        uri, _, fragment = _join(node.base, reference).partition("#")
        if keyword == "$dynamicRef" and len(self._dynamic.get(fragment, [])) > 1:
            raise node.refuse(
                keyword, "depends on the path that leads here, which is not supported"
            )
        path = self._resources.get(uri)
        if path is not None and fragment and not fragment.startswith("/"):
            path = self._anchors.get((uri, unquote(fragment)))
        elif path is not None and fragment:
            path += "".join(f"/{_pointer(_plain(p))}" for p in unquote(fragment).split("/")[1:])
        found = self._found(path)
        if found is None:
            raise node.refuse(
                keyword,
                f"leads to {_short(reference)}, which is not in this document; only that is read",
            )
        return found

    def _found(self, path: str | None) -> SchemaNode | None:
        try:
            found = self.at(path) if path is not None else None
        except (KeyError, IndexError, TypeError, ValueError):
            return None
        return found if found and isinstance(found.value, dict | bool) else None


def _read(schema: Any) -> Any:
    if isinstance(schema, str):
        if len(schema) > MAX_TEXT:
            raise _too_long()
        try:
            schema = json.loads(schema)
        except RecursionError as error:
            raise GrammarError(f"The schema nests deeper than {MAX_DEPTH}.") from error
        except ValueError as error:
            raise GrammarError(f"The schema is not JSON: {error}.") from error
    if isinstance(schema, Mapping) and not isinstance(schema, dict):
        schema = dict(schema)
    if not isinstance(schema, dict | bool):
        raise GrammarError("A JSON schema must be an object (or true or false).")
    return schema


def _check_size(value: Any) -> None:
    """Raise GrammarError for a value that nests too deep, is too large or is not JSON."""
    level, n_values, n_characters = [value], 0, 0
    for _ in range(MAX_DEPTH):
        n_values += len(level)
        if n_values > MAX_VALUES:
            raise GrammarError(f"The schema holds more than {MAX_VALUES:,} values: split it.")
        n_characters += sum(map(_length, level))
        if n_characters > MAX_TEXT:
            raise _too_long()
        for each in level:
            if each is not None and not isinstance(each, str | bool | int | float | list | dict):
                raise GrammarError(f"The schema holds {type(each).__name__}, which is not JSON.")
            if isinstance(each, int) and each.bit_length() > MAX_BITS:
                raise GrammarError("The schema holds a number of thousands of digits: shorten it.")
        level = [v for each in level for v in _values(each)]
        if not level:
            return
    raise GrammarError(f"The schema nests deeper than {MAX_DEPTH}.")


def _too_long() -> GrammarError:
    return GrammarError(f"The schema has more than {MAX_TEXT:,} characters: shorten it.")


def _length(value: Any) -> int:
    """Return the characters of a text, or of the names of an object."""
    if isinstance(value, dict):
        return sum(len(name) for name in value if isinstance(name, str))
    return len(value) if isinstance(value, str) else 0


def _values(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                raise GrammarError(
                    f"The schema holds the name {_short(repr(key))}, which is not a text."
                )
            yield each
    elif isinstance(value, list):
        yield from value


def _inside(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in _NOT_SCHEMAS or path.endswith("/properties"):
                yield each, f"{path}/{_pointer(key)}"
    elif isinstance(value, list):
        for i, each in enumerate(value):
            yield each, f"{path}/{i}"


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _plain(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _step(value: Any, part: str) -> Any:
    return value[int(part)] if isinstance(value, list) else value[_plain(part)]


def _join(base: str, reference: str) -> str:
    if reference.startswith("#"):
        return base.partition("#")[0] + reference
    try:
        return urljoin(base, reference) or reference
    except ValueError:  # no address: it leads nowhere
        return reference


def _short(text: str, most: int = MAX_SHOWN) -> str:
    """Return a text as a sentence repeats it: what is long loses its middle."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}…{text[-most // 2 :]}"
