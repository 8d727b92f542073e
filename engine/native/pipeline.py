"""The passes of Numba's compiler that kernels need: typing and lowering, and nothing in between.

Numba's own pipeline also looks for parallel loops, closures, lists and objects; each pass walks the
whole function again. Kernels are plain loops over integers and vectors.
"""

from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager
from numba.core.typed_passes import (
    AnnotateTypes,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)

PASSES = (
    (TranslateByteCode, FixupArgs, IRProcessing)
    + (DeadBranchPrune, GenericRewrites, ReconstructSSA)
    + (NopythonTypeInference, PreLowerStripPhis, IRLegalization)
    + (AnnotateTypes, NativeLowering, NoPythonBackend)
)


class KernelPipeline(CompilerBase):
    """Compiles one function of a kernel from bytecode to LLVM text."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the one pipeline."""
        manager = PassManager("kernel")
        for step in PASSES:
            manager.add_pass(step, step.__name__)
        manager.finalize()
        return [manager]
