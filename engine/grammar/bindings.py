"""The matching library through its C interface: no call of it holds the interpreter.

Decision: the library's own Python class builds the trie of a vocabulary without letting go of the
interpreter, 0.12 s for 49k tokens and 1 s for 262k, during which no window answers and no other
answer grows. Its C interface, in the same file on every system, does all of it beside them. The
price is this module, and a check of its layout when it is loaded.
"""

import ctypes
import functools
import weakref
from collections.abc import Sequence

import llguidance._lib
import numpy as np
from numpy.typing import NDArray

from engine.errors import GrammarError, InternalError

MAX_ERROR_BYTES = 500
_NO_TOKENS = "The vocabulary of this model cannot be used with a grammar: "


class _Vocabulary(ctypes.Structure):
    """`LlgTokenizerInitV2`."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("vocab_size", ctypes.c_uint32),
        ("tok_eos", ctypes.c_uint32),
        ("token_lens", ctypes.c_void_p),
        ("token_bytes", ctypes.c_void_p),
        ("tokenizer_json", ctypes.c_void_p),
        ("tokenize_assumes_string", ctypes.c_bool),
        ("tokenize_fn", ctypes.c_void_p),
        ("use_approximate_greedy_tokenize_fn", ctypes.c_bool),
        ("tokenize_user_data", ctypes.c_void_p),
        ("slices", ctypes.c_void_p),
        ("tok_eos_extra", ctypes.c_void_p),
        ("tok_eos_extra_count", ctypes.c_uint32),
    ]


class Limits(ctypes.Structure):
    """`LlgParserLimits`: how much a grammar may cost; 0 is the library's default."""

    _fields_ = [
        ("max_items_in_row", ctypes.c_size_t),
        ("initial_lexer_fuel", ctypes.c_uint64),
        ("step_lexer_fuel", ctypes.c_uint64),
        ("step_max_items", ctypes.c_size_t),
        ("max_lexer_states", ctypes.c_size_t),
        ("max_grammar_size", ctypes.c_size_t),
        ("precompute_large_lexemes", ctypes.c_bool),
        ("verbose_errors", ctypes.c_bool),
    ]


class _Start(ctypes.Structure):
    """`LlgConstraintInit`, with room for what later versions add behind the limits."""

    _fields_ = [
        ("tokenizer", ctypes.c_void_p),
        ("log_buffer_level", ctypes.c_uint32),
        ("log_stderr_level", ctypes.c_uint32),
        ("ff_tokens_ok", ctypes.c_bool),
        ("backtrack_ok", ctypes.c_bool),
        ("limits", Limits),
        ("later", ctypes.c_uint64 * 16),
    ]


_POINTER, _SIZE, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32
_FUNCTIONS = {
    "llg_new_tokenizer_v2": (_POINTER, [_POINTER, ctypes.c_char_p, _SIZE]),
    "llg_free_tokenizer": (None, [_POINTER]),
    "llg_constraint_init_set_defaults": (None, [_POINTER, _POINTER]),
    "llg_new_matcher": (_POINTER, [_POINTER, ctypes.c_char_p, ctypes.c_char_p]),
    "llg_clone_matcher": (_POINTER, [_POINTER]),
    "llg_free_matcher": (None, [_POINTER]),
    "llg_matcher_compute_mask_into": (_INT, [_POINTER, _POINTER, _SIZE]),
    "llg_matcher_validate_tokens": (_INT, [_POINTER, _POINTER, _SIZE]),
    "llg_matcher_consume_tokens": (_INT, [_POINTER, _POINTER, _SIZE]),
    "llg_matcher_rollback": (_INT, [_POINTER, _SIZE]),
    "llg_matcher_is_accepting": (ctypes.c_bool, [_POINTER]),
    "llg_matcher_is_stopped": (ctypes.c_bool, [_POINTER]),
    "llg_matcher_is_error": (ctypes.c_bool, [_POINTER]),
    "llg_matcher_get_error": (ctypes.c_char_p, [_POINTER]),
}


@functools.cache
def _library() -> ctypes.CDLL:
    """Return the library, whose structures are laid out as above; else raises InternalError."""
    library = ctypes.CDLL(llguidance._lib.__file__)
    try:
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise _other_version() from error
    start = _Start()
    library.llg_constraint_init_set_defaults(ctypes.byref(start), 4096)
    limits = start.limits
    found = start.tokenizer, start.log_stderr_level, limits.max_items_in_row
    if (*found, limits.max_grammar_size, limits.verbose_errors) != (4096, 1, 2000, 500_000, True):
        raise _other_version()
    return library


