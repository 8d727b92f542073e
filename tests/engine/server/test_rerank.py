"""Reranking through the queue: by the model's head, or by asking it of each document."""

import pytest

import engine
from engine.client.client import EngineClient
from engine.client.loading import _rank_encoder
from engine.errors import ContextFullError, InternalError
from tests.fakes.model import BOS, EOS, ByteVocab, answering, loaded, one_hot

DOCUMENTS = ["it is here in the mill", "no", "it may be somewhere else"]


def client_of(logits_of=answering(b"ok"), n_slots=2, rank_prompt=None, **options):  # noqa: B008
    model = loaded(logits_of, **options)
    model.rank_prompt = rank_prompt
    return EngineClient.over(lambda progress: model, n_slots), model.context


def head_prompt(query, document):
    return [BOS, *query.encode(), EOS, *document.encode(), EOS]


def test_a_head_scores_query_and_document_together():
    client, context = client_of(rank_prompt=head_prompt)
    seen = []
    context.embed_piece = lambda tokens, start: seen.append(list(tokens))
    with client:
        ranked = client.rerank("where", DOCUMENTS)
        assert client.rerank("where", DOCUMENTS, top_n=1) == ranked[:1]
        assert client.rerank("where", []) == []
        assert context.decodes == []
    # The scripted head scores by length.
    assert [one.index for one in ranked] == [2, 0, 1]
    assert [one.score for one in ranked] == [
        len("where") + len(DOCUMENTS[i]) + 3 for i in (2, 0, 1)
    ]
    assert seen[:3] == [head_prompt("where", document) for document in DOCUMENTS]


def test_without_a_head_the_model_is_asked_and_the_query_is_read_once():
    def judge(tokens):
        text = bytes(token for token in tokens if token < 256)
        begun = {b"Y": "e", b"e": "s", b"N": "o"}.get(text[-1:])
        return one_hot(ord(begun or ("Y" if b"mill" in text else "N")))

    client, context = client_of(judge, n_batch=512)
    with client:
        ranked = client.rerank("where is it", DOCUMENTS * 4)
        assert [one.index % 3 for one in ranked[:4]] == [0] * 4
        assert ranked[0].score > 0.99 > 0.01 > ranked[-1].score
        n_read = client.metrics().prompt_tokens_total
        assert client.rerank("where is it", []) == []
    question = "Judge whether the document answers the query."
    assert n_read < 3 * (len(question) + 150) + 12 * 60


def test_what_fails_fails_its_ranking_only():
    client, context = client_of(n_ctx=512)
    with client:
        with pytest.raises(ContextFullError):
            client.rerank("where", ["short", "x" * 600])
        context.before_decode = lambda *_: 1 / 0
        with pytest.raises(InternalError):
            client.rerank("where", DOCUMENTS)
        context.before_decode = lambda *_: None
        assert client.submit(engine.CompletionRequest("a>", temperature=0)).result().text == "ok"
        assert all(slot.state == "idle" for slot in client.slots())


def test_closing_ends_a_ranking():
    client, context = client_of()
    errors = []

    def closing(tokens, seq_ids):
        client._loop.queue.close()

    context.before_decode = closing
    try:
        client.rerank("where", DOCUMENTS)
    except InternalError as error:
        errors.append(str(error))
    client.close()
    assert "closed" in errors[0]


class Vocab(ByteVocab):
    def __init__(self, sep, **switches):
        from types import SimpleNamespace

        self.ids = SimpleNamespace(eos=EOS, sep=sep)
        self.switches = SimpleNamespace(**switches)

    def tokenize(self, text, parse_special=True, add_special=True):
        start = [BOS] if add_special and self.switches.add_bos else []
        if parse_special and text.startswith("<mark>"):
            return [*start, 258, *text.removeprefix("<mark>").encode()]
        return [*start, *text.encode()]


@pytest.mark.parametrize(
    ("sep", "switches", "expected"),
    [
        (258, (True, True, True), [BOS, *b"q", EOS, 258, *b"d", EOS]),
        (258, (True, False, True), [BOS, *b"q", 258, *b"d"]),
        (-1, (False, True, True), [*b"q", EOS, *b"d", EOS]),
        (-1, (False, False, False), [*b"q", *b"d"]),
    ],
)
def test_the_prompt_of_a_head(sep, switches, expected):
    names = ("add_bos", "add_eos", "add_sep")
    encode = _rank_encoder(Vocab(sep, **dict(zip(names, switches, strict=True))), None)
    assert encode("q", "d") == expected


def test_a_template_of_the_model_is_used_and_texts_are_only_text():
    vocab = Vocab(-1, add_bos=True, add_eos=False, add_sep=False)
    encode = _rank_encoder(vocab, "<mark>query {query}<mark>document {document}")
    tokens = encode("<mark>{document}", "d")
    expected = [BOS, 258, *b"query ", *b"<mark>{document}", 258, *b"document ", *b"d"]
    assert tokens == expected
