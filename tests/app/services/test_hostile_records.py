"""Records come from files too: whatever stands in one, a chat opens, Info shows, nothing raises."""

import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engine
from app.chats.record import sound_record
from app.services.figures import rows, summary
from app.services.replay import earlier_runs, steps_of
from app.ui.theme import theme
from tests.make import window as make

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
KEYS = (
    *("timings", "model", "seed", "sampling", "limits", "context", "sources", "system", "runs"),
    *("changes", "start", "end", "n_run", "n_cached", "stop_type", "thought_s", "n_reread", "mark"),
)
CHANGE = st.fixed_dictionaries({"at": JSON, "values": JSON}) | JSON
TIMING = ("n_prompt", "n_cached", "n_read", "read_tps", "n_generated", "generate_tps")
TIMINGS = st.dictionaries(st.sampled_from([*TIMING, "first_token_ms"]), JSON)
VALUES = {"timings": TIMINGS | JSON, "changes": st.lists(CHANGE, max_size=2) | JSON}
RUN = st.fixed_dictionaries({}, optional={key: VALUES.get(key, JSON) for key in KEYS})
RECORD = st.builds(
    lambda run, runs: run | runs,
    RUN,
    st.just({}) | st.builds(lambda runs: {"runs": runs}, st.lists(RUN | JSON, max_size=2)),
)


@settings(max_examples=150, deadline=None)
@given(RECORD)
def test_whatever_a_record_holds_it_can_be_shown_and_asked(record):
    record = sound_record(record)
    told = rows(record)
    assert all(isinstance(part, str) for row in told for part in row)
    assert isinstance(summary(record), str)
    assert isinstance(earlier_runs(record), list)
    for step in steps_of(record):
        assert isinstance(step["start"], int) and step["start"] >= 0
        try:
            engine.CompletionRequest("x", **step["options"])
        except engine.EngineError:
            pass  # told in words by the answer that fails


def test_what_an_answer_writes_is_sound(tmp_path, qtbot, qapp):
    with make.services(tmp_path, make.Clients()) as services:
        services.engine.load(tmp_path / "fake.gguf")
        qtbot.waitUntil(lambda: services.engine.state == "ready")
        chat = services.chats.start(params={"sampling": {"top_k": 3}, "n_predict": 2})
        services.chats.ask(chat.id, "Hello")
        qtbot.waitUntil(lambda: not services.replies.running)
        services.chats.resume(services.database.branch(chat.id)[-1])
        qtbot.waitUntil(lambda: not services.replies.running)
        message = services.database.branch(chat.id)[-1]
        row = services.database._connection.execute(
            "SELECT record FROM messages WHERE id = ?", (message.id,)
        ).fetchone()
    stored = json.loads(row[0])
    assert sound_record(stored) == stored == message.record and len(stored["runs"]) == 1


def test_a_chat_with_a_damaged_record_opens_and_shows_info(tmp_path, qtbot, qapp):
    with make.services(tmp_path, make.Clients()) as services:
        chat = services.database.create_conversation()
        odd = {"timings": {"n_prompt": "many"}, "runs": 7, "seed": "x", "error": [1], "mine": 1}
        made = services.database.add_message(chat.id, None, "assistant", "Hi", **odd)
        assert services.database.message(made.id).record == {"mine": 1}


PARAMS = ("sampling", "sources", "constraint", "constraint_draft", "system", "stop", "seed")


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(params=st.fixed_dictionaries({}, optional=dict.fromkeys((*PARAMS, "n_predict"), JSON)))
def test_a_chat_with_damaged_params_opens(window_of_damage, params):
    window = window_of_damage
    made = window.services.chats.start(params=params)
    window.chats.open(made.id)
    assert window.pane.conversation_id == made.id
    window.act("chat.start")


@pytest.fixture(scope="module")
def window_of_damage(tmp_path_factory, qapp):
    theme.start(qapp, "light", 1.0)
    with make.window(tmp_path_factory.mktemp("damage"), make.Clients()) as shown:
        until = time.monotonic() + 20
        while not shown.sampling.panel.cards and time.monotonic() < until:
            qapp.processEvents()
            time.sleep(0.01)
        yield shown
