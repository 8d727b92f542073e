"""Operations on tensors: what a model asks for, and how a machine does it."""
