"""The seam to whoever uses the engine: plain requests in, plain events out; a fake beside it."""
