"""The private-address guard: host names become addresses that may be connected to, or a refusal.

Checking a name and connecting to it later would leave a gap in which DNS may answer something else; so the
connection goes to the very address that was checked. Names alone decide nothing here: odd spellings of loopback
(`2130706433`, `0x7f.1`) are judged by what they resolve to. Who connects is `transport`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.core.schema import Code
from engine.web.errors import FetchError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Networks that carry an IPv4 address inside an IPv6 one; the inner address is judged (RFC 6052, RFC 3056).
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(text: str) -> bool:
    """Whether an IP address, as text, belongs to the public internet. False for text that is no address."""
    try:
        address: Address = ipaddress.ip_address(text.split("%", 1)[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            address = inner
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_loopback
        and not address.is_link_local
        and not address.is_unspecified
    )


@dataclass(frozen=True, slots=True)
class AddressBook:
    """Where a host may be reached. `resolve` is `[collect] resolve`, `allow` is `[collect] allow_hosts`."""

    resolve: Mapping[str, str]
    allow: Sequence[str]

    def allowed_private(self, host: str, port: int) -> bool:
        return host in self.allow or f"{host}:{port}" in self.allow

    async def find(self, host: str, port: int) -> list[tuple[str, int]]:
        """Checked (address, port) pairs to connect to, in the resolver's order.

        Raises `FetchError` with `FETCH_PRIVATE_ADDRESS` where only private ones are found, and `FETCH_FAILED` where
        the name is not known.
        """
        mapped = self.resolve.get(f"{host}:{port}") or self.resolve.get(host)
        if mapped is not None:
            target, _, target_port = mapped.rpartition(":")
            if not target_port.isdigit() or not target:
                raise FetchError(Code.FETCH_BAD_URL, f"[collect] resolve of {host} is not 'address:port'")
            found = [(target.strip("[]"), int(target_port))]
        else:
            try:
                answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as error:
                raise FetchError(Code.FETCH_FAILED, f"the host {host} is not known to DNS") from error
            found = list(dict.fromkeys((str(answer[4][0]), port) for answer in answers))
        if self.allowed_private(host, port):
            return found
        public = [pair for pair in found if is_public(pair[0])]
        if not public:
            raise FetchError(
                Code.FETCH_PRIVATE_ADDRESS, f"{host} lies at a private address; [collect] allow_hosts can permit it"
            )
        return public
