"""Grammar and budget around a chain: who is asked, in which order, and what each one hears."""

import numpy as np
import pytest

from engine.client.constraints import Reasoning, make_matcher
from engine.errors import GrammarError, RequestError
from engine.params import CompletionRequest
from engine.sampling import SamplerChain
from engine.server.constrained import ConstrainedSampler
from tests.fakes.model import EOS, N_VOCAB, ByteVocab

THINK, ANSWER = ord("{"), ord("}")  # as if they were tags


class Vocab(ByteVocab):
    eot, suppressed = EOS, ()

    def tokenize(self, text, parse_special=True, add_special=False):
        return list(text.encode())


VOCAB = Vocab()


class Chain:
    """Takes the likeliest token and notes what it was shown and told."""

    stages = ()

    def __init__(self):
        self.shown, self.accepted = [], []

    def apply(self, logits):
        self.shown.append(set(np.flatnonzero(np.isfinite(logits)).tolist()))
        if not self.shown[-1]:
            raise RequestError("Every token is forbidden here.")
        return int(np.argmax(logits))

    def accept(self, token):
        self.accepted.append(token)

    def accept_all(self, tokens):
        self.accepted.extend(tokens)

    def update(self, **changes):
        self.changes = changes


def row(*ranking):
    """Logits with these tokens (or letters) on top, the first the likeliest."""
    logits = np.zeros(N_VOCAB, np.float32)
    for i, token in enumerate(reversed(ranking)):
        logits[ord(token) if isinstance(token, str) else token] = i + 1
    return logits


def matcher(**options):
    return make_matcher(CompletionRequest(**options), VOCAB)


def budget(n_tokens, prompt=()):
    reasoning = Reasoning("", VOCAB)
    reasoning.start, reasoning.end = [THINK], [ANSWER]
    return reasoning.budget(n_tokens, prompt)


def say(sampler, *rows):
    said = []
    for logits in rows:
        token = sampler.apply(logits)
        sampler.accept(token)
        said.append(token)
    return said


def test_the_chain_is_asked_again_only_where_its_choice_does_not_fit():
    chain = Chain()
    sampler = ConstrainedSampler(chain, matcher(regex="[ab]+c"))
    logits = row("x", "b", "a")
    assert say(sampler, row("a"), logits, row("c")) == [*b"abc"]
    assert [len(shown) for shown in chain.shown] == [N_VOCAB, N_VOCAB, 3, N_VOCAB]
    assert np.isfinite(logits).all()
    assert chain.accepted == [*b"abc"]
    assert sampler.must_end


def test_with_the_grammar_first_the_chain_sees_only_what_fits():
    chain = Chain()
    sampler = ConstrainedSampler(chain, matcher(regex="[ab]+c"), grammar_first=True)
    assert say(sampler, row("x", "b")) == [ord("b")]
    assert chain.shown == [{ord("a"), ord("b")}]


def test_the_end_comes_only_when_the_grammar_is_complete():
    sampler = ConstrainedSampler(Chain(), matcher(regex="ab?"))
    assert not sampler.must_end
    assert say(sampler, row(EOS, "a"), row(EOS, "b")) == [ord("a"), EOS]
    assert sampler.must_end


def test_a_budget_is_spent_and_the_end_is_forced():
    chain = Chain()
    sampler = ConstrainedSampler(chain, None, budget(2))
    assert say(sampler, row(THINK), row("x"), row("y"), row("z"), row("w")) == [
        THINK,
        *b"xy",
        ANSWER,
        *b"w",
    ]
    assert chain.shown[3] == {ANSWER}


def test_a_prompt_that_opened_the_reasoning_counts_from_the_first_token():
    sampler = ConstrainedSampler(Chain(), None, budget(1, [1, THINK, 2, ANSWER, THINK, 5]))
    assert say(sampler, row("x"), row("y")) == [ord("x"), ANSWER]
    sampler = ConstrainedSampler(Chain(), None, budget(1, [1, THINK, 2, ANSWER, 5]))
    assert say(sampler, row("x"), row("y")) == [*b"xy"]


def test_it_is_told_whether_the_text_stands_inside_a_thought():
    opened = ConstrainedSampler(Chain(), None, budget(-1, [THINK, ord("a")]))
    assert opened.is_reasoning
    say(opened, row("b"), row(ANSWER))
    assert not opened.is_reasoning
    closed = ConstrainedSampler(Chain(), None, budget(-1, [THINK, ord("a"), ANSWER]))
    assert not closed.is_reasoning and not ConstrainedSampler(Chain()).is_reasoning
    say(closed, row(THINK))
    assert closed.is_reasoning


def test_reasoning_ends_on_request():
    sampler = ConstrainedSampler(Chain(), None, budget(-1))
    assert say(sampler, row(THINK), row("x")) == [THINK, ord("x")]
    sampler.limit_reasoning(5)
    assert say(sampler, row("y")) == [ord("y")]
    sampler.limit_reasoning(0)
    assert say(sampler, row("z"), row("w")) == [ANSWER, ord("w")]
    ConstrainedSampler(Chain()).limit_reasoning(0)
    sampler = ConstrainedSampler(Chain(), None, budget(1))
    assert say(sampler, row(THINK)) == [THINK]
    sampler.limit_reasoning(-1)  # it ended at the next token, as if the time were over
    assert bytes(say(sampler, row("x"), row("y"), row("z"))) == b"xyz"


