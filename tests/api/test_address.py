"""Addresses: normalized forms are compared, other forms are rejected."""

from __future__ import annotations

import string
from contextlib import suppress
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spotladder.api.address import Endpoint, StoreAddress
from spotladder.errors import InvalidSpec


@pytest.mark.parametrize(
    ("uri", "allowed", "within"),
    [
        ("s3://bucket", "s3://bucket", True),
        ("s3://bucket/", "s3://bucket", True),
        ("s3://bucket/a/b", "s3://bucket", True),
        ("s3://bucket/a/b", "s3://bucket/a", True),
        ("s3://bucket/a/b", "s3://bucket/a/", True),
        ("s3://bucket/a", "s3://bucket/a", True),
        ("s3://any/where", "s3://*", True),
        ("file:///data/team-a/x", "file:///data/team-a", True),
        ("file:///data", "file:///", True),
        ("s3://bucket-evil/a", "s3://bucket", False),
        ("s3://bucket.evil/a", "s3://bucket", False),
        ("s3://bucket/ab", "s3://bucket/a", False),
        ("s3://bucket/A", "s3://bucket/a", False),
        ("s3://Bucket/a", "s3://bucket/a", False),
        ("s3://bucket", "s3://bucket/a", False),
        ("gs://bucket/a", "s3://bucket/a", False),
        ("gs://bucket/a", "s3://*", False),
        ("file:///data/team-ab", "file:///data/team-a", False),
        ("file:///etc", "s3://*", False),
    ],
)
def test_an_address_is_within_an_allowed_address_by_whole_path_segments(uri: str, allowed: str, within: bool) -> None:
    assert StoreAddress.parse(uri).within(StoreAddress.parse(allowed, pattern=True)) is within


NOT_PLAIN = [
    "s3://bucket/a/../b", "s3://bucket/..", "s3://bucket/./a", "s3://bucket//a", "s3://bucket/a//", "s3://bucket/a%2fb",
    "s3://bucket/%2e%2e/b", "s3://bucket/a\\..\\b", "s3://bucket\\a", "s3://user@bucket/a", "s3://user:pw@bucket/a",
    "s3://bucket:443/a", "s3://", "s3:///a", "s3://*/a", "s3://buck*/a", "s3://bucket/*", "s3://..", "s3://a..b/c",
    "s3://.hidden/a", "S3://bucket/a", "http://bucket/a", "s3:/bucket", "bucket/a", "", "s3://bucket/a?x", "s3://bucket/a#x",
    "s3://bucket/a\n", "s3://bucket\n", "s3://bucket/a\x00", "s3://bücket/a", "file://host/a", "file://a", "file:///a/../b",
    "file:///%2e%2e/etc", "file:///a?b", "file:////a",
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_an_ambiguous_address_is_rejected(text: str) -> None:
    with pytest.raises(InvalidSpec, match="write"):
        StoreAddress.parse(text)


def test_a_pattern_is_rejected_as_an_address() -> None:
    assert str(StoreAddress.parse("s3://*", pattern=True)) == "s3://*"
    for text in ("s3://*", "s3://*/"):
        with pytest.raises(InvalidSpec):
            StoreAddress.parse(text)


ANYTHING = st.text(alphabet=st.sampled_from([*string.ascii_lowercase[:3], *"/.%2eEfF5cC\\@:?#*~ \n"]), max_size=24)


@given(ANYTHING)
def test_no_accepted_address_leaves_the_allowed_folder(rest: str) -> None:
    """An accepted address names an object below the allowed folder, however it is decoded and resolved."""
    try:
        address = StoreAddress.parse(f"s3://bucket/team/{rest}")
    except InvalidSpec:
        return
    assert address.within(StoreAddress.parse("s3://bucket/team"))
    for text in (rest, unquote(rest), unquote(unquote(rest))):
        assert ".." not in text.replace("\\", "/").split("/")
    assert urlsplit(f"s3://bucket/team/{rest}").netloc == "bucket"


@given(st.text(min_size=1, max_size=12), st.text(max_size=12))
def test_an_address_of_another_bucket_is_never_within(bucket: str, rest: str) -> None:
    assume(bucket != "bucket" and not bucket.startswith("bucket/"))
    try:
        address = StoreAddress.parse(f"s3://{bucket}{rest}")
    except InvalidSpec:
        return
    assume(address.bucket != "bucket")
    assert not address.within(StoreAddress.parse("s3://bucket"))


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4))
def test_an_address_is_printed_as_written(folders: list[str]) -> None:
    text = "gs://bucket/" + "/".join(folders)
    with suppress(InvalidSpec):
        assert str(StoreAddress.parse(text)) == text.removesuffix("/")


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("https://store.example", ("https", "store.example", 443)),
        ("HTTPS://Store.Example./", ("https", "store.example", 443)),
        ("http://minio.minio:9000", ("http", "minio.minio", 9000)),
        ("https://store.example/storage/v1/s3", ("https", "store.example", 443)),
        ("http://10.0.0.1", ("http", "10.0.0.1", 80)),
        ("http://169.254.169.254.", ("http", "169.254.169.254", 80)),
        ("http://[::1]:9000", ("http", "::1", 9000)),
        ("http://[0:0:0:0:0:ffff:a9fe:a9fe]", ("http", "::ffff:169.254.169.254", 80)),
    ],
)
def test_endpoints_are_parsed_and_normalized(text: str, parsed: tuple[str, str, int]) -> None:
    endpoint = Endpoint.parse(text)
    assert (endpoint.scheme, endpoint.port) == (parsed[0], parsed[2])
    assert endpoint == Endpoint.parse(str(endpoint))
    if not text.startswith("http://[0"):  # the text form of a mapped address depends on Python's version
        assert endpoint.host == parsed[1]


