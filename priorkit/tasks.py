"""A pool made ready for one model: prompts as token ids, and a judge for what comes back.

The one place where a completion becomes the text that is verified, so that a probe, a rollout and
an evaluation can never judge differently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from priorkit.engines.protocol import Completion, Request, Sampling
from priorkit.engines.template import RenderedPrompt
from priorkit.engines.thinking import OPEN
from priorkit.errors import SettingError
from priorkit.pool import Pool
from priorkit.verify.protocol import Verdict, Verifier


class Renderer(Protocol):
    """Turns a pool prompt into what the model reads."""

    def render(self, prompt: Any) -> RenderedPrompt:
        """Token ids, whether the prompt was cut, and whether its template opens thinking."""
        ...

    def think_tokens(self, tokens: Sequence[int], opened: bool) -> int | None:
        """Tokens a response spent inside its thinking block; None where it has none."""
        ...


@dataclass(frozen=True, slots=True)
class Judged:
    """One completion and what the verifier says of it.

    Attributes:
        completion: as the engine gave it.
        text: what was verified: what a template opened belongs to the response.
        verdict: the verifier's.
        think_tokens: tokens inside the thinking block; None where it has none.
    """

    completion: Completion
    text: str
    verdict: Verdict
    think_tokens: int | None


class Tasks:
    """A pool rendered by one renderer, with the verifiers it asks for.

    Args:
        pool: what is asked.
        renderer: prompts to token ids.
        verifiers: by the name in the pool's `verifier` column.

    Raises:
        SettingError: a verifier is missing, or a prompt that cannot be rendered.
    """

    def __init__(self, pool: Pool, renderer: Renderer, verifiers: Mapping[str, Verifier]) -> None:
        absent = sorted(set(pool.verifier) - set(verifiers))
        if absent:
            raise SettingError(f"the pool asks for verifier {absent[0]!r}, which was not given")
        self.pool = pool
        self._renderer = renderer
        self._verifiers = verifiers
        self.prompts = [
            _rendered(renderer, key, prompt)
            for key, prompt in zip(pool.prompt_id, pool.prompt, strict=True)
        ]
        self.row_of = {key: row for row, key in enumerate(pool.prompt_id)}

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def n_truncated(self) -> int:
        """Prompts whose left was cut."""
        return sum(prompt.truncated for prompt in self.prompts)

    def request(
        self, row: int, n: int, seed: int, sampling: Sampling, *, first_sample: int = 0
    ) -> Request:
        """`n` samples of the prompt in that pool row."""
        return Request(
            prompt_id=self.pool.prompt_id[row],
            prompt_tokens=self.prompts[row].tokens,
            first_sample=first_sample,
            n=n,
            seed=seed,
            sampling=sampling,
        )

    def judge(self, completion: Completion) -> Judged:
        """Verify one completion of one of the pool's prompts."""
        row = self.row_of[completion.prompt_id]
        opened = self.prompts[row].opens_thinking
        # Without what the template opened, unfinished thinking would read as speech.
        text = storable(OPEN + completion.text if opened else completion.text)
        verifier = self._verifiers[self.pool.verifier[row]]
        verdict = verifier.check(text, self.pool.answer[row], completion.finish_reason)
        thought = self._renderer.think_tokens(completion.tokens, opened)
        return Judged(completion, text, verdict, thought)


def storable(text: str) -> str:
    """Valid Unicode: a lone surrogate would be refused by every file format."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _rendered(renderer: Renderer, key: str, prompt: Any) -> RenderedPrompt:
    try:
        return renderer.render(prompt)
    except SettingError as caught:
        raise SettingError(f"prompt {key!r}: {caught}") from caught
