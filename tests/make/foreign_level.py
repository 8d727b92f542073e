"""Compiles and links units for a CPU level that this machine lacks: `python -m … LEVEL UNIT…`.

Prints the size of each object; nothing of it runs. It stands in for the machine in four places: its
name, its triple, its level, and the engine that Numba makes for running what it compiles.
"""

import platform
import sys

import llvmlite.binding as llvm

from engine.native import elf, level, linker

BASE = 0x7F00_0000_0000  # where linked code would lie, a far function 4 GiB behind it
LEVELS = {
    "avxvnni": ("x86_64", "x86_64-unknown-linux-gnu", "alderlake"),
    "neon": ("aarch64", "aarch64-unknown-linux-gnu", "cortex-a76"),
}


class _NoEngine:
    """What Numba asks of an execution engine before anything is run."""

    def __init__(self, machine):
        self.target_data = machine.target_data

    def set_object_cache(self, *hooks):
        """Keep nothing."""


def main(name, units):
    """Compile units for the level; raises what the compiler or the linker raises."""
    machine, triple, cpu = LEVELS[name]
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = level.Level(name, cpu, frozenset(level.LEVELS[name][1]))
    level.current = lambda: target
    platform.machine = lambda: machine
    llvm.get_process_triple = level.triple = lambda: triple
    llvm.create_mcjit_compiler = lambda module, machine, use_lmm=None: _NoEngine(machine)
    from numba.core import codegen

    codegen.JitEngine.set_object_cache = _NoEngine.set_object_cache
    from engine.native import compiler

    for unit in units:
        content, kernels = compiler.compile_unit(unit)
        parsed = elf.parse(content)
        layout = linker.lay_out(parsed, 1 << 16)
        linker.make_image(parsed, layout, BASE, lambda name: BASE + (1 << 32))
        print(unit, len(content), *kernels)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
