"""JSON Schema by the letter: whether a value fulfils a schema, keyword by keyword."""

import re


def valid(schema, value, root=None):
    """Whether a value is valid (draft 2020-12, without unevaluated… and formats)."""
    root = schema if root is None else root
    if isinstance(schema, bool):
        return schema
    return all(
        _KEYWORDS[keyword](argument, value, schema, root)
        for keyword, argument in schema.items()
        if keyword in _KEYWORDS
    )


def _is(kind, value):
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "number": number,
        "integer": number and value == int(value),
        "string": isinstance(value, str),
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }[kind]


def _same(a, b):
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    return a == b


def _about(kind, check):
    return lambda a, v, s, r: not _is(kind, v) or check(a, v, s, r)


def _ref(pointer, root):
    for part in pointer.split("/")[1:]:
        root = root[part]
    return root


def _if(a, v, s, r):
    return valid(s.get("then" if valid(a, v, r) else "else", True), v, r)


def _contains(a, v, s, r):
    n = sum(valid(a, item, r) for item in v)
    return s.get("minContains", 1) <= n <= s.get("maxContains", len(v))


def _additional(a, v, s, r):
    patterns = s.get("patternProperties", {})
    others = [
        k
        for k in v
        if k not in s.get("properties", {}) and not any(re.search(p, k) for p in patterns)
    ]
    return all(valid(a, v[k], r) for k in others)


_KEYWORDS = {
    "type": lambda a, v, s, r: any(_is(k, v) for k in (a if isinstance(a, list) else [a])),
    "const": lambda a, v, s, r: _same(a, v),
    "enum": lambda a, v, s, r: any(_same(each, v) for each in a),
    "minimum": _about("number", lambda a, v, s, r: v >= a),
    "maximum": _about("number", lambda a, v, s, r: v <= a),
    "exclusiveMinimum": _about("number", lambda a, v, s, r: v > a),
    "exclusiveMaximum": _about("number", lambda a, v, s, r: v < a),
    "minLength": _about("string", lambda a, v, s, r: len(v) >= a),
    "maxLength": _about("string", lambda a, v, s, r: len(v) <= a),
    "pattern": _about("string", lambda a, v, s, r: re.search(a, v) is not None),
    "minItems": _about("array", lambda a, v, s, r: len(v) >= a),
    "maxItems": _about("array", lambda a, v, s, r: len(v) <= a),
    "items": _about(
        "array", lambda a, v, s, r: all(valid(a, i, r) for i in v[len(s.get("prefixItems", [])) :])
    ),
    "prefixItems": _about(
        "array", lambda a, v, s, r: all(valid(p, i, r) for p, i in zip(a, v, strict=False))
    ),
    "contains": _about("array", _contains),
    "minProperties": _about("object", lambda a, v, s, r: len(v) >= a),
    "maxProperties": _about("object", lambda a, v, s, r: len(v) <= a),
    "required": _about("object", lambda a, v, s, r: all(k in v for k in a)),
    "properties": _about(
        "object", lambda a, v, s, r: all(valid(p, v[k], r) for k, p in a.items() if k in v)
    ),
    "patternProperties": _about(
        "object",
        lambda a, v, s, r: all(
            valid(p, v[k], r) for x, p in a.items() for k in v if re.search(x, k)
        ),
    ),
    "additionalProperties": _about("object", _additional),
    "propertyNames": _about("object", lambda a, v, s, r: all(valid(a, k, r) for k in v)),
    "dependentRequired": _about(
        "object", lambda a, v, s, r: all(n in v for k, names in a.items() if k in v for n in names)
    ),
    "dependentSchemas": _about(
        "object", lambda a, v, s, r: all(valid(p, v, r) for k, p in a.items() if k in v)
    ),
    "allOf": lambda a, v, s, r: all(valid(p, v, r) for p in a),
    "anyOf": lambda a, v, s, r: any(valid(p, v, r) for p in a),
    "oneOf": lambda a, v, s, r: sum(valid(p, v, r) for p in a) == 1,
    "not": lambda a, v, s, r: not valid(a, v, r),
    "if": _if,
    "$ref": lambda a, v, s, r: valid(_ref(a, r), v, r),
}
