"""The CPU device: kernels in machine code, their argument blocks, and the team that runs them."""