def _other_version() -> InternalError:
    return InternalError(
        f"The grammar library llguidance {llguidance.__version__} is not one that this program "
        "knows: install a version from 1.9 to below 2."
    )


class Tokenizer:
    """The trie of all tokens of a vocabulary; read-only, used by any number of matchers."""

    def __init__(self, tokens: Sequence[bytes], ends: Sequence[int]) -> None:
        """`tokens` are the bytes of each id, `ends` the ids that end a text, at least one.

        A token that begins with 0xFF is no text. Raises GrammarError if the library refuses.
        """
        library = _library()
        lengths = np.fromiter(map(len, tokens), np.uint32, len(tokens))
        whole = b"".join(tokens) + b"\0"
        more = np.array(ends[1:], np.uint32)
        init = _Vocabulary(
            struct_size=ctypes.sizeof(_Vocabulary),
            vocab_size=len(tokens),
            tok_eos=ends[0],
            token_lens=lengths.ctypes.data,
            token_bytes=ctypes.cast(ctypes.c_char_p(whole), ctypes.c_void_p),
            use_approximate_greedy_tokenize_fn=True,  # nothing is cut into tokens here
            tok_eos_extra=more.ctypes.data if len(more) else None,
            tok_eos_extra_count=len(more),
        )
        error = ctypes.create_string_buffer(MAX_ERROR_BYTES)
        self.handle = library.llg_new_tokenizer_v2(ctypes.byref(init), error, len(error))
        if not self.handle:
            raise GrammarError(_NO_TOKENS + error.value.decode("utf-8", "replace") + ".")
        self.vocab_size, self.ends = len(tokens), tuple(ends)
        weakref.finalize(self, library.llg_free_tokenizer, self.handle).atexit = False


class State:
    """One text as it grows, as the library follows it; once in error, for ever in error."""

    def __init__(self, tokenizer: Tokenizer, handle: int) -> None:
        self._library, self._tokenizer, self._handle = _library(), tokenizer, handle
        weakref.finalize(self, self._library.llg_free_matcher, handle).atexit = False

    @classmethod
    def begin(cls, tokenizer: Tokenizer, lark: str, limits: Limits) -> "State":
        """Return the state at the beginning of a Lark grammar; mistakes in it: `is_error`."""
        start = _Start(tokenizer=tokenizer.handle, limits=limits)
        text = lark.encode("utf-8", "replace")
        if b"\0" in text:
            raise InternalError("The text of a grammar holds a NUL, where C ends a text.")
        handle = _library().llg_new_matcher(ctypes.byref(start), b"lark", text)
        return cls(tokenizer, handle)

    def clone(self) -> "State":
        """Return a copy that goes its own way from here."""
        return State(self._tokenizer, self._library.llg_clone_matcher(self._handle))

    def mask(self, into: NDArray[np.uint32]) -> None:
        """Write which tokens may come next, bit i % 32 of word i // 32 for token i."""
        self._library.llg_matcher_compute_mask_into(self._handle, into.ctypes.data, into.nbytes)

    def n_fitting(self, ids: Sequence[int]) -> int:
        """Return how many of these tokens may come next, one after the other; -1 in error."""
        array = (ctypes.c_uint32 * len(ids))(*ids)
        return int(self._library.llg_matcher_validate_tokens(self._handle, array, len(ids)))

    def consume(self, ids: Sequence[int]) -> bool:
        """Take tokens; False when that ends in error."""
        array = (ctypes.c_uint32 * len(ids))(*ids)
        return bool(self._library.llg_matcher_consume_tokens(self._handle, array, len(ids)) == 0)

    def rollback(self, n_tokens: int) -> bool:
        """Take tokens back; False when that ends in error."""
        return bool(self._library.llg_matcher_rollback(self._handle, n_tokens) == 0)

    @property
    def is_accepting(self) -> bool:
        """Whether the text is complete."""
        return bool(self._library.llg_matcher_is_accepting(self._handle))

    @property
    def is_stopped(self) -> bool:
        """Whether nothing can follow; also in error."""
        return bool(self._library.llg_matcher_is_stopped(self._handle))

    @property
    def is_error(self) -> bool:
        """Whether the text or the grammar could not be followed."""
        return bool(self._library.llg_matcher_is_error(self._handle))

    @property
    def error(self) -> str:
        """What went wrong, in the library's words; empty without an error."""
        text = self._library.llg_matcher_get_error(self._handle)
        return (text or b"").decode("utf-8", "replace")