@pytest.mark.parametrize(
    "text",
    [
        "", "store.example", "ftp://store.example", "https://", "https://user@store.example", "https://u:p@store.example",
        "https://store.example@evil.example", "https://store.example\\@evil.example", "https://store.example#@evil.example",
        "https://store.example?x", "https://store%2eexample", "https://store.example:0", "https://store.example:99999",
        "https://store.example:", "https://store.example:80:90", "http://2852039166", "http://0xa9fea9fe", "http://0xa9.254.169.254",
        "http://0251.0376.0251.0376", "http://169.254.43518", "http://127.1", "http://0", "http://0x",
        "http://1.2.3.4.5", "http://256.0.0.1", "http://[::1", "http://::1", "http://[fe80::1%25eth0]", "http://[::ffff:127.1]",
        "http://①②⑦.⓪.⓪.①", "http://xn..a", "http://-a.example", "http://a..b", "http://*.example", "http://a b", "http://a\n",
        "https://store.example/../x", "https://store.example//x", "https://store.example/%2e", " https://store.example",
    ],
)  # fmt: skip
def test_an_ambiguous_endpoint_is_rejected(text: str) -> None:
    with pytest.raises(InvalidSpec):
        Endpoint.parse(text)


@pytest.mark.parametrize(
    ("text", "allowed", "matches"),
    [
        ("https://store.example", "https://store.example:443", True),
        ("https://STORE.example/path", "https://store.example", True),
        ("https://a.blob.core.windows.net", "https://*.blob.core.windows.net", True),
        ("https://blob.core.windows.net", "https://*.blob.core.windows.net", False),
        ("https://evilblob.core.windows.net", "https://*.blob.core.windows.net", False),
        ("http://store.example", "https://store.example", False),
        ("https://store.example:9000", "https://store.example", False),
        ("https://store.example.evil.com", "https://store.example", False),
        ("https://evil-store.example", "https://store.example", False),
    ],
)
def test_an_endpoint_matches_an_allowed_pattern(text: str, allowed: str, matches: bool) -> None:
    assert Endpoint.parse(text).matches(Endpoint.parse(allowed, pattern=True)) is matches
