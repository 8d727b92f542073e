"""What a person does with conversations: ask, edit, answer again, go on, take apart, take away."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.chats.conversation import Conversation, Message, title_of
from app.chats.database import ChatDatabase
from app.errors import AppError
from app.services.constraint import constraint_of
from app.services.prompt import prompt_messages
from app.services.replay import differences, steps_of
from app.services.reply import Replies
from app.services.sources import by_hand
from app.services.token_log import joined
from app.strings import tr

_LIMITS = ("n_predict", "reasoning_budget", "stop")  # of a chat, as requests call them


class Chats(QObject):
    """The conversations on the disk, with the acts that change them.

    Every method may raise AppError; nothing was changed then.

    Signals:
        listed(): titles, order, pins or the trash changed.
        branched(int): another branch of this conversation is on show.
        added(int, Message): a message was stored at the end of the branch on show.
        trashed(int), restored(int): a conversation went to the trash, or came back.
        cut(int): messages of a conversation were taken away.
        replayed(int, bool): an answer was written again, and came out the same or not.
    """

    listed = Signal()
    branched = Signal(int)
    added = Signal(int, object)
    trashed = Signal(int)
    restored = Signal(int)
    cut = Signal(int)
    replayed = Signal(int, bool)

    def __init__(self, database: ChatDatabase, replies: Replies) -> None:
        super().__init__()
        self.database = database
        self.keeps_reasoning = False  # whether the model is shown its earlier thoughts again
        self._replies = replies
        replies.added.connect(self.added)

    # ------------------------------------------------------------ the list

    def start(self, **fields: Any) -> Conversation:
        """Store a new, empty conversation."""
        conversation = self.database.create_conversation(**fields)
        self.listed.emit()
        return conversation

    def change(self, conversation_id: int, **fields: Any) -> Conversation:
        """Change title, pin, model, params or draft of a conversation."""
        conversation = self.database.update_conversation(conversation_id, **fields)
        if fields.keys() & {"title", "pinned", "folder"}:
            self.listed.emit()
        return conversation

    def trash(self, conversation_id: int) -> None:
        """Move a conversation to the trash; an answer that runs is stopped."""
        self._replies.stop(conversation_id)
        self.database.trash(conversation_id)
        self.trashed.emit(conversation_id)
        self.listed.emit()

    def restore(self, conversation_id: int) -> None:
        """Take a conversation out of the trash."""
        self.database.restore(conversation_id)
        self.restored.emit(conversation_id)
        self.listed.emit()

    # ------------------------------------------------------------ messages

    def ask(self, conversation_id: int, text: str) -> None:
        """Add a question at the end of the branch on show, and let it be answered."""
        conversation = self.database.conversation(conversation_id)
        self._ask_below(conversation, conversation.leaf_id, text)

    def edit(self, message: Message, text: str) -> None:
        """Make another version of a message; a question is answered again, an answer stands."""
        conversation = self.database.conversation(message.conversation_id)
        if message.role == "user":
            self.show_branch(conversation.id, message.parent_id)
            try:
                self._ask_below(conversation, message.parent_id, text)
            except AppError:
                self.show_branch(conversation.id, conversation.leaf_id)
                raise
            return
        self.database.add_message(
            conversation.id, message.parent_id, message.role, text, edited=True
        )
        self.branched.emit(conversation.id)

    def regenerate(self, message: Message) -> None:
        """Answer again, as another version beside `message` (or below it, for a question)."""
        parent_id = message.id if message.role == "user" else message.parent_id
        conversation_id = message.conversation_id
        self.database.update_conversation(conversation_id, leaf_id=parent_id)
        self.branched.emit(conversation_id)
        self._answer(conversation_id, parent_id)

    def resume(self, message: Message) -> None:
        """Go on with an answer exactly where it stopped."""
        branch = self.database.branch(message.conversation_id, message.id)
        conversation = self.database.conversation(message.conversation_id)
        request = self._request(conversation, branch, goes_on=True)
        self._replies.resume(message, request, self._told(conversation))

    def replay(self, message: Message) -> list[str]:
        """Write an answer again with the seeds, values and changes of its record, as a version.

        Returns in sentences why the text may be another one; [] if it will be the same.
        """
        steps = steps_of(message.record)
        if not steps:
            return [tr("No seed is known of this answer, so it cannot be written again.")]
        conversation_id, parent_id = message.conversation_id, message.parent_id
        given = message.text[: steps[0]["start"]]
        if given:
            made = self.database.add_message(conversation_id, parent_id, message.role, given)
            self.branched.emit(conversation_id)
            self._take_step(made, steps, message.text)
        else:
            self.database.update_conversation(conversation_id, leaf_id=parent_id)
            self.branched.emit(conversation_id)
            self._take_step(message, steps, message.text, is_fresh=True)
        return differences(message.record, self._replies.engine)

    def _take_step(
        self, message: Message, steps: list[dict[str, Any]], wanted: str, is_fresh: bool = False
    ) -> None:
        """Do the first step of a replay: go on with `message`, or write one beside it."""
        if not steps:
            self.replayed.emit(message.conversation_id, message.text == wanted)
            return
        step, rest = steps[0], steps[1:]
        conversation = self.database.conversation(message.conversation_id)
        end = message.parent_id if is_fresh else message.id
        branch = self.database.branch(conversation.id, end) if end else []
        told = {**self._told(conversation), **step["told"]}
        prompt = prompt_messages(branch, told["system"], told["keeps_reasoning"], not is_fresh)
        request = {**step["options"], "prompt": prompt}

        def then(settled: Message) -> None:
            self._take_step(settled, rest, wanted)

        if is_fresh:
            self._replies.answer(conversation.id, message.parent_id, request, told, then)
        else:
            self._replies.resume(message, request, told, then)

    def go_on_from(self, message: Message, at: int, rival: Any) -> Message:
        """Begin another version of an answer that differs in one token, and go on from there.

        `at` is a place in what `Replies.tokens` knows of the answer, `rival` a candidate there.
        """
        log = self._replies.tokens
        known = log.of(message.id)
        if known is None:
            raise LookupError(f"no tokens are known of message {message.id}")
        ends = bool(rival.is_end)
        text = known.text_until(at) if ends else known.before + joined([*known.tokens[:at], rival])
        made = self.database.add_message(
            message.conversation_id, message.parent_id, message.role, text
        )
        log.branch(message.id, at, rival, made.id)
        self.branched.emit(message.conversation_id)
        if not ends:
            self.resume(made)
        return made

    def branch_from(self, message: Message) -> None:
        """Show the conversation up to `message`; the next question starts another branch."""
        self.database.update_conversation(message.conversation_id, leaf_id=message.id)
        self.branched.emit(message.conversation_id)

    def show_branch(self, conversation_id: int, leaf_id: int | None) -> None:
        """Show the branch that ends at a message."""
        self.database.update_conversation(conversation_id, leaf_id=leaf_id)
        self.branched.emit(conversation_id)

    def go_to_sibling(self, message: Message, step: int) -> None:
        """Show the version of a message that many steps away, with what follows it."""
        versions = self.database.siblings(message.id)
        place = [version.id for version in versions].index(message.id) + step
        if 0 <= place < len(versions):
            leaf = self.database.newest_leaf(versions[place].id)
            self.database.update_conversation(message.conversation_id, leaf_id=leaf)
            self.branched.emit(message.conversation_id)

    def trash_message(self, message: Message) -> None:
        """Take a message and what follows it out of the conversation; `restore_message` undoes."""
        self._replies.stop(message.conversation_id)
        self.database.trash_message(message.id)
        self.cut.emit(message.conversation_id)
        self.branched.emit(message.conversation_id)

    def restore_message(self, message: Message) -> None:
        """Bring back what `trash_message` took away."""
        self.database.restore_message(message.id)
        leaf = self.database.newest_leaf(message.id)
        self.database.update_conversation(message.conversation_id, leaf_id=leaf)
        self.branched.emit(message.conversation_id)

    def stop(self, conversation_id: int) -> None:
        """Stop the answer of a conversation and keep what came."""
        self._replies.stop(conversation_id)

    def limit(self, conversation_id: int, values: Mapping[str, Any]) -> None:
        """Let other limits hold in the running answer, if there is one."""
        self._replies.change(conversation_id, values)

    def end_reasoning(self, conversation_id: int) -> None:
        """Let the model come to its answer now, if it is thinking."""
        self._replies.end_reasoning(conversation_id)

    def change_sampling(
        self,
        conversation_id: int,
        values: Mapping[str, Any],
        sources: Mapping[str, list[str]] | None = None,
    ) -> None:
        """Use other sampling values: at once in a running answer, and in every later one.

        `sources` are those of all values of the chat from now on; else these were set by hand.
        """
        conversation = self.database.conversation(conversation_id)
        sampling = {**conversation.params.get("sampling", {}), **values}
        if sources is None:
            sources = {**conversation.params.get("sources", {}), **by_hand(values)}
        params = {**conversation.params, "sampling": sampling, "sources": dict(sources)}
        self.database.update_conversation(conversation_id, params=params)
        self._replies.change(conversation_id, values)

    def _ask_below(self, conversation: Conversation, parent_id: int | None, text: str) -> None:
        question = self.database.add_message(conversation.id, parent_id, "user", text)
        if not conversation.title:
            self.database.update_conversation(conversation.id, title=title_of(text))
        self.listed.emit()
        self.added.emit(conversation.id, question)
        self._answer(conversation.id, question.id)

    def _answer(self, conversation_id: int, parent_id: int | None) -> None:
        conversation = self.database.conversation(conversation_id)
        branch = self.database.branch(conversation_id, parent_id) if parent_id else []
        request = self._request(conversation, branch)
        self._replies.answer(conversation_id, parent_id, request, self._told(conversation))

    def prompt_of(self, message: Message) -> list[dict[str, str]]:
        """Return the conversation up to a message as the next question will show it the model."""
        conversation = self.database.conversation(message.conversation_id)
        branch = self.database.branch(conversation.id, message.id)
        prompt: list[dict[str, str]] = self._request(conversation, branch)["prompt"]
        return prompt

    def _request(
        self, conversation: Conversation, branch: list[Message], goes_on: bool = False
    ) -> dict[str, Any]:
        """Return the keyword arguments of the CompletionRequest that goes on with a branch."""
        params = conversation.params
        system = params.get("system", "")
        sampling = dict(params.get("sampling", {}))
        if params.get("seed") is not None:
            sampling["seed"] = params["seed"]
        request: dict[str, Any] = {
            "prompt": prompt_messages(branch, system, self.keeps_reasoning, goes_on),
            "params": sampling,
        }
        request |= {name: params[name] for name in _LIMITS if params.get(name) is not None}
        return request | constraint_of(params)

    def _told(self, conversation: Conversation) -> dict[str, Any]:
        """Return what the record of an answer keeps besides its request."""
        params = conversation.params
        return {
            "sources": params.get("sources", by_hand(params.get("sampling", {}))),
            "system": params.get("system", ""),
            "keeps_reasoning": self.keeps_reasoning,
        }
