"""Many requests, one model: tasks, slots, batches, and the one thread that owns the context.

The trace of a request:
1. `client.py` puts a Task with a Mailbox into `queue.py`. From here on: the engine thread.
2. `loop.py` wakes; `prompt.py` makes token ids of text or messages.
3. `admission.py` picks a slot and how much of the prompt its memory already holds.
4. `scheduler.py` builds one batch: a token of each generating slot, then prompt pieces.
5. `Context.decode` turns the batch into logits; a failing batch is halved and tried again.
6. Each slot samples from its row; `emit.py` makes text of the token and applies the limits.
7. `events.py` values go through the Mailbox to the caller; `slot.py` releases the slot.
"""
