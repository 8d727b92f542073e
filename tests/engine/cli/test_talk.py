"""run and chat over the scripted client: what reaches stdout, stopping, failing, ending."""

import json

import pytest

import engine
from engine.cli import chat, commands, run


@pytest.fixture
def fake(monkeypatch):
    """Give run and chat a scripted client; yields it for changes of the script."""
    client = engine.FakeClient(reply="Hello there, friend.")
    for command in (run, chat):
        monkeypatch.setattr(command, "open_client", lambda options, progress: client)
    yield client
    client.close()


def typed(monkeypatch, *lines):
    """Answer input() with lines; a line that is an exception class is raised."""
    left = iter(lines)

    def answer(prompt=""):
        line = next(left, EOFError)
        if isinstance(line, type):
            raise line
        return line

    monkeypatch.setattr("builtins.input", answer)


def test_run_writes_the_text_and_nothing_else(fake, capsys):
    assert commands.main(["run", "--model", "m", "--prompt", "hi", "-n", "99"]) == 0
    assert capsys.readouterr() == ("Hello there, friend.\n", "")
    assert fake.requests[0].prompt == "hi"
    assert fake.requests[0].n_predict == 99


def test_run_puts_a_chat_into_messages_and_options_into_the_request(fake, capsys):
    words = ["run", "--model", "m", "--prompt", "hi", "--chat", "--system", "be kind"]
    assert commands.main([*words, "--temp", "0.25", "--top-k", "7", "--seed", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["text"], found["stop_type"]) == ("Hello there, friend.", "eos")
    assert found["timings"]["n_prompt"] == 24
    request = fake.requests[0]
    assert [dict(message) for message in request.prompt] == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hi"},
    ]
    assert request.params == engine.SamplingParams(temperature=0.25, top_k=7, seed=5)


def test_run_tells_a_failure_in_one_line(fake, capsys):
    fake.fail_next(engine.TemplateError("The template\nfailed in line 3."), after_tokens=1)
    assert commands.main(["run", "--model", "m", "--prompt", "hi"]) == 1
    assert capsys.readouterr().err == "error: The template failed in line 3.\n"


def test_chat_remembers_the_talk_until_new(fake, capsys, monkeypatch):
    typed(monkeypatch, "one", "", "two", "/new", "three")
    assert commands.main(["chat", "--model", "m", "--system", "s"]) == 0
    roles = [[message["role"] for message in request.prompt] for request in fake.requests]
    assert roles == [
        ["system", "user"],
        ["system", "user", "assistant", "user"],
        ["system", "user"],
    ]
    assert fake.requests[1].prompt[2]["content"] == "Hello there, friend."
    assert capsys.readouterr().out.count("Hello there, friend.") == 3


def test_chat_goes_on_after_a_failed_answer(fake, capsys, monkeypatch):
    fake.fail_next(engine.MachineError("No memory."))
    typed(monkeypatch, "one", "two")
    assert commands.main(["chat", "--model", "m"]) == 0
    assert "error: No memory." in capsys.readouterr().err
    assert len(fake.requests[1].prompt) == 1


def test_ctrl_c_stops_the_answer_and_keeps_what_came(fake, capsys, monkeypatch):
    fake.tokens_per_second = 0
    fake.advance(6)

    def interrupting(events):
        for event in events:
            yield event
            if isinstance(event, engine.TextDelta):
                raise KeyboardInterrupt

    plain = engine.CompletionHandle.__iter__
    state = {"first": True}

    def iterate(handle):
        if state.pop("first", False):
            return interrupting(plain(handle))
        return plain(handle)

    monkeypatch.setattr(engine.CompletionHandle, "__iter__", iterate)
    submit = fake.submit

    def submit_and_go(request):
        handle = submit(request)
        fake.advance(6)
        return handle

    monkeypatch.setattr(fake, "submit", submit_and_go)
    typed(monkeypatch, "one", KeyboardInterrupt)
    assert commands.main(["chat", "--model", "m"]) == 0
    out, err = capsys.readouterr()
    assert "[stopped]" in out
    assert out.startswith("Hello")
    assert "Ctrl-D" in err


def test_chat_prints_nothing_that_steers_the_terminal(fake, capsys, monkeypatch):
    fake.reply = "a\x1b[31mred\x07"
    typed(monkeypatch, "one")
    assert commands.main(["chat", "--model", "m"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_an_interrupted_run_ends_with_the_usual_code(fake, monkeypatch):
    def interrupted(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.CompletionHandle, "__iter__", interrupted)
    assert commands.main(["run", "--model", "m", "--prompt", "hi"]) == 130
