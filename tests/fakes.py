"""An engine with given solve rates, so that a whole probe runs in a second."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from priorkit.engines.protocol import Completion, Request
from priorkit.engines.template import RenderedPrompt


class CharRenderer:
    """One token a character; nothing is ever cut."""

    def render(self, prompt: object) -> RenderedPrompt:
        return RenderedPrompt(tuple(ord(ch) % 1000 for ch in str(prompt)) or (1,), False)

    def think_tokens(self, tokens: object, opened: bool) -> None:
        return None


class RateEngine:
    """Answers `\\boxed{right}` at a prompt's rate, each sample from its own stream."""

    def __init__(
        self,
        rates: Mapping[str, float],
        answers: Mapping[str, str],
        delay: float = 0.0,
        fail: frozenset[tuple[str, int]] = frozenset(),
    ) -> None:
        self.rates, self.answers, self.delay, self.fail = rates, answers, delay, fail
        self.generated: list[tuple[str, int]] = []

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            for i in range(request.n):
                time.sleep(self.delay)
                yield self._one(request, i)

    def _one(self, request: Request, i: int) -> Completion:
        key = (request.prompt_id, request.first_sample + i)
        self.generated.append(key)
        rng = np.random.Generator(np.random.Philox(key=[request.seed, i]))
        if key in self.fail:
            return Completion(*key, (), "", "error")
        draw = rng.random()
        right = draw < self.rates[request.prompt_id]
        body = self.answers[request.prompt_id] if right else "no idea"
        text = (
            f"Working {draw:.9f}. \\boxed{{{body}}}" if draw < 0.95 else f"I keep thinking {draw}"
        )
        reason = "length" if draw >= 0.97 else "stop"
        return Completion(*key, tuple(range(1, 5 + int(draw * 20))), text, reason)


class BatchedRateEngine(RateEngine):
    """The same in batches of three requests, whose numbers depend on batch mates."""

    def batches(self, requests: list[Request]) -> list[tuple[Request, ...]]:
        return [tuple(requests[i : i + 3]) for i in range(0, len(requests), 3)]

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        held = list(requests)
        mates = ",".join(f"{r.prompt_id}+{r.first_sample}x{r.n}" for r in held)
        for completion in super().generate(held):
            text = f"[{mates}] {completion.text}"
            yield Completion(
                completion.prompt_id,
                completion.sample,
                completion.tokens,
                text,
                completion.finish_reason,
            )
