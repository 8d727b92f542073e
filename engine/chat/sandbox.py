"""Sandbox: Jinja's immutable sandbox with a meter on every loop, operator, call and text.

The tree of a template is changed before it is compiled: what Jinja would do with a bare Python
operator goes through `operators` and `filters` instead. No attribute of any object is in reach but
what the tables of `methods` hold.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from jinja2 import ChainableUndefined, Template, nodes, pass_context
from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from engine.chat import filters, marked, methods
from engine.chat.meter import running
from engine.chat.operators import BINARY_OPERATORS

_LOOP_NAMES = frozenset(
    (
        *("index", "index0", "revindex", "revindex0", "first", "last", "length", "depth"),
        *("depth0", "previtem", "nextitem", "cycle", "changed"),
    )
)
_NOTHING = object()
MAX_NODES = 30_000  # of the tree; the compiler of templates needs some 20 µs for each
MAX_NESTED = 40  # its time grows with the cube of nested statements
_NESTING = (
    *(nodes.For, nodes.If, nodes.Macro, nodes.CallBlock, nodes.FilterBlock),
    *(nodes.AssignBlock, nodes.With),
)
_MACRO_NAMES = frozenset(("name", "arguments", "caller", "catch_kwargs", "catch_varargs"))
_REFUSED: dict[type[nodes.Node], str] = {
    nodes.Include: "include another file",
    nodes.Import: "import another file",
    nodes.FromImport: "import another file",
    nodes.Extends: "extend another file",
    nodes.Block: "define a block",
}


class Generation(Extension):
    """{% generation %} … {% endgeneration %}: marks for training, here without effect."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return what stands between the marks."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Bounded(NodeTransformer):
    """Leads loops, comparisons, slices and joins through the inner filters."""

    def __init__(self) -> None:
        self._n_nodes = 0
        self._depth = 0

    def visit(self, node: nodes.Node, *args: Any, **named: Any) -> Any:
        is_nesting = isinstance(node, _NESTING)
        self._n_nodes += 1
        self._depth += is_nesting
        self._require_sound(node)
        try:
            return super().visit(node, *args, **named)
        finally:
            self._depth -= is_nesting

    def _require_sound(self, node: nodes.Node) -> None:
        reason = None
        if self._n_nodes > MAX_NODES:
            reason = "it is too complicated"
        elif self._depth > MAX_NESTED:
            reason = "statements are nested too deeply"
        elif type(node) in _REFUSED:
            reason = f"a chat template cannot {_REFUSED[type(node)]}"
        if reason:
            raise TemplateSyntaxError(reason, node.lineno or 1)

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _through("(each)", node, node.iter)
        return node

    def visit_Output(self, node: nodes.Output) -> list[nodes.Node]:
        self.generic_visit(node)
        written = sum(len(part.data) for part in node.nodes if isinstance(part, nodes.TemplateData))
        count = _through("(write)", node, nodes.Const(written))
        return [nodes.ExprStmt(count, lineno=node.lineno), node]

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        rest: list[nodes.Expr] = []
        for operand in node.ops:
            rest += [nodes.Const(operand.op), operand.expr]
        return _through("(compare)", node, node.expr, *rest)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _through("(concat)", node, *node.nodes)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        part = node.arg
        limits = [limit or nodes.Const(None) for limit in (part.start, part.stop, part.step)]
        return _through("(cut)", node, node.node, *limits)

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:
        self.generic_visit(node)
        node.key = _through("(key)", node, node.key)
        return node


