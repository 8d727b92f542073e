"""The terminal face of the engine: one module per command, one table, one place for errors.

`python -m engine COMMAND …` exits 0 on success, 1 with one line "error: …" on stderr for a
refusal, 2 for bad usage. Each command module has `add_arguments(parser)` and `run(options)`.
"""
