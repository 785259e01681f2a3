"""The sentence that ends all requests of a model endpoint: an empty account, a wrong key, a wrong address."""

from __future__ import annotations

from engine.core.errors import ConfigError, NestError, QuotaExhausted, TransientError
from engine.llm.retry import Advice

KEY_VARIABLE = "OPENAI_API_KEY"


def stop_error(advice: Advice, *, url: str, model: str, told: str, went_well: bool) -> NestError:
    """What to raise for an advice to stop. `told` is the server's message without secrets, `went_well` whether it
    gave completions before."""
    if advice.why == "quota":
        return QuotaExhausted(f"the account at {url} has no quota left ({told}): top it up, then run again")
    if advice.why == "redirect":
        kind = TransientError if went_well else ConfigError
        return kind(
            f"{url} redirects to {told} instead of answering: check [llm] base_url (or OPENAI_BASE_URL), it must be "
            "the address of the endpoint itself"
        )
    if advice.why == "key" and went_well:
        return QuotaExhausted(
            f"{url} took the key in {KEY_VARIABLE} at first and refuses it now: it has expired or was withdrawn. "
            "Renew it, then run again; what was answered is kept"
        )
    if advice.why == "key":
        return ConfigError(f"{url} refuses the key in {KEY_VARIABLE}: check it ({told})")
    return ConfigError(
        f"{url} does not know the model '{model}' or is no model endpoint ({told}): check [llm] model and base_url"
    )
