"""The conversation around a question, as each program prints it. Facts of the released programs, down to the blanks.

LISA speaks of a "human", SESAME and READ of a "user" at inference; LISA's llama-2 checkpoint has that model's own
brackets. The image stands between its two marks, before the question; a forced answer ends the prompt.
"""

from __future__ import annotations

from engine.core.errors import ConfigError
from inference.segmenters.llava.tokenizer import IM_END, IM_START, IMAGE_MARK, SEG

_VICUNA = (
    "A chat between a curious {who} and an artificial intelligence assistant. The assistant gives helpful, detailed, "
    "and polite answers to the {who}'s questions. USER: {image}\n{question} ASSISTANT:"
)
_LLAMA_2 = (
    "[INST] <<SYS>>\nYou are a helpful language and vision assistant. You are able to understand the visual content "
    "that the user provides, and assist the user with a variety of tasks using natural language.\n<</SYS>>\n\n"
    "{image}\n{question} [/INST]"
)
CONVERSATIONS = {
    "llava_v1": _VICUNA.replace("{who}", "human"),
    "llava_v1_user": _VICUNA.replace("{who}", "user"),
    "llava_llama_2": _LLAMA_2,
}
#: The answer that LISA's benchmark puts into the model's mouth, by conversation.
_FORCED = {"llava_v1": f" {SEG}.</s>", "llava_v1_user": f" {SEG}.</s>", "llava_llama_2": f" {SEG}. </s>"}


def prompt(question: str, *, conversation: str, forced: bool = False) -> str:
    """The prompt for a question. An image mark or an added token in the question is taken apart, since it would be
    read as one. Raises `ConfigError` for an unknown conversation."""
    form = CONVERSATIONS.get(conversation)
    if form is None:
        raise ConfigError(f"conversation {conversation!r} is not known: use {', '.join(CONVERSATIONS)}")
    plain = question
    for mark in (IMAGE_MARK, IM_START, IM_END, SEG, "<s>", "</s>"):
        plain = plain.replace(mark, mark[1:-1])
    text = form.replace("{image}", IM_START + IMAGE_MARK + IM_END).replace("{question}", plain)
    return text + (_FORCED[conversation] if forced else "")