def test_a_lazy_grammar_sleeps_until_its_word_and_while_the_model_reasons():
    lazy = matcher(regex="go[0-9]+", grammar_lazy=True, grammar_triggers=["go"])
    sampler = ConstrainedSampler(Chain(), lazy, budget(-1))
    said = say(
        sampler,
        *(row(letter) for letter in "ab{go"),  # the word does not count inside
        row("x"),
        row("}"),
        row("g"),
        row("o"),
        row("x", "7"),
    )
    assert bytes(said) == b"ab{gox}go7"


def test_what_a_lazy_grammar_waits_for_may_be_in_the_end_of_the_reasoning():
    lazy = matcher(regex="}[0-9]", grammar_lazy=True, grammar_triggers=["}"])
    sampler = ConstrainedSampler(Chain(), lazy, budget(1))
    said = say(sampler, row("{"), row("x"), row("y"), row("z", "4"))
    assert bytes(said) == b"{x}4"


@pytest.mark.parametrize("n_tokens", [-1, 2, 0])
def test_the_form_of_an_answer_begins_after_the_reasoning_that_the_prompt_began(n_tokens):
    """Models that think would have had to think in JSON."""
    schema, opened = matcher(json_schema={"enum": [7]}), budget(n_tokens, [THINK])
    sampler = ConstrainedSampler(Chain(), schema, opened, after_reasoning=True)
    rows = {-1: (row("x"), row("7"), row("}")), 2: (row("x"), row("7"), row("y")), 0: (row("y"),)}
    said = say(sampler, *rows[n_tokens], row("z", "7"))
    assert bytes(said) == {-1: b"x7}7", 2: b"x7}7", 0: b"}7"}[n_tokens]
    assert schema.may_end


def test_without_reasoning_in_the_prompt_the_form_begins_at_once():
    for opened in (None, budget(5), budget(5, [THINK, 1, ANSWER])):
        schema = matcher(json_schema={"enum": [7]})
        sampler = ConstrainedSampler(Chain(), schema, opened, after_reasoning=True)
        assert say(sampler, row(THINK, "x", "7")) == [ord("7")]
    sampler = ConstrainedSampler(Chain(), matcher(grammar='root ::= "7"'), budget(5, [THINK]))
    assert say(sampler, row("x", "7")) == [ord("7")]  # one's own grammar is for all of the text


def test_a_grammar_and_a_budget_that_contradict_each_other_leave_nothing():
    sampler = ConstrainedSampler(Chain(), matcher(regex="a+"), budget(0, [THINK]))
    with pytest.raises(RequestError, match="forbidden"):
        sampler.apply(row("a"))


def test_everything_else_reaches_the_chain():
    chain = Chain()
    sampler = ConstrainedSampler(chain, matcher(regex="a"))
    sampler.accept_all([5, 6])
    sampler.update(temperature=1)
    assert (chain.accepted, chain.changes) == ([5, 6], {"temperature": 1})
    assert not sampler.must_end


def test_grammars_schemas_and_patterns_are_read_from_a_request():
    assert matcher() is None
    for options in (
        {"grammar": 'root ::= "a" | "b"'},
        {"json_schema": {"enum": [1]}},
        {"json_schema": '{"enum": [1]}'},
        {"json_schema": {}},
        {"regex": "a|1|{"},
        {"grammar": 'root ::= "a"', "json_schema": {"type": "nonsense"}},
    ):
        assert matcher(**options).mask().any()
    assert not matcher(json_schema={}).accepts(ord("1"))  # an object


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"grammar": 'root ::= "a'}, "grammar"),
        ({"json_schema": {"type": "nonsense"}}, "“json_schema”"),
        ({"json_schema": "{"}, "“json_schema”"),
        ({"regex": "("}, "pattern"),
        ({"regex": "a", "grammar": 'root ::= "a"'}, "not to both"),
        ({"grammar_lazy": True}, "needs a"),
        ({"regex": "a", "grammar_lazy": True}, "trigger"),
        ({"regex": "a", "grammar_lazy": True, "grammar_triggers": [{"type": "odd"}]}, "trigger"),
    ],
)
def test_what_cannot_be_honoured_is_refused(options, says):
    with pytest.raises(GrammarError, match=says):
        matcher(**options)


def test_the_real_chain_draws_twice_where_it_is_asked_twice():
    params = CompletionRequest(temperature=1, seed=5, samplers=["temperature"]).params
    free, held = SamplerChain(params, VOCAB), SamplerChain(params, VOCAB)
    sampler = ConstrainedSampler(held, matcher(regex="[a-c]{50}"))
    rng = np.random.default_rng(0)
    n_asked_twice = 0
    for _ in range(20):
        logits = rng.normal(size=N_VOCAB).astype(np.float32)
        logits[ord("a") : ord("d")] += 5
        expected = free.apply(logits)
        if not ord("a") <= expected < ord("d"):
            masked = np.full_like(logits, -np.inf)
            masked[ord("a") : ord("d")] = logits[ord("a") : ord("d")]
            expected = free.apply(masked)
            n_asked_twice += 1
        token = sampler.apply(logits)
        assert token == expected
        sampler.accept(token)
        free.accept(token)
    assert 0 < n_asked_twice < 20


def test_tags_are_found_in_a_template():
    reasoning = Reasoning("{% if x %}<think>\n{{ y }}</think>{% endif %}", VOCAB)
    assert (bytes(reasoning.start), bytes(reasoning.end)) == (b"<think>", b"</think>")
    assert Reasoning("no thoughts", VOCAB).budget(5, ()) is None
