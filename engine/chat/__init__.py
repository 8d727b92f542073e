"""Messages to prompts: the chat template of a model, run where it can do no harm.

Reading order: `message` (what programs send), `template` (the way in), `capabilities` (what a
template can show), `formats` (for models without one), `output` (what the answer is made of).
Below them the language: `sandbox`, over `methods`, `operators`, `filters`, `marked` (who wrote a
character), `meter` (how much is too much).
"""

from engine.chat.capabilities import Capabilities
from engine.chat.formats import FORMATS, detect
from engine.chat.template import ChatTemplate

__all__ = ["FORMATS", "Capabilities", "ChatTemplate", "detect"]
