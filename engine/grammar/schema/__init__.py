"""JSON Schema: what it demands, as terms, and the grammar of the values that fulfil it."""
