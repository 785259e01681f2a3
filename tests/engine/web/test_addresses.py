"""Which addresses belong to the public internet."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.schema import Code
from engine.web.addresses import AddressBook, is_public
from engine.web.errors import FetchError


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
        "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "240.0.0.1", "::1", "::", "fe80::1", "fe80::1%eth0",
        "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
        "2002:7f00:1::", "2001:db8::1", "not an address", "",
    ],
)  # fmt: skip
def test_private_and_special_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses_are(address: str) -> None:
    assert is_public(address)


@settings(deadline=None)
@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_however_it_is_wrapped(address: ipaddress.IPv4Address) -> None:
    assert (
        is_public(str(address))
        == is_public(f"::ffff:{address}")
        == is_public(f"64:ff9b::{int(address) >> 16:x}:{int(address) & 0xFFFF:x}")
    )


async def test_a_mixed_answer_is_used_by_its_public_part(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    async def answer(self: object, host: str, port: int, **_: object) -> list[object]:
        return [(2, 1, 6, "", (address, port)) for address in ("10.0.0.1", "93.184.216.34", "127.0.0.1")]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", answer)
    assert await AddressBook({}, ()).find("x.example", 80) == [("93.184.216.34", 80)]
    assert len(await AddressBook({}, ("x.example:80",)).find("x.example", 80)) == 3
    with pytest.raises(FetchError) as caught:
        await AddressBook({"x.example": "127.0.0.1:1"}, ("x.example:443",)).find("x.example", 80)
    assert caught.value.code is Code.FETCH_PRIVATE_ADDRESS


async def test_an_unknown_name_and_a_malformed_mapping_are_failures() -> None:
    with pytest.raises(FetchError) as caught:
        await AddressBook({}, ()).find("no-such-host.invalid", 80)
    assert caught.value.code is Code.FETCH_FAILED
    with pytest.raises(FetchError) as caught:
        await AddressBook({"x.example": "nonsense"}, ()).find("x.example", 80)
    assert caught.value.code is Code.FETCH_BAD_URL
