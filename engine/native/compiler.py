"""One unit of Python kernels to one object file, through Numba's front end and one LLVM pass.

Numba types and lowers every function to LLVM text; its own optimizing and linking of each callee
is skipped. All functions of a unit are linked, hidden except the kernels, optimized once and
emitted. Imported only in a process that compiles.
"""

import importlib
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils, codegen
from numba.core.registry import cpu_target
from numba.core.typing import npydecl

from engine.errors import InternalError
from engine.native import external, level, units
from engine.native.objects import symbol
from engine.native.simd import callee_out_of_line

KERNEL_ARGS = (types.int64, types.int64, types.int64)


class _IRLibrary(codegen.CPUCodeLibrary):
    """The LLVM modules of one function and the libraries it calls; never optimized, never run."""

    def __init__(self, owner: "_ObjectCodegen", name: str) -> None:
        codegen.CodeLibrary.__init__(self, owner, name)
        self.modules: list[llvm.ModuleRef] = []
        self.callees: list[_IRLibrary] = []

    def add_ir_module(self, ir_module: ir.Module) -> None:
        self.modules.append(llvm.parse_assembly(cgutils.normalize_ir_text(str(ir_module))))

    def add_linking_library(self, library: "_IRLibrary") -> None:
        self.callees.append(library)

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0


class _ObjectCodegen(codegen.JITCPUCodegen):
    """Lowers for one CPU level and keeps the result as LLVM modules."""

    _library_class = _IRLibrary  # type: ignore[assignment]  # it runs nothing, so it is no JIT

    def __init__(self, target: level.Level) -> None:
        self._target = target
        super().__init__("inglenook")

    def _get_host_cpu_name(self) -> str:
        return self._target.cpu

    def _customize_tm_features(self) -> str:
        return self._target.feature_string

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: no compiled function is ever called from Python."""


def target_machine(target: level.Level) -> llvm.TargetMachine:
    """Return the code generator for position-independent objects of one CPU level."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(level.triple()).create_target_machine(
        cpu=target.cpu,
        features=target.feature_string,
        opt=3,
        reloc="pic",
        codemodel="small",
    )


def compile_unit(name: str) -> tuple[bytes, list[str]]:
    """Return the object file of a unit and its kernel names.

    Raises InternalError if a kernel needs a symbol that a process without Numba lacks.
    """
    unit = units.find(name)
    target = level.current()
    context = cpu_target.target_context
    if not isinstance(context.codegen(), _ObjectCodegen):
        context._internal_codegen = _ObjectCodegen(target)
        _skip_array_rules()
    kernels = importlib.import_module(unit.module).kernels(*unit.arguments)
    whole = _link({symbol(name, kernel): fn for kernel, fn in kernels.items()})
    machine = target_machine(target)
    _optimize(whole, machine, unit.unrolls_loops)
    _require_known_symbols(name, whole)
    return machine.emit_object(whole), sorted(kernels)


def _skip_array_rules() -> None:
    """Let Numba try NumPy's rules for an operator only where there is an array.

    Kernels have none, and trying them for every integer sum took an eighth of the compile time.
    """
    for rules in (
        npydecl.NumpyRulesArrayOperator,
        npydecl.NumpyRulesInplaceArrayOperator,
        npydecl.NumpyRulesUnaryArrayOperator,
    ):
        setattr(rules, "generic", _for_arrays(rules.generic))  # noqa: B010 (a method of theirs)


def _for_arrays(rule: Callable[..., Any]) -> Callable[..., Any]:
    def generic(self: Any, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        if any(isinstance(arg, types.ArrayCompatible) for arg in args):
            return rule(self, args, kws)
        return None

    return generic


def _link(kernels: dict[str, Callable[..., None]]) -> llvm.ModuleRef:
    """Compile the kernels and their callees into one module that exports the kernels only."""
    whole = llvm.parse_assembly("")
    whole.triple = level.triple()
    linked: set[_IRLibrary] = set()
    for name, fn in kernels.items():
        dispatcher: Any = callee_out_of_line(fn)
        dispatcher.compile(types.void(*KERNEL_ARGS))
        result = dispatcher.overloads[KERNEL_ARGS]
        _link_library(whole, result.library, linked)
        whole.link_in(llvm.parse_assembly(_entry(name, result.fndesc)))
    for value in [*whole.functions, *whole.global_variables]:
        if not value.is_declaration and value.name not in kernels:
            value.linkage = "internal"
    whole.verify()
    return whole


def _link_library(whole: llvm.ModuleRef, library: _IRLibrary, linked: set[_IRLibrary]) -> None:
    if library in linked:
        return
    linked.add(library)
    for callee in library.callees:
        _link_library(whole, callee, linked)
    for module in library.modules:
        whole.link_in(module, preserve=True)  # another unit may use the same callee


def _entry(name: str, fndesc: Any) -> str:
    """Return LLVM text of the exported function, which calls Numba's by its own convention."""
    word = ir.IntType(64)
    module = ir.Module(name)
    pointer = ir.IntType(8).as_pointer()
    slot = pointer.as_pointer()
    inner = ir.Function(
        module,
        ir.FunctionType(ir.IntType(32), [slot, slot, word, word, word]),
        fndesc.mangled_name,
    )
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [word] * 3), name)
    builder = ir.IRBuilder(entry.append_basic_block())
    result, error = builder.alloca(pointer), builder.alloca(pointer)
    builder.call(inner, [result, error, *entry.args])
    builder.ret_void()
    return str(module)


def _optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine, unrolls_loops: bool) -> None:
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(
        speed_level=2
    )  # 3 takes half as long again, for nothing
    tuning.slp_vectorization = False
    tuning.loop_vectorization = False
    tuning.loop_unrolling = unrolls_loops
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)


def _require_known_symbols(unit: str, module: llvm.ModuleRef) -> None:
    """Refuse symbols that the linker could not find in a process without Numba."""
    for function in module.functions:
        name = function.name
        if function.is_declaration and not name.startswith("llvm."):
            if name.lower().startswith(("numba", "nrt_", "py")) or external.address(name) is None:
                raise InternalError(f"Unit “{unit}” needs “{name}”, which only Numba provides.")
