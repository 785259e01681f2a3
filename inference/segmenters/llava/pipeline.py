"""Questions about images: from pixels and text to the states at [SEG], and from those to mask logits.

The state that belongs to a [SEG] is the one from which it was predicted, one place before the token itself. States
are those after the final norm. Generation is greedy; the original computes every step anew without a cache, which
gives the same numbers, only slower. Several questions at a time are padded on the left, and the padding is masked: the
originals' batches attend to theirs, which changes their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.core.geometry import Image
from inference.segmenters.llava.model import Networks
from inference.segmenters.llava.tokenizer import IMAGE
from segmentation.embedders.clip_image import pixel_values
from segmentation.mask_models.sam_model import full_size, resized

#: New tokens after which generation stops by itself (the chat programs allow 512; answers are a sentence).
MAX_NEW_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Spoken:
    """What the language model said and thought: `ids` of prompt and reply (the image as one id), `states` (places,
    width) after the final norm for all of them but the last id, the image as its many places."""

    ids: list[int]
    prompt_length: int
    states: Any
    logits: Any

    @property
    def new_ids(self) -> list[int]:
        return self.ids[self.prompt_length :]


class Pipeline:
    """The chain of networks. All methods run without gradients when called under `segmentation.device.inference`."""

    def __init__(self, networks: Networks) -> None:
        self.networks = networks

    def image_vectors(self, image: Image) -> Any:
        """The picture as the language model sees it: (patches, width)."""
        n = self.networks
        pixels = pixel_values(image, side=n.tower_side)[None].to(device=n.device, dtype=n.dtype)
        states = n.tower(pixel_values=pixels, output_hidden_states=True).hidden_states
        # The first place is the class token.
        return n.projector(states[n.tower_layer][0, 1:].to(n.dtype))

    def image_features(self, image: Image) -> Any:
        """SAM's features of the picture: (1, channels, h, w)."""
        import torch

        n = self.networks
        values = torch.from_numpy(resized(image, side=n.sam_side)).permute(2, 0, 1).to(n.device, torch.float32)
        return n.sam.image_encoder(n.sam.preprocess(values)[None].to(n.dtype))

    def views(self, images: Sequence[Image]) -> list[tuple[Any, Any]]:
        """Both views of each picture, (vectors, features), made together."""
        if len(images) == 1:
            return [(self.image_vectors(images[0]), self.image_features(images[0]))]
        import torch

        n = self.networks
        pixels = torch.stack([pixel_values(image, side=n.tower_side) for image in images])
        states = n.tower(pixel_values=pixels.to(device=n.device, dtype=n.dtype), output_hidden_states=True)
        vectors = n.projector(states.hidden_states[n.tower_layer][:, 1:].to(n.dtype))
        values = [torch.from_numpy(resized(image, side=n.sam_side)).permute(2, 0, 1) for image in images]
        padded = torch.stack([n.sam.preprocess(value.to(n.device, torch.float32)) for value in values])
        features = n.sam.image_encoder(padded.to(n.dtype))
        return [(vectors[place], features[place : place + 1]) for place in range(len(images))]

    def embed(self, ids: list[int], vectors: Any) -> Any:
        """Ids and picture as vectors (places, width), the picture in place of its id."""
        import torch

        n = self.networks
        at = ids.index(IMAGE)
        before, after = (torch.tensor(part, device=n.device, dtype=torch.long) for part in (ids[:at], ids[at + 1 :]))
        table = n.language.embed_tokens
        return torch.cat([table(before), vectors, table(after)])

    def generate(self, ids: list[int], vectors: Any, *, limit: int = MAX_NEW_TOKENS) -> Spoken:
        """Greedy continuation of a prompt until the end mark or `limit` new tokens."""
        return self.generate_many([(ids, vectors)], limit=limit)[0]

    def generate_many(self, prompts: Sequence[tuple[list[int], Any]], *, limit: int = MAX_NEW_TOKENS) -> list[Spoken]:
        """Greedy continuations of several prompts (ids, picture) until each has its end mark or `limit` new tokens."""
        import torch
        from transformers import DynamicCache

        n = self.networks
        cache = DynamicCache(config=n.language.config)
        step, mask = self._padded(prompts)
        first = [int(row.sum()) for row in mask]
        said = [list(ids) for ids, _ in prompts]
        states: list[list[Any]] = [[] for _ in prompts]
        scores: list[list[Any]] = [[] for _ in prompts]
        open_rows = set(range(len(prompts)))
        for _ in range(limit):
            found = self._states(step, mask, cache)
            for row in sorted(open_rows):
                # padding stands on the left: a row's own places are its last ones
                own = found[row, -first[row] :] if not states[row] else found[row]
                states[row].append(own)
                logits = n.head(own[-1]).float()
                scores[row].append(logits)
                said[row].append(int(logits.argmax()))
                if said[row][-1] == n.tokenizer.eos:
                    open_rows.discard(row)
            if not open_rows:
                break
            step = n.language.embed_tokens(torch.tensor([[ids[-1]] for ids in said], device=n.device))
            mask = torch.cat([mask, mask.new_ones((len(prompts), 1))], dim=1)
        return [
            Spoken(said[row], len(ids), torch.cat(states[row]), torch.stack(scores[row]))
            for row, (ids, _) in enumerate(prompts)
        ]

    def listen(self, ids: list[int], vectors: Any) -> Spoken:
        """The states of a text that already holds its answer; nothing is generated."""
        return self.listen_many([(ids, vectors)])[0]

    def listen_many(self, prompts: Sequence[tuple[list[int], Any]]) -> list[Spoken]:
        """The states of several texts that already hold their answers."""
        step, mask = self._padded(prompts)
        found = self._states(step, mask, None)
        spoken = []
        for row, (ids, _) in enumerate(prompts):
            own = found[row, -int(mask[row].sum()) :]
            spoken.append(Spoken(list(ids), len(ids), own[:-1], self.networks.head(own[-1:]).float()))
        return spoken

    def _padded(self, prompts: Sequence[tuple[list[int], Any]]) -> tuple[Any, Any]:
        """Prompts as vectors (n, places, width), padded on the left, and which places are theirs, (n, places)."""
        import torch

        rows = [self.embed(ids, vectors) for ids, vectors in prompts]
        longest = max(len(row) for row in rows)
        step = rows[0].new_zeros((len(rows), longest, rows[0].shape[1]))
        mask = torch.zeros((len(rows), longest), dtype=torch.long, device=step.device)
        for place, row in enumerate(rows):
            step[place, longest - len(row) :] = row
            mask[place, longest - len(row) :] = 1
        return step, mask

    def _states(self, step: Any, mask: Any, cache: Any) -> Any:
        """The language model's last states (n, places of `step`, width). A mask without padding is left out, so that
        one question goes the way of the originals."""
        given: dict[str, Any] = {} if cache is None else {cache_name(): cache}
        if not bool(mask.all()):
            places = (mask.cumsum(dim=1) - 1).clamp(min=0)
            given |= {"attention_mask": mask, "position_ids": places[:, -step.shape[1] :]}
        return self.networks.language(inputs_embeds=step, use_cache=cache is not None, **given).last_hidden_state

    def seg_places(self, ids: list[int]) -> list[int]:
        """Places in `Spoken.states` that belong to the [SEG] ids, in order."""
        # An id at t stands at t + patches - 1 when the image is before it; its state is one place earlier.
        shift = self.networks.patches - 2
        seg = self.networks.tokenizer.seg
        return [t + shift for t, token in enumerate(ids) if token == seg]

    def prompts(self, states: Any) -> Any:
        """States (n, width) at [SEG] to SAM's prompt vectors (n, channels)."""
        return self.networks.text(states)

    def masks(self, features: Any, prompts: Any, *, points: tuple[Any, Any] | None = None) -> tuple[Any, Any]:
        """Small logits (n, 1, h, w) and quality guesses (n, 1) for prompt vectors (n, channels).

        `points` are (coordinates (n, k, 2) in SAM's frame, labels (n, k)); then the vectors come last.
        """
        import torch

        sam = self.networks.sam
        count = prompts.shape[0]
        sparse = prompts[:, None, :]
        dense = sam.prompt_encoder.no_mask_embed.weight.reshape(1, -1, 1, 1)
        dense = dense.expand(count, -1, *sam.prompt_encoder.image_embedding_size)
        if points is not None:
            # Points are coded in float32, as segment-anything does, and then follow the model's number type.
            coded = sam.prompt_encoder._embed_points(points[0].float(), points[1], pad=True)
            sparse = torch.cat([coded.to(sparse.dtype), sparse], dim=1)
        code = sam.prompt_encoder.get_dense_pe().to(sparse.dtype)
        low, quality = sam.mask_decoder(
            image_embeddings=features,
            image_pe=code,
            sparse_prompt_embeddings=sparse,
            dense_prompt_embeddings=dense,
            multimask_output=False,
        )
        return low, quality

    def full_size(self, low: Any, height: int, width: int) -> Any:
        """Small logits (n, 1, h, w) to (n, height, width) float32 of the image."""
        return full_size(low, height, width, side=self.networks.sam_side)[:, 0]


def cache_name() -> str:
    """The argument by which the installed transformers takes a cache; it was renamed within version 5."""
    import inspect

    from transformers import LlamaModel

    return "cache" if "cache" in inspect.signature(LlamaModel.forward).parameters else "past_key_values"
