"""From a GGUF file to streamed text: the engine's public names, and the order to read it in."""
