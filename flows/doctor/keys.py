"""What keys may do, asked of those who gave them: is the key known, is the model served, is there money, may the token
write. Nothing is spent: only lists and accounts are read. Keys are never shown.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, date, datetime
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from engine.core.config import Config
from flows.doctor.finding import Finding

TIMEOUT_S = 8.0
#: Below so many dollars a whole week may not get through.
LOW_USD = 1.0


def model_access(config: Config, base: str) -> Iterator[Finding]:
    """Whether the endpoint knows the key and serves the model, and what is left on the account where it tells."""
    key = os.environ.get("OPENAI_API_KEY")
    if not key or not config.llm.model:
        return
    status, told = _get(f"{base.rstrip('/')}/models", key)
    host = urlsplit(base).hostname
    if status == 401:
        yield Finding("bad", f"{host} does not know the key in OPENAI_API_KEY", "export a valid one")
        return
    if status == 403:
        yield Finding(
            "warn", f"the key may not list the models of {host}", "give it the scope, or be sure of the model"
        )
    elif status == 200:
        yield _served(config.llm.model, told, str(host))
    elif status is not None:
        yield Finding("warn", f"{host} does not list its models (status {status})", "the first request will tell")
    yield from _balance(base, key)


def _served(model: str, told: Any, host: str) -> Finding:
    listed = told.get("data", ()) if isinstance(told, dict) else ()
    names = [str(one.get("id")) for one in listed if isinstance(one, dict)]
    if model in names:
        return Finding("good", f"{host} serves {model} to this key")
    if not names:
        return Finding("warn", f"{host} lists no models", "the first request will tell")
    near = get_close_matches(model, names, n=2, cutoff=0.4)
    hint = f"it serves {', '.join(near or names[:3])}"
    return Finding("bad", f"{host} does not serve {model} to this key", f"set [llm] model: {hint}")


def _balance(base: str, key: str) -> Iterator[Finding]:
    """Two common forms: `/key` with what a limit leaves, `/user/balance` with the account; others don't tell."""
    root = base.rstrip("/")
    status, told = _get(f"{root}/key", key)
    left: object = None
    if status == 200 and isinstance(told, dict):
        data = told.get("data")
        left = data.get("limit_remaining") if isinstance(data, dict) else None
    if left is None:
        status, told = _get(f"{root.removesuffix('/v1')}/user/balance", key)
        if status == 200 and isinstance(told, dict):
            infos = [one for one in told.get("balance_infos") or () if isinstance(one, dict)]
            left = next((one.get("total_balance") for one in infos if one.get("currency") == "USD"), None)
    try:
        usd = float(left) if isinstance(left, (int, float, str)) else None
    except ValueError:
        usd = None
    if usd is None:
        yield Finding("good", "the balance cannot be asked there: [llm] max_usd and monthly_usd bound what is spent")
    elif usd < LOW_USD:
        yield Finding(
            "bad" if usd <= 0 else "warn", f"${usd:.2f} are left on the account", "top it up before a whole week"
        )
    else:
        yield Finding("good", f"${usd:.2f} are left on the account")


def hub_access(config: Config) -> Iterator[Finding]:
    """Whether the Hub knows the token, and whether it may write to the owner of `[hub] repo`."""
    token = os.environ.get("HF_TOKEN")
    if not token or not config.hub.repo:
        return
    base = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    status, told = _get(f"{base.rstrip('/')}/api/whoami-v2", token)
    host = urlsplit(base).hostname
    if status == 401:
        yield Finding("bad", f"{host} does not know the token in HF_TOKEN", "export a valid one")
        return
    if status != 200 or not isinstance(told, dict):
        what = "does not answer" if status is None else f"answers with status {status}"
        yield Finding("warn", f"{host} {what}: the token could not be tried", "try again before a push")
        return
    owner = config.hub.repo.split("/")[0]
    known = {str(told.get("name")), *(str(org.get("name")) for org in told.get("orgs") or () if isinstance(org, dict))}
    if owner not in known:
        yield Finding(
            "bad", f"the token is of {told.get('name')}, which is not in '{owner}'", "use a token of a member"
        )
        return
    yield _may_write(told, owner, str(told.get("name")))


def _may_write(told: dict[str, Any], owner: str, name: str) -> Finding:
    auth = told.get("auth")
    access = auth.get("accessToken") if isinstance(auth, dict) else None
    role = access.get("role") if isinstance(access, dict) else None
    if role == "read":
        return Finding("bad", f"the token of {name} may only read", "make one that may write to datasets")
    if role == "fineGrained":
        assert isinstance(access, dict)
        scoped = (access.get("fineGrained") or {}).get("scoped") or ()
        allowed = {
            permission
            for scope in scoped
            if (scope.get("entity") or {}).get("name") in (owner, None)
            for permission in scope.get("permissions", ())
        }
        if "repo.write" not in allowed:
            return Finding(
                "bad", f"the token may not write to repositories of {owner}", "add 'repo.write' to its scope"
            )
    if role is None:
        return Finding("good", f"the Hub knows the token of {name}; what it may do is not told")
    return Finding("good", f"the token of {name} may write to {owner}")


def expiries(config: Config, *, today: date | None = None) -> Iterator[Finding]:
    """Keys that run out by `[credentials] expires`."""
    now = today or datetime.now(UTC).date()
    for name, day in sorted(config.credentials.expires.items()):
        left = (day - now).days
        if left < 0:
            yield Finding("bad", f"{name} expired {-left} days ago ({day})", "make a new one, and note its last day")
        elif left <= config.credentials.warn_days:
            yield Finding("warn", f"{name} expires in {left} days ({day})", "make a new one, and note its last day")


def _get(url: str, key: str) -> tuple[int | None, Any]:
    """Status and decoded JSON; (None, None) where nothing answers. Redirects to other hosts would carry the key: none
    is followed."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}", "User-Agent": "nest-data-engine"})
    opener = urllib.request.build_opener(_Stay())
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return answer.status, json.loads(answer.read(2_000_000))
    except urllib.error.HTTPError as error:
        return error.code, None
    except (urllib.error.URLError, OSError):
        return None, None
    except ValueError:
        return 200, None


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **options: Any) -> None:
        return None
