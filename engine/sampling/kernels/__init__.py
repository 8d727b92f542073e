"""Samplers as Python that compiles to machine code: imported only while a unit is built."""
