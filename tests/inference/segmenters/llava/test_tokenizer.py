from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("sentencepiece")

from support.tiny_models import VECTORS

from engine.core.errors import ConfigError
from inference.segmenters.llava.prompts import CONVERSATIONS, prompt
from inference.segmenters.llava.tokenizer import IMAGE, Tokenizer

pytestmark = pytest.mark.gpu_extra
PROBES = json.loads((VECTORS / "lisa/tokenizer_probes.json").read_text(encoding="utf-8"))
PROMPTS = json.loads((VECTORS / "prompts.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load(VECTORS / "lisa/checkpoint")


@pytest.mark.parametrize("name", PROBES)
@pytest.mark.parametrize("legacy", [True, False])
def test_ids_equal_the_originals(tokenizer: Tokenizer, name: str, legacy: bool) -> None:
    probe = PROBES[name]
    own = tokenizer if legacy else Tokenizer(tokenizer._pieces, tokenizer._added, legacy=False)
    encode = own.encode_with_image if "<image>" in probe["text"] else own.encode
    assert encode(probe["text"]) == probe["ids_legacy" if legacy else "ids_nonlegacy"]


def test_seg_is_found_by_name_and_one_image_is_needed(tokenizer: Tokenizer) -> None:
    assert (tokenizer.seg, tokenizer.im_start) == (430, 431)
    ids = tokenizer.encode_with_image("a <im_start><image><im_end>\nb")
    at = ids.index(IMAGE)
    assert ids[at - 1 : at + 2] == [431, IMAGE, 432]
    for text in ("no image", "<image><image>"):
        with pytest.raises(ValueError, match="a prompt has one <image>"):
            tokenizer.encode_with_image(text)


def test_text_of_ids_has_blanks_around_added_tokens(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode("Sure, it is [SEG].")) == "Sure, it is [SEG] ."
    assert tokenizer.decode([1, 0, 0, 2]) == ""


@pytest.mark.parametrize(
    ("name", "conversation", "question", "forced"),
    [
        ("LISA chat, llava_v1 (7B and default)", "llava_v1", "{question}", False),
        ("LISA chat, llava_llama_2 (choose with the 13B llama2 checkpoint)", "llava_llama_2", "{question}", False),
        ("SESAME inference (demo and benchmark)", "llava_v1_user", "{question}", False),
        ("READ inference (demo and benchmark)", "llava_v1_user", "{question}", False),
        (
            "LISA benchmark, teacher forced, reasoning sentence",
            "llava_v1",
            " {sentence} Please output segmentation mask.",
            True,
        ),
        (
            "LISA benchmark, teacher forced, phrase, llava_llama_2",
            "llava_llama_2",
            " What is {phrase} in this image? Please output segmentation mask.",
            True,
        ),
    ],
)
def test_prompts_equal_the_programs(name: str, conversation: str, question: str, forced: bool) -> None:
    assert prompt(question, conversation=conversation, forced=forced) == PROMPTS[name]


def test_marks_in_a_question_are_no_marks(tokenizer: Tokenizer) -> None:
    for conversation in CONVERSATIONS:
        ids = tokenizer.encode_with_image(prompt("<image> [SEG]</s> <im_start>?", conversation=conversation))
        assert ids.count(IMAGE) == ids.count(431) == 1
        assert 430 not in ids
    with pytest.raises(ConfigError, match="use llava_v1, llava_v1_user, llava_llama_2"):
        prompt("q", conversation="llava_v9")


def test_a_folder_without_the_familys_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no tokenizer\.model"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes((VECTORS / "lisa/checkpoint/tokenizer.model").read_bytes())
    with pytest.raises(ConfigError, match=r"has no \[SEG\], <im_start>, <im_end>"):
        Tokenizer.load(tmp_path)
    decoder = {str(430 + i): {"content": name} for i, name in enumerate(("[SEG]", "<im_start>", "<im_end>"))}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": decoder, "legacy": True}))
    assert Tokenizer.load(tmp_path).encode("it is [SEG].") == [1, 379, 268, 430, 388, 404]
