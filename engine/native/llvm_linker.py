"""Makes an object file runnable through LLVM's own loader, where `linker` has no way of its own."""

import llvmlite.binding as llvm

from engine.native.elf import DamagedObject

_ENGINES: list[llvm.ExecutionEngine] = []  # kept for the life of the process


def link(content: bytes, names: list[str]) -> dict[str, int]:
    """Make the code of an object file executable; return the addresses of the named symbols.

    Raises DamagedObject if LLVM cannot read it. LLVM trusts what it can read.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    try:
        engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    except Exception as error:
        raise DamagedObject("The object is none that LLVM can read.") from error
    engine.finalize_object()
    _ENGINES.append(engine)
    return {name: engine.get_function_address(name) for name in names}
