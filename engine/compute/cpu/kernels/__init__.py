"""Kernel sources of the CPU device: compiled into object files, imported by the compiler only."""
