"""What a model says, taken apart while it grows: reasoning, content, and calls of tools.

Reading order: `parser` (the way in), `syntax` (how a template writes calls), then one module for
each family: `json_calls`, `tagged_calls`, `literal_calls`, `harmony`. `json_text` reads JSON that
is not finished yet.
"""

from engine.chat.output.parser import OutputParser, read_output
from engine.chat.output.parts import Call, Output
from engine.chat.output.syntax import OutputSyntax, find_syntax

__all__ = ["Call", "Output", "OutputParser", "OutputSyntax", "find_syntax", "read_output"]
