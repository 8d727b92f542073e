"""The queries that walk the tree of messages; a child's id is always above its parent's."""

# From a leaf (first value) up to the root; "parent < id" ends even a tree that damage bent.
BRANCH = """
WITH RECURSIVE up(id, parent_id) AS (
    SELECT id, parent_id FROM messages WHERE id = ? AND conversation_id = ? AND trashed IS NULL
    UNION ALL
    SELECT m.id, m.parent_id FROM messages m JOIN up ON m.id = up.parent_id AND m.id < up.id
)
SELECT {columns} FROM messages WHERE id IN (SELECT id FROM up) ORDER BY id
"""

CHILDREN = """
SELECT {columns} FROM messages
WHERE conversation_id = ? AND parent_id IS ? AND trashed IS NULL ORDER BY id
"""

_DOWN = """
WITH RECURSIVE down(id) AS (
    SELECT ?
    UNION ALL
    SELECT m.id FROM messages m JOIN down ON m.parent_id = down.id AND m.id > down.id
    WHERE m.trashed IS NULL
)
"""

NEWEST_LEAF = _DOWN + "SELECT max(id) FROM down"

# Values: a message, when. What was hidden before keeps its own time, and so stays hidden later.
HIDE = (
    _DOWN + "UPDATE messages SET trashed = ? WHERE id IN (SELECT id FROM down) AND trashed IS NULL"
)

# Value: a message. Shows it and what was hidden together with it.
SHOW = _DOWN.replace("IS NULL", "= (SELECT trashed FROM messages WHERE id = ?)") + (
    "UPDATE messages SET trashed = NULL WHERE id IN (SELECT id FROM down)"
)
