"""The memory of conversations in files, on real models: little is written, nothing read twice."""

import pytest

import engine
from tests.make import models

STORY = [{"role": "user", "content": "Tell me a story about a mill by the river."}]


def opened(path, folder, **options):
    return engine.EngineClient(path, n_slots=1, n_ctx=2048, snapshot_dir=folder, **options)


def ask(client, prompt, **options):
    request = engine.CompletionRequest(prompt, temperature=0, ignore_eos=True, **options)
    return client.submit(request).result()


def said(text):
    return {"role": "assistant", "content": text}


def test_an_answer_adds_little_to_the_file(tmp_path):
    path, long = tmp_path / "chat.safetensors", [1000 + i * 7 % 3000 for i in range(1200)]
    with opened(models.smollm2(), tmp_path) as client:
        first = ask(client, long, n_predict=40)
        told = [*long, *first.tokens]
        whole = client.keep(told, path).result(60).n_written
        assert whole == path.stat().st_size
        memory = client._loop.loaded.context.memory
        page = sum(pool.page_bytes for pool in memory.pools)
        more = ask(client, [*told, 1000, 1001], n_predict=40)
        kept = client.keep([*told, 1000, 1001, *more.tokens], path).result(60)
        assert kept.n_written <= 3 * page + client.info.n_vocab * 4 + 16_384 < whole / 8
        expected = ask(client, [*told, 1000, 1001, *more.tokens, 1002], n_predict=20)
    with opened(models.smollm2(), tmp_path) as client:
        client.wait_until_ready()
        again = ask(client, [*told, 1000, 1001, *more.tokens, 1002], n_predict=20)
        assert again.timings.n_read == 2
        assert again.tokens == expected.tokens


@pytest.mark.parametrize("n_answer", [30, 560])
def test_windows_answer_again_after_a_restart_without_reading(tmp_path, n_answer):
    path = tmp_path / "chat.safetensors"
    question = [*STORY, said("Once."), {"role": "user", "content": "Go on. " * 250}]
    with opened(models.gemma3(), tmp_path) as client:
        first = ask(client, question, n_predict=n_answer)
        kept = client.keep([*question, said(first.text)], path).result(60)
        assert kept.n_tokens >= first.timings.n_prompt
    with opened(models.gemma3(), tmp_path) as client:
        client.wait_until_ready()
        known = client.known_prefix(question)
        assert (known.where, known.n_tokens) == ("disk", known.n_prompt)
        again = ask(client, question, n_predict=30)
        assert (again.timings.n_read, again.tokens) == (0, first.tokens[:30])
        told = [*client._loop.loaded.encode(question), *again.tokens]
        second = ask(client, [*told, *range(1000, 1020)], n_predict=10)
        assert second.timings.n_read == 21  # the answer's last token was sampled, not read
        client.keep([*told, *range(1000, 1020), *second.tokens], path).result(60)
    with opened(models.gemma3(), tmp_path) as client:
        client.wait_until_ready()
        other = [*told, *range(2000, 2030)]
        edited = ask(client, other, n_predict=1, n_probs=3)
        assert edited.timings.n_read == 31
        if n_answer < 100:
            whole = ask(client, other, n_predict=1, n_probs=3, cache_prompt=False)
            assert whole.timings.n_cached == 0
            assert edited.tokens == whole.tokens
            assert edited.probs[0].logprob == pytest.approx(whole.probs[0].logprob, abs=0.1)
        client._loop.loaded.context.memory.check_integrity()


def test_what_was_given_away_is_refused_by_another_model(tmp_path):
    gift = tmp_path / "gift.safetensors"
    with opened(models.smollm2(), None) as client:
        first = ask(client, STORY, n_predict=10)
        client.export_memory([*STORY, said(first.text)], gift).result(60)
    with opened(models.smollm2(), None, type_k="q8_0", type_v="q8_0") as client:
        with pytest.raises(engine.StateFileError, match="type of K and V is “f16/f16”, here"):
            client.import_memory(gift, tmp_path / "kept").result(60)
    with opened(models.gemma3(), None) as client:
        with pytest.raises(engine.StateFileError, match="its model is “.*”, here it is “Gemma"):
            client.import_memory(gift, tmp_path / "kept").result(60)
    with opened(models.smollm2(), None) as client:
        client.import_memory(gift, tmp_path / "kept").result(60)
        again = ask(client, STORY, n_predict=10)
        assert (again.timings.n_read, again.tokens) == (0, first.tokens)


def test_a_long_question_asked_otherwise_reads_only_what_is_new_with_windows():
    told = [*STORY, said("It stands by the river. " * 20)]
    with opened(models.gemma3(), None) as client:
        long = [*told, {"role": "user", "content": "Go on. " * 400}]
        assert ask(client, long, n_predict=1).timings.n_read > 1200
        short = ask(client, [*told, {"role": "user", "content": "Who owns it?"}], n_predict=1)
        assert short.timings.n_read < 20