def _through(name: str, at: nodes.Node, value: Any, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(value, name, list(args), [], None, None, lineno=at.lineno)


class Method:
    """A method of a value, from the tables of `methods`, `operators` and `filters`."""

    def __init__(self, function: Callable[..., Any], owner: Any) -> None:
        self._function, self._owner = function, owner

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._function(self._owner, *args, **named)


def _methods_of(value: Any) -> dict[str, Callable[..., Any]]:
    if isinstance(value, str):
        return methods.TEXT_METHODS
    if isinstance(value, dict):
        return methods.MAPPING_METHODS
    if isinstance(value, list):
        return methods.LIST_METHODS
    if isinstance(value, tuple):
        return {name: methods.LIST_METHODS[name] for name in ("count", "index")}
    return {}


def _stepped(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*args: Any, **named: Any) -> Any:
        running().step()
        return function(*args, **named)

    return run


@pass_context
def _write(context: Context, value: Any) -> str:
    text = methods.as_text(value)
    running().output(len(text))
    return text


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """Compiles chat templates; shared by all of them and by all threads."""

    intercepted_binops = frozenset(BINARY_OPERATORS)
    concat = staticmethod(marked.concat)  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=ChainableUndefined,
            extensions=["jinja2.ext.loopcontrols", Generation],
            optimized=False,  # nothing is computed while compiling, where no meter runs
            finalize=_write,
            autoescape=False,
            cache_size=0,
        )
        outer = {name: _stepped(function) for name, function in filters.FILTERS.items()}
        self.filters = {**outer, **filters.INNER_FILTERS}
        self.tests = dict(filters.TESTS)
        self.globals = dict(filters.GLOBALS)
        self._callable = {id(value) for value in filters.GLOBALS.values()}

    def _generate(
        self, source: nodes.Template, name: Any, filename: Any, defer_init: bool = False
    ) -> str:
        return super()._generate(_Bounded().visit(source), name, filename, defer_init)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return obj.attribute: a method first, then what the value holds by that name."""
        found = self._attribute(obj, attribute)
        return self._element(obj, attribute) if found is _NOTHING else found

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return obj[argument]: what the value holds by that name, else a method."""
        found = self._element(obj, argument)
        if isinstance(found, Undefined) and isinstance(argument, str):
            method = self._attribute(obj, argument)
            return found if method is _NOTHING else method
        return found

    def _attribute(self, obj: Any, name: str) -> Any:
        running().step()
        if isinstance(obj, Undefined):
            return obj
        if isinstance(obj, Namespace) and not name.startswith("_"):
            return getattr(obj, name, _NOTHING)
        if isinstance(obj, LoopContext) and name in _LOOP_NAMES:
            return getattr(obj, name)
        if isinstance(obj, Macro) and name in _MACRO_NAMES:
            return getattr(obj, name)
        function = _methods_of(obj).get(name)
        return Method(function, obj) if function is not None else _NOTHING

    def _element(self, obj: Any, argument: Any) -> Any:
        running().step()
        if isinstance(obj, Undefined):
            return obj
        if isinstance(obj, (dict, str, list, tuple, range)):
            try:
                return obj[methods.checked_key(argument)]
            except (TypeError, LookupError):
                pass
        return self.undefined(obj=obj, name=argument if isinstance(argument, str) else "element")

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Return left OPERATOR right, measured."""
        running().step()
        return BINARY_OPERATORS[operator](left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **named: Any) -> Any:
        """Call what a template may call: a method, macro, loop, or one of the functions."""
        running().step()
        running().look_at_clock()
        if not __self.is_safe_callable(__obj):
            raise SecurityError("the template calls what it must not call")
        if isinstance(__obj, LoopContext) and args:
            args = (methods.Each(args[0]), *args[1:])
        return __context.call(__obj, *args, **named)

    def is_safe_callable(self, obj: Any) -> bool:
        """Tell whether a template may call a value."""
        if isinstance(obj, (Method, Macro, LoopContext, Undefined)) or id(obj) in self._callable:
            return True
        return isinstance(getattr(obj, "__self__", None), LoopContext)


def line_of(error: BaseException, template: Template) -> int | None:
    """Return the line of the template that an error came from, 1-based, or None."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == template.filename or (
            template.filename is None and trace.tb_frame.f_code.co_filename == "<template>"
        ):
            line = template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return line
