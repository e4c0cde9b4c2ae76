"""The one parser of SPECs: where it splits, what it decodes, what it refuses and never shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overtone.errors import UsageError
from overtone.spec import Spec, parse_spec


def test_splits_at_the_first_colon_and_the_last_question_mark() -> None:
    spec = parse_spec("worker:a:b?c/d?model=x%3Fy&batch=2")
    assert (spec.kind, spec.name) == ("worker", "a:b?c/d")
    assert spec.options == {"model": "x?y", "batch": "2"}


def test_a_kind_alone_is_a_spec() -> None:
    assert parse_spec("cascade") == Spec("cascade", "", {})
    assert parse_spec("cascade?hear=acoustic").options == {"hear": "acoustic"}


@given(
    st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True),
    st.text(st.characters(codec="utf-8", exclude_characters="?"), max_size=12),
    st.dictionaries(st.sampled_from(["voice", "model", "temperature", "x"]), st.text(max_size=12), max_size=3),
)
def test_what_is_written_is_read_back(kind: str, name: str, options: dict[str, str]) -> None:
    spec = Spec(kind, name, options)
    try:
        assert parse_spec(str(spec)) == spec
    except UsageError as error:
        assert "secret" in str(error) or "password" in str(error) or "NUL" in str(error)


def test_generation_keys_are_the_same_for_every_kind() -> None:
    spec = parse_spec("x:y?temperature=0.5&max_tokens=7&seed=1&top_p=0.9&timeout=3&speech=no")
    found = spec.typed({})
    assert found == {"temperature": 0.5, "max_tokens": 7, "seed": 1, "top_p": 0.9, "timeout": 3.0, "speech": "no"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x:y?temprature=1", "did you mean 'temperature'"),
        ("x:y?max_tokens=many", "max_tokens must be a whole number, not 'many'"),
        ("x:y?speech=loud", "speech must be auto, yes or no"),
        ("x:y?seed", "is not key=value"),
        ("x:y?seed=1&seed=2", "is given twice"),
        ("", "not a SPEC"),
        (":x", "not a SPEC"),
        ("x:y?base_url=ftp://h/", "not an http"),
        ("x:y?base_url=http://user:pass@h/", "user name or password"),
        ("x:y?base_url=http://h/%3Fapi_key=abc", "contains a key"),
        ("x:y?api_key=abc", "looks like a secret"),
        ("x:y?token=abc", "looks like a secret"),
        ("x:y?voice=sk-abcdef", "looks like a secret"),
        ("x:y?pwd=abc", "looks like a secret"),
        ("x:y?accesstoken=abc", "looks like a secret"),
        ("x:y?AWS_ACCESS_KEY_ID=abc", "looks like a secret"),
        ("x:y?BASE_URL=http://u:abc@h/", "user name or password"),
        ("x:y?voice=http://u:abc@h/", "user name or password"),
        ("x:http://u:abc@h/", "user name or password"),
        ("x:y?base_url=http://u:abc@h/?temperature=0", "user name or password"),
        ("x:y?base_url=http://h/v1?temperature=0", "two question marks"),
        ("x:y?base_url=http://u%253aabc%2540h/", "user name or password"),
        ("x:y?base_url=http://abc%40h/", "user name or password"),
        ("x:y?base_url=http://h/%23token=abc", "contains a key"),
        ("x:y?base_url=http://h/%3Fa=1;sig=abc", "contains a key"),
        ("x:y?base_url=http://[abc", "not an http"),
        ("x:y?base_url=http://h:abc/v1", "the port after h must be a number from 1 to 65535"),
        ("x:y?base_url=http://127.0.0.1:99999/v1", "the port after 127.0.0.1 must be a number from 1 to 65535"),
        ("x:y?base_url=localhost:8000/v1", "must begin with http:// or https://"),
        ("x:y?base_url=http:///v1", "has no host"),
        ("x:y?base_url=http://h/v1%0aX:abc", "not an http"),
        ("x:y?mistyped=abc", "unknown key 'mistyped'"),
    ],
)
def test_a_wrong_spec_says_what_is_wrong_and_shows_no_secret(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        parse_spec(text).typed({})
    assert "abc" not in str(caught.value)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-f4k3f4k3F4K3",
        "sk-ant-api03-f4k3f4k3",
        "AIzaSyF4k3f4k3f4k3",
        "hf_f4k3f4k3f4k3f4k3f4k3",
        "ghp_f4k3f4k3f4k3",
        "gsk_f4k3f4k3f4k3",
        "xai-f4k3f4k3f4k3",
        "f4k3F4K3f4k3F4K3f4k3F4K3f4k3F4K3",
    ],
)
@pytest.mark.parametrize(
    "text",
    ["{}", "openai:{}", "openai:models/{}", "openai:gpt-4o?voice={}", "openai:gpt-4o?{}=1", "openai:x?base_url=http://h/{}",
     "command:./model.sh?args=--key {}"],
)  # fmt: skip
def test_a_key_in_any_part_is_refused_and_not_shown(key: str, text: str) -> None:
    for written in (key, key.replace("-", "%2D").replace("_", "%5F")):
        with pytest.raises(UsageError, match="looks like a secret") as caught:
            parse_spec(text.format(written))
        assert "f4k3" not in str(caught.value).lower() and "F4K3" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "openai:gpt-4o-audio-preview-2025-06-03",
        "openai:ft:gpt-4o-2024-08-06:my-org:custom-suffix:7p4lURel",
        "worker:hf_transformers?model=Qwen/Qwen2-Audio-7B-Instruct-GPTQ-Int4-0123456789",
        "worker:x?model=/home/me/.cache/hub/snapshots/0a095e96f5a1ea1ba6c2b2d2a5f0a0d9b8c7e6f5",
        "openai:x?revision=0a095e96f5a1ea1ba6c2b2d2a5f0a0d9b8c7e6f5",
        "openai:disk-space-risk-aware-model",
        "recordings:/tmp/pytest-of-root/pytest-257/test_a_voice_of_recordings_is_asked0?female=a",
    ],
)
def test_names_of_models_and_folders_are_not_taken_for_keys(text: str) -> None:
    assert str(parse_spec(text)) == text
