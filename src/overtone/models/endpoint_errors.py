"""How endpoints word their errors: the message in a body, whose fault it is, and what a user can do about it.

A status alone is not enough. Servers report a wrong key, a wrong model or missing audio support with 400 and 500, which
also mean "this one request is wrong". docs/how-to/servers.md lists the servers; tests/models/server_answers has their
bodies.
"""

from __future__ import annotations

import re

import msgspec

MAX_CHARS = 4000  # of a message that the patterns search
_WRONG_KEY = re.compile(
    r"(?i)no connected db|authentication ?error|no api key passed"
    r"|(invalid|incorrect|expired|malformed) (proxy server )?(token|api[ _-]?key)\b"
)
_WRONG_MODEL = re.compile(
    r"(?i)\b(invalid|unknown|no such) model\b|\bmodel\b.{0,120}\b(does not exist|not found|is not available)\b"
    r"|\bserver is pinned to\b"
)
_NO_AUDIO = re.compile(
    r"(?i)\baudio\W+inputs?\W+(is|are) not supported|not support\W+(\w+\W+){0,2}audio\W+inputs?|not a multimodal model"
    r"|at most 0 audio|support\w* input audio"
)
_UNKNOWN_PART = re.compile(
    r"(?i)unknown part type|unsupported content\[\]\.type|invalid value: .?input_audio"
    r"|(?s:\bvalidation errors?\b.*'type': '(input_audio|audio_url)')"  # sglang 0.5.3 lists what it knows, and the body
)
_NO_DECODER = re.compile(r"(?i)install vllm\[audio\]")
_PERHAPS_NO_DECODER = re.compile(r"(?i)invalid or unsupported audio file")
_TOO_LONG = re.compile(r"(?i)\bcontext (length|window|size)\b")
_ABOUT_ITEM = re.compile(
    r"(?i)\btoo (long|short|large|small|many tokens)\b|context (length|window|size)|\bduration\b|\b(decod|corrupt)\w*"
    r"|\bempty audio\b|\b(exceeds?|longer than|shorter than)\b|content.?(policy|management|filter)"
    r"|may be provided in one prompt"
)
# vLLM ends a message about a prompt that is too long with "(parameter=input_tokens, value=…)".
_ABOUT_PARAMETER = re.compile(r"(?i)\b(max_\w*tokens|temperature|top_p|seed|modalit|voice|parameter(?!=input_))")
_LOADING = re.compile(r"(?i)\bloading\b|\b(not|isn.t) (yet )?ready\b|\bstarting( up)?\b|\bwarming\b")
_NO_REASON = re.compile(r"(?i)(internal server error)?[.\s]*")

UNKNOWN_PART = "the server does not know this kind of audio part"


class Problem(msgspec.Struct):
    """The message and the code in the body of an error."""

    message: str = ""
    code: str | int | None = None

    @property
    def text(self) -> str:
        return self.message[:MAX_CHARS]

    @property
    def wrong_key(self) -> bool:
        return _WRONG_KEY.search(self.text) is not None

    @property
    def wrong_model(self) -> bool:
        return _WRONG_MODEL.search(self.text) is not None

    @property
    def no_audio(self) -> str:
        """Why this server cannot take a clip at all, and what to do, or ""."""
        if _NO_DECODER.search(self.text):
            return "the server cannot read audio; on its machine, run pip install 'vllm[audio]' and start it again"
        if _UNKNOWN_PART.search(self.text):
            return UNKNOWN_PART
        return "the server takes no audio for this model" if _NO_AUDIO.search(self.text) else ""

    @property
    def too_long(self) -> bool:
        """Whether the request does not fit into the model's context."""
        return _TOO_LONG.search(self.text) is not None

    @property
    def about_item(self) -> bool:
        """Whether the message blames this request's clip or length, rather than a parameter of all requests."""
        return _ABOUT_ITEM.search(self.text) is not None and not _ABOUT_PARAMETER.search(self.text)

    @property
    def loading(self) -> bool:
        return _LOADING.search(self.text) is not None

    @property
    def advice(self) -> str:
        """Advice for an error whose message gives no usable reason, or ""."""
        if _PERHAPS_NO_DECODER.search(self.text):
            return "the clip is a valid WAV; vLLM 0.22 and older say this if pip install 'vllm[audio]' is missing there"
        return "" if _NO_REASON.fullmatch(self.text) is None else "the server gives no reason; its own log has it"


def problem_of(body: bytes) -> Problem:
    """Read the message and code from the body of an error, in any of the usual formats. Otherwise the message is its
    text."""
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body.decode("utf-8", "replace")
        last = text.rfind(">") + 1  # no tag is closed after it; searching there would take quadratic time
        return Problem(message=re.sub(r"<[^>]*>", " ", text[:last]) + text[last:])
    if isinstance(tree, list) and tree:
        tree = tree[0]
    inner = tree.get("error", tree) if isinstance(tree, dict) else tree
    if isinstance(inner, str):
        return Problem(message=inner)
    if isinstance(inner, dict):
        message = inner.get("message") or inner.get("detail") or inner.get("error")
        if message:
            code = inner.get("code") if isinstance(inner.get("code"), str | int) else None
            text = message if isinstance(message, str) else msgspec.json.encode(message).decode()
            return Problem(message=text, code=code)
    return Problem(message=body.decode("utf-8", "replace"))
