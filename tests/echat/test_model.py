"""The model: losses at the targets only, clips in their places, and nothing that depends on what else is in a batch."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import pytest
import torch

from overtone.echat.net import config
from overtone.echat.net.backbone import open_lm
from overtone.echat.net.config import adapter_length
from overtone.echat.net.encoders import open_encoder
from overtone.echat.net.model import Adapter, EChat
from tests.echat import small


def test_a_loss_is_the_mean_over_all_targets_and_its_parts_are_told_apart() -> None:
    model = small.model().eval()
    batch = small.batch(model.config)
    with torch.no_grad():
        out = model(batch)
        hidden = model.lm.base_model(inputs_embeds=model.embed(batch), attention_mask=batch.mask).last_hidden_state
        scores = torch.log_softmax(model.logits(hidden[:, :-1]), -1)
    goal = batch.targets[:, 1:]
    told = goal != -100
    losses = -scores[told].gather(1, goal[told][:, None])[:, 0]
    spoken = goal[told] >= model.vocab
    assert out.n_text == 6 + 4 and out.n_speech == 8
    assert torch.allclose(out.loss, losses.mean(), atol=1e-5)
    assert torch.allclose(out.text_loss, losses[~spoken].mean(), atol=1e-5)
    assert torch.allclose(out.speech_loss, losses[spoken].mean(), atol=1e-5)
    assert abs(float(out.loss) - math.log(260 + 21)) < 0.7  # a random model guesses among all ids


def test_targets_counted_before_give_the_same_loss() -> None:
    model = small.model().eval()
    batch = small.batch(model.config)
    first = model(batch).loss
    batch.target_at = (batch.targets != -100).view(-1).nonzero()[:, 0]  # type: ignore[attr-defined]
    assert torch.equal(first, model(batch).loss)


def test_where_only_the_end_is_padding_no_mask_is_needed() -> None:
    model = small.model().eval()
    batch = small.batch(model.config)
    first = model(batch).loss
    batch.holes = False  # type: ignore[attr-defined]
    assert torch.allclose(first, model(batch).loss, atol=1e-6)
    batch.mask[0, 1] = False
    assert torch.allclose(first, model(batch).loss, atol=1e-6)  # it was told that there is none
    batch.holes = True  # type: ignore[attr-defined]
    assert not torch.allclose(first, model(batch).loss, atol=1e-6)


def test_a_sequence_has_the_same_loss_alone_and_in_a_batch() -> None:
    model = small.model().eval()
    whole = small.batch(model.config)
    with torch.no_grad():
        for row in (0, 1):
            alone = small.with_row(whole, row)
            only = replace(whole, targets=whole.targets.clone())
            only.targets[1 - row] = -100
            assert torch.allclose(model(alone).loss, model(only).loss, atol=1e-5)


def test_adapter_outputs_stand_where_the_clip_is_heard_and_nowhere_else() -> None:
    model = small.model().eval()
    batch = small.batch(model.config)
    with torch.no_grad():
        x = model.embed(batch)
        heard, lengths = model.encode_audio(batch.wave, batch.wave_lengths)
        for row in (0, 1):
            n = int(lengths[row])
            assert n == int((batch.ids[row] == -1).sum())
            assert torch.equal(x[row, 3 : 3 + n], heard[row, :n])
        text = batch.ids >= 0
        assert torch.equal(x[text], model.embed_ids(batch.ids)[text])


def test_levelled_outputs_have_the_size_of_the_language_models_own_embeddings() -> None:
    config = small.model_config()
    config = msgspec.structs.replace(config, adapter=msgspec.structs.replace(config.adapter, level=True))
    model = EChat(config, open_encoder(config.encoder), open_lm(config.lm))
    model.adapter.out.weight.data *= 30
    batch = small.batch(config)
    heard, _ = model.encode_audio(batch.wave, batch.wave_lengths)
    own = model.lm.get_input_embeddings().weight
    assert torch.allclose(heard.square().mean(-1).sqrt(), own.square().mean().sqrt(), rtol=1e-3)


def test_marks_and_speech_codes_have_their_own_table() -> None:
    model = small.model()
    ids = torch.tensor([5, model.vocab, model.edge, model.edge + 2])
    x = model.embed_ids(ids)
    assert torch.equal(x[0], model.lm.get_input_embeddings().weight[5])
    assert torch.equal(x[1:], model.speech["embed"].weight[[0, 20, 22]])
    assert model.speech["embed"].weight.shape[0] == 23 and model.speech["head"].out_features == 21


def test_every_part_learns_from_what_is_heard() -> None:
    model = small.model()
    model.ctc = model.cues = 0.3
    model(small.batch(model.config)).loss.backward()
    silent = [name for name, p in model.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
    assert silent == []


def test_a_frozen_language_model_passes_the_gradient_on() -> None:
    model = small.model()
    model.lm.requires_grad_(False)
    model(small.batch(model.config)).loss.backward()
    assert model.adapter.out.weight.grad.abs().sum() > 0
    assert all(p.grad is None for p in model.lm.parameters())


def test_a_batch_without_clips_is_text_alone() -> None:
    model = small.model()
    ids = torch.tensor([[256, 10, 65, 66, 257]])
    none = torch.zeros(0, 1)
    batch = small.Batch(
        ids, ids.clone(), torch.ones_like(ids, dtype=torch.bool), none, torch.zeros(0, dtype=torch.long),
        torch.zeros(0, 2, dtype=torch.long), torch.zeros(0, 1, dtype=torch.long), torch.zeros(0, dtype=torch.long),
        torch.zeros(0, 5, dtype=torch.long),
    )  # fmt: skip
    batch.targets[:, :2] = -100
    model.ctc = model.cues = 0.5
    out = model(batch)
    assert (
        out.n_text == 3 and out.n_speech == 0 and out.ctc_loss == out.cue_loss == 0 and math.isfinite(out.loss.item())
    )


def test_words_are_found_by_ctc_over_the_words_of_the_batch_and_a_blank() -> None:
    model = small.model().eval()
    model.ctc = 1.0
    helpers = model.adapter.helpers
    torch.nn.init.normal_(helpers.blank.weight)
    batch = small.batch(model.config)
    batch.ctc_lengths[1] = 0  # not known: no part of it
    with torch.no_grad():
        got = model(batch).ctc_loss
        heard, lengths = model.encode_audio(batch.wave, batch.wave_lengths)
        heard = torch.nn.functional.rms_norm(heard, heard.shape[-1:])
        among = sorted(set(batch.ctc_ids.flatten().tolist()))
        words = heard @ model.lm.get_input_embeddings().weight[among].T
        scores = torch.log_softmax(torch.cat((helpers.blank(heard), words), -1), -1).transpose(0, 1)
        goal = torch.tensor([[1 + among.index(id_) for id_ in batch.ctc_ids[0].tolist()]])
        want = torch.nn.functional.ctc_loss(scores[:, :1], goal, lengths[:1], batch.ctc_lengths[:1], reduction="none")
    assert torch.allclose(got, want[0] / 5, atol=1e-4)


def test_at_first_a_blank_is_as_likely_as_a_thousand_words_together() -> None:
    model = small.model().eval()
    batch = small.batch(model.config)
    with torch.no_grad():
        heard, _ = model.encode_audio(batch.wave, batch.wave_lengths)
        heard = torch.nn.functional.rms_norm(heard, heard.shape[-1:])
        words = (heard @ model.lm.get_input_embeddings().weight.T).logsumexp(-1) + math.log(1000 / 260)
        assert (model.adapter.helpers.blank(heard)[..., 0] - words).abs().max() < 0.5


def test_labels_are_found_in_the_mean_of_a_clips_own_outputs() -> None:
    model = small.model().eval()
    model.cues = 1.0
    batch = small.batch(model.config)
    with torch.no_grad():
        both = model(batch).cue_loss
        alone = [model(small.with_row(batch, row)).cue_loss for row in (0, 1)]
        assert torch.allclose(both, (alone[0] + alone[1]) / 2, atol=1e-4)  # padding is no part of a clip
        batch.labels[1] = -1
        assert torch.allclose(model(batch).cue_loss, alone[0], atol=1e-4)  # nor is what is not known
        batch.labels[0] = -1
        assert model(batch).cue_loss == 0


def test_helper_losses_are_float32s_where_their_weights_are_gathered_in_bf16() -> None:
    model = small.model().eval()
    model.ctc = model.cues = 1.0
    torch.nn.init.normal_(model.adapter.helpers.blank.weight, std=0.1)
    batch = small.batch(model.config)
    with torch.no_grad():
        exact = model(batch)
    model.adapter.helpers.to(torch.bfloat16)
    near = model(batch)
    near.loss.backward()
    assert near.loss.dtype == torch.float32
    assert torch.allclose(near.ctc_loss, exact.ctc_loss, rtol=1e-2) and near.ctc_loss > 0
    assert torch.allclose(near.cue_loss, exact.cue_loss, rtol=1e-2) and near.cue_loss > 0
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.adapter.helpers.parameters())


def test_a_listening_model_never_asks_the_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small.model()
    model.ctc, model.cues, model.listen = 1.0, 0.5, True
    monkeypatch.setattr(model.lm.base_model, "forward", lambda **_: pytest.fail("asked"))
    out = model(small.batch(model.config))
    assert torch.isclose(out.loss, out.ctc_loss + 0.5 * out.cue_loss) and out.n_text == 0
    out.loss.backward()
    learning = {name.split(".")[0] for name, p in model.named_parameters() if p.grad is not None}
    assert learning == {"encoder", "adapter"}


def test_a_small_model_learns_one_batch_by_heart() -> None:
    model = small.model()
    model.ctc = 0.2
    batch = small.batch(model.config)
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(40):
        out = model(batch)
        optimiser.zero_grad()
        out.loss.backward()
        optimiser.step()
    assert out.text_loss < 0.2 and out.speech_loss < 0.2


def test_decoding_step_by_step_gives_the_logits_of_one_pass() -> None:
    model = small.model().eval()
    x = torch.randn(1, 7, 32)
    with torch.no_grad():
        whole, _ = model.step(x)
        first, cache = model.step(x[:, :4])
        for i in range(4, 7):
            last, cache = model.step(x[:, i : i + 1], torch.ones(1, i + 1, dtype=torch.bool), cache)
    assert whole.shape == (1, 260 + 21) and first.shape == whole.shape
    assert torch.allclose(last, whole, atol=1e-4)


def test_what_is_masked_is_not_attended_to() -> None:
    model = small.model().eval()
    x = torch.randn(1, 6, 32)
    mask = torch.ones(1, 6, dtype=torch.bool)
    mask[0, 3] = False
    other = x.clone()
    other[0, 3] += 5
    with torch.no_grad():
        assert (model.step(x, mask)[0] - model.step(other, mask)[0]).abs().max() < 1e-6
        assert (model.step(x)[0] - model.step(other)[0]).abs().max() > 1e-4


def test_activations_computed_again_change_no_gradient() -> None:
    grads = []
    for again in (False, True):
        model = small.model().train()
        if again:
            model.checkpointing()
        model(small.batch(model.config)).loss.backward()
        grads.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*grads, strict=True))


def test_the_adapter_makes_a_quarter_as_many_vectors_and_its_convolutions_look_back() -> None:
    torch.manual_seed(0)
    made = small.model_config()
    adapter = Adapter(made.adapter, 16, 0, 32).eval()
    for n in range(1, 20):
        out, lengths = adapter(torch.randn(1, n, 16), torch.tensor([n]))
        assert out.shape[1] == int(lengths[0]) == adapter_length(n) == math.ceil(math.ceil(n / 2) / 2)
    x = torch.randn(1, 16, 16)
    later = x.clone()
    later[:, 9:] += 1
    pair = []
    for a in (x, later):
        h = a.transpose(1, 2)
        for conv in adapter.convs:
            h = torch.nn.functional.gelu(conv(torch.nn.functional.pad(h, (2, 0))))
        pair.append(h)
    assert torch.equal(pair[0][:, :, :3], pair[1][:, :, :3])  # output 2 hears frames up to 8
    assert not torch.equal(pair[0][:, :, 3:], pair[1][:, :, 3:])


def test_what_is_known_of_a_whole_clip_is_added_after_the_words_and_nothing_at_first() -> None:
    torch.manual_seed(0)
    adapter = Adapter(small.model_config().adapter, 16, 8, 32).eval()
    states, lengths = torch.randn(1, 12, 24), torch.tensor([12])
    other = states.clone()
    other[..., 16:] += 1
    assert torch.equal(adapter(states, lengths)[0], adapter(other, lengths)[0])
    adapter(states, lengths)[0].sum().backward()
    assert adapter.beside.weight.grad.any()
    torch.nn.init.normal_(adapter.beside.weight)
    assert not torch.allclose(adapter(states, lengths)[0], adapter(other, lengths)[0], atol=1e-3)


def test_bf16_is_near_float32() -> None:
    model = small.model().eval()
    batch = small.batch(model.config)
    with torch.no_grad():
        exact = model(batch).loss
        with torch.autocast("cpu", torch.bfloat16):
            near = model(batch).loss
    assert abs(float(exact - near)) < 0.05


def test_a_language_model_of_another_vocabulary_is_refused() -> None:
    made, other = small.model_config(), small.model_config(vocab=300)
    with pytest.raises(ValueError, match="300 text ids"):
        EChat(made, open_encoder(made.encoder), open_lm(other.lm))


def test_a_voice_comes_before_the_words_and_has_positions_of_its_own() -> None:
    plain, voiced = small.model(), small.model(voice=4)
    assert config.positions(voiced.config, 16_000) == config.positions(plain.config, 16_000) + 4
    batch = small.batch(voiced.config)
    with torch.no_grad():
        heard, lengths = voiced.eval().encode_audio(batch.wave, batch.wave_lengths)
        alone, n = voiced.encode_audio(batch.wave[1:, : int(batch.wave_lengths[1])], batch.wave_lengths[1:])
    assert lengths.tolist() == [config.positions(voiced.config, int(size)) for size in batch.wave_lengths]
    assert torch.allclose(heard[1, : n[0]], alone[0, : n[0]], atol=1e-5)  # padding changes nothing


def test_labels_are_found_in_the_voice_alone_and_words_after_it() -> None:
    model = small.model(voice=2)
    batch = small.batch(model.config)
    heard, lengths = model.encode_audio(batch.wave, batch.wave_lengths)
    model.cues = model.ctc = 1.0
    ctc, cue = model._helpers(batch, heard, lengths)
    table, helpers = model.lm.get_input_embeddings().weight, model.adapter.helpers
    assert torch.allclose(cue, helpers.cues(heard[:, :2], torch.tensor([2, 2]), batch.labels))
    assert torch.allclose(ctc, helpers.words(heard[:, 2:], lengths - 2, batch.ctc_ids, batch.ctc_lengths, table))


def test_a_label_teaches_the_encoder_through_the_voice() -> None:
    model = small.model(voice=2)
    model.cues, model.listen = 1.0, True
    model(small.batch(model.config)).loss.backward()
    for part in (model.encoder.conv1, model.adapter.voice.hidden):  # type: ignore[union-attr]
        assert part.weight.grad is not None and part.weight.grad.any()  # type: ignore[union-attr]
