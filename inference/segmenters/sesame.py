"""SESAME in process: a LISA on LLaVA-1.5 that may deny the premise of a question.

A denial is a reply without [SEG], so its result is the failure `no_mask_token` with the reply as text. The published
numbers were made in batches whose padding is attended to; here padding is masked, so that a question's answer does not
depend on its neighbours, and a figure may differ a little from the published one.
"""

from __future__ import annotations

from inference.segmenters.lisa import Lisa


class Sesame(Lisa):
    """Segmenter over a SESAME checkpoint's folder."""

    name = "sesame"
    conversation = "llava_v1_user"
