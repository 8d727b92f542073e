"""A branch of a conversation as the messages that the model is shown."""

from collections.abc import Sequence

from app.chats.conversation import Message
from app.services.reasoning import split_reasoning


def prompt_messages(
    branch: Sequence[Message], system: str, keeps_reasoning: bool, goes_on: bool = False
) -> list[dict[str, str]]:
    """Return role and content of each message, the system prompt first if there is one.

    What the model thought is left out unless it is kept, but for the last answer when it goes on.
    """
    messages = [{"role": "system", "content": system}] if system.strip() else []
    for message in branch:
        text = message.text
        is_last = goes_on and message is branch[-1]
        if message.role == "assistant" and not (is_last or keeps_reasoning):
            text = split_reasoning(text)[1]
        if text or message.role == "user":
            messages.append({"role": message.role, "content": text})
    return messages
