"""ROW_GROUPS: weight type to the maker of its row group."""

from engine.compute.cpu.kernels import rows_float, rows_k, rows_nibble, rows_q8_0

ROW_GROUPS = {
    **dict.fromkeys(("f32", "f16", "bf16"), rows_float.row_group),
    **dict.fromkeys(("q4_0", "q4_1", "q5_0", "q5_1"), rows_nibble.row_group),
    "q8_0": rows_q8_0.row_group,
    **dict.fromkeys(("q4_k", "q5_k", "q6_k"), rows_k.row_group),
}
