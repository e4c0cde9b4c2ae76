"""Any causal language model of transformers: text in, text out, and the likelihood of given texts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from overtone.workers import _hf, causal_model, model_source, protocol
else:
    import _hf
    import causal_model
    import model_source
    import protocol

# For a tokenizer without a chat template: the form in which 'overtone train text' writes turns.
FALLBACK = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{{ '<|im_start|>assistant\\n' }}"  # as expressions: a template drops a line break at its end
)
END = "<|im_end|>"
THOUGHT = "thought: "  # a test checks that it equals that of `schema`
LONGEST = {"choose": 32}  # tokens of an answer by task
OTHER_TASKS = 256


class CausalText(_hf.HfEngine):
    """A causal language model with its chat template, greedy unless a temperature is set."""

    rate = 16_000  # it hears nothing, but the wire needs a rate

    def start(self, path: str, shared: dict[str, Any], weights: dict[str, Any]) -> None:
        try:
            self.model, self.tokenizer = causal_model.open_causal(path, self.dtype)
        except (MemoryError, torch.OutOfMemoryError) as error:
            raise model_source.BadSource(f"{path} does not fit into memory ({error}); try dtype=bfloat16") from None
        self.template = getattr(self.tokenizer, "chat_template", None)
        self.switches: dict[str, str] = getattr(self.tokenizer, "thinking_switches", {})
        self.think = str(self.options.get("think") or ("off" if self.switches else ""))
        if self.think and self.think not in self.switches:
            known = ", ".join(self.switches) or "none: this model has no switch for thoughts"
            raise model_source.BadSource(f"think={self.think} is unknown; one of {known}")
        self.room = getattr(self.model.config.get_text_config(), "max_position_embeddings", None) or sys.maxsize

    def load(self, options: dict[str, Any]) -> dict[str, Any]:
        facts = super().load(options)
        chat = "its own template" if self.template else "ChatML, because the tokenizer has no template"
        facts |= {"think": self.think} if self.think else {}
        return {**facts, "likelihoods": True, "chat": chat}

    def generate(self, items: list[protocol.Item]) -> list[protocol.Answer]:
        """Answer items that have continuations one at a time, and all other items in batches by task."""
        out: dict[int, protocol.Answer] = {}
        written: dict[str, list[int]] = {}
        for number, item in enumerate(items):
            if item.continuations:
                with torch.inference_mode():
                    out[number] = self.weigh(item)
            else:
                written.setdefault(item.task, []).append(number)
        for numbers in written.values():
            out.update(zip(numbers, super().generate([items[n] for n in numbers]), strict=True))
        return [out[number] for number in range(len(items))]

    def answer(self, items: list[protocol.Item]) -> list[protocol.Answer]:
        longest = int(self.options.get("max_tokens") or LONGEST.get(items[0].task, OTHER_TASKS))
        rows = [self.prompt(item.messages, longest) for item in items]
        width = max(map(len, rows))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in rows], device=self.device)
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=self.device)
        settings = {**self.settings(), "max_new_tokens": longest, "pad_token_id": self.tokenizer.pad_token_id or 0}
        if not self.template:
            settings |= {"stop_strings": [END], "tokenizer": self.tokenizer}
        made = self.model.generate(input_ids=ids, attention_mask=mask, **settings)
        ends = _hf.end_tokens(self.model, self.tokenizer)
        answers = self.read(made, {"input_ids": ids, "attention_mask": mask}, ends, None)
        for answer in answers:
            if not self.template and END in answer.text:
                answer.text, answer.finish = answer.text.partition(END)[0].strip(), "stop"
        return answers

    def finish(self, row: torch.Tensor, ends: set[int], prompt_usage: dict[str, Any]) -> protocol.Answer:
        """Return the answer in one row. A thought before the answer becomes a note. If the thought does not end, the
        text is empty."""
        marks = getattr(self.tokenizer, "thought_ids", ())
        ids = [int(n) for n in row]
        if not marks or not set(marks) & set(ids):
            return super().finish(row, ends, prompt_usage)
        close = ids.index(marks[1]) if marks[1] in ids else len(ids)
        thought = self.tokenizer.decode(ids[:close], skip_special_tokens=True).strip()
        answer = super().finish(row[close + 1 :], ends, prompt_usage)
        answer.usage["output_tokens"] += min(close + 1, len(ids))
        answer.notes = [f"{THOUGHT}{thought}"] if thought else []
        return answer

    def prompt(self, messages: list[tuple[str, list[str | bytes]]], longest: int) -> list[int]:
        """Return the ids of a chat up to the start of the reply. Raises Refused if the reply would not fit."""
        chat = []
        for role, parts in messages:
            texts = [part for part in parts if isinstance(part, str)]
            if len(texts) < len(parts):
                raise protocol.Refused("rejected", "this model hears no sound; use it as cascade?lm=DIR")
            chat.append({"role": role, "content": "\n".join(texts)})
        if self.think and chat and chat[-1]["role"] == "user":
            chat[-1]["content"] += self.switches[self.think]
        ids = self.encode(self.written(chat))
        if len(ids) + longest > self.room:
            raise protocol.Refused("too_large", f"{len(ids)} tokens and {longest} of a reply; it holds {self.room}")
        return ids

    def written(self, chat: list[dict[str, str]]) -> str:
        """Return a chat as text, formatted by the template. If the template has no system turns, they become part of
        the first user turn."""
        given = {"add_generation_prompt": True, "tokenize": False, "chat_template": self.template or FALLBACK}
        try:
            return str(self.tokenizer.apply_chat_template(chat, **given))
        except Exception:
            if chat[0]["role"] != "system" or len(chat) < 2:
                raise
        joined = {"role": chat[1]["role"], "content": f"{chat[0]['content']}\n\n{chat[1]['content']}"}
        return str(self.tokenizer.apply_chat_template([joined, *chat[2:]], **given))

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    # ── likelihoods ─────────────────────────────────────────────────────────────────────────────────────────────────
    def weigh(self, item: protocol.Item) -> protocol.Answer:
        """Return the log-likelihood of each alternative in every step, and the text of the most likely alternatives."""
        totals = self.steps(item.messages, item.continuations)
        chosen = [step[_likeliest(found)] for step, found in zip(item.continuations, totals, strict=True)]
        priors = self.steps(item.without, item.continuations, chosen) if item.without else []
        weighed = [
            [
                {"total": total, "tokens": tokens, "prior": priors[n][k][0] if priors else None}
                for k, (total, tokens) in enumerate(step)
            ]
            for n, step in enumerate(totals)
        ]
        usage = {"input_tokens": len(self.prompt(item.messages, 0))}
        return protocol.Answer(" ".join(chosen), usage=usage, likelihoods=weighed)

    def steps(
        self, messages: list[tuple[str, list[str | bytes]]], steps: list[list[str]], chosen: list[str] | None = None
    ) -> list[list[tuple[float, int]]]:
        """Return the log-likelihood and the number of tokens of each alternative, for every step.

        After each step, one alternative is appended to the prompt: the one in `chosen`, or else the most likely one per
        token.
        """
        prompt, said = self.prompt(messages, 0), ""
        out: list[list[tuple[float, int]]] = []
        for number, step in enumerate(steps):
            before = prompt + (self.encode(said) if said else [])
            options = [self.encode(text) for text in step]
            if not all(options):
                raise protocol.Refused("rejected", "an empty text has no likelihood; give every option a text")
            if len(before) + max(map(len, options)) > self.room:
                raise protocol.Refused("too_large", f"{len(before)} tokens before the options; it holds {self.room}")
            out.append(list(zip(self.totals(before, options), map(len, options), strict=True)))
            said += f"{chosen[number] if chosen else step[_likeliest(out[-1])]} "
        return out

    def totals(self, prompt: list[int], options: list[list[int]]) -> list[float]:
        """Return the summed log-probability of each option's tokens after the prompt, all options as one batch."""
        width = max(map(len, options))
        rows = [prompt + option + [0] * (width - len(option)) for option in options]
        mask = [[1] * (len(prompt) + len(option)) + [0] * (width - len(option)) for option in options]
        logits = self.model(
            input_ids=torch.tensor(rows, device=self.device),
            attention_mask=torch.tensor(mask, device=self.device),
            logits_to_keep=width + 1,  # from the prompt's last token, which predicts the options' first
            use_cache=False,
        ).logits
        chances = logits[:, -width - 1 : -1].float().log_softmax(-1)  # (options, width, vocabulary)
        return [
            float(chances[n, torch.arange(len(ids)), torch.tensor(ids)].double().sum()) for n, ids in enumerate(options)
        ]


def _likeliest(found: list[tuple[float, int]]) -> int:
    return max(range(len(found)), key=lambda k: found[k][0] / found[k][1])


if __name__ == "__main__":
    _hf.quiet()
    sys.exit(protocol.serve(CausalText()))
