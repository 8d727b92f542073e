"""Conversations as stored things: a tree of messages each, in one database that loses nothing.

conversation.py  Conversation and Message as plain values, the title of a question
database.py      ChatDatabase: every write its own transaction
opening.py       opening a file: create, migrate, or set a damaged one aside
migrations.py    the numbered steps of the schema
salvage.py       what can still be read from a damaged database
search.py        full text search over titles and messages
export.py        Markdown and JSON out, our JSON in
"""

from app.chats.conversation import Conversation, Message, title_of
from app.chats.database import ChatDatabase
from app.chats.search import Hit

__all__ = ["ChatDatabase", "Conversation", "Hit", "Message", "title_of"]
