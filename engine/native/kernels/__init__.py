"""Kernels that only tests of the object machinery compile."""
