"""Operations on tensors: what a model may ask for, and the plans that compute it on a device.

`ops.py` is the contract; `graph.py` strings ops together without knowing a device; `cpu/` plans
a graph for one machine and writes it as a tape.
"""
