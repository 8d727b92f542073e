"""Compare: one message goes to every pane, each with its own chat and its own values."""

from app.strings import tr
from app.ui.guard import Guard
from app.ui.panes import Panes


def send_to_all(panes: Panes, guard: Guard) -> None:
    """Send the text of the current pane in all panes; one that still writes is left out.

    What stands unsent in the other panes stays there.
    """
    current = panes.current
    text = current.composer.text().strip()
    if not text:
        guard.say(tr("Write a message first; it goes to every pane."))
        return
    free = [p for p in panes.all() if not p.is_running() and not p.composer.blocked]
    if current not in free:
        return
    current.composer.set_text("")
    for pane in free:
        pane.send(text)
        pane.composer.flush_draft()
    n_left = len(panes.all()) - len(free)
    if n_left:
        guard.say(tr("Panes that are still writing were left out: {n}.", n=n_left))
