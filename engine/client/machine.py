"""What the engine computes with on this machine, in the words of people who sell processors."""

_NAMES = {
    "avx512": "AVX-512 VNNI",
    "avxvnni": "AVX-VNNI",
    "avx2": "AVX2",
    "neon": "NEON",
    "generic": "generic code",
}


def cpu_level() -> str:
    """Return the instructions that the kernels are compiled for, as in “AVX-512 VNNI”.

    Reads the CPU on first use, which takes some ten milliseconds. Raises MachineError for a
    forced level that this CPU cannot run.
    """
    from engine.native.level import current

    level = current().name
    return _NAMES.get(level, level)
