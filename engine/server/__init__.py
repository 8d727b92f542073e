"""Many requests, one model: tasks, slots, batches, and the one thread that owns the context.

The trace of a request:
1. `engine.client.client` puts a Task with a Mailbox into `queue`. From here on: the engine thread.
2. `loop` wakes and makes token ids of text or messages, with what `loaded` says about the model.
3. `admission` picks a slot and how much of the prompt memory already holds, its own or another's;
   `shift` moves pieces that come again later.
4. `scheduler` builds one `batch`: a token of each generating slot, then prompt pieces.
5. `Context.decode` turns it into logits; what does not fit is halved and tried again.
6. `settle` lets each slot sample from its row; `emit` makes text of the token; limits end it.
7. `events` go through the `mailbox` to the caller; the `slot` is free again and keeps its memory.
"""
