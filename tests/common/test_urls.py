"""Credentials in URLs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.common.urls import HIDDEN, url_secrets, without_secrets


@pytest.mark.parametrize(
    ("url", "shown", "secrets"),
    [
        ("https://host/v1", "https://host/v1", set()),
        (
            "https://me:pass%40word@host/v1",
            f"https://{HIDDEN}@host/v1",
            {"pass%40word", "pass@word"},
        ),
        ("https://sk-1@host/v1?a=b", f"https://{HIDDEN}@host/v1?a=b", {"sk-1"}),
        (
            "https://host?api-version=1&api-key=k1",
            f"https://host?api-version=1&api-key={HIDDEN}",
            {"k1"},
        ),
        ("https://host?accessToken=k1#f", f"https://host?accessToken={HIDDEN}#f", {"k1"}),
        ("https://host?X-Amz-Signature=k1", f"https://host?X-Amz-Signature={HIDDEN}", {"k1"}),
        ("https://host?sig=k1&sv=2", f"https://host?sig={HIDDEN}&sv=2", {"k1"}),
        ("https://host?apikey=k1&token=", f"https://host?apikey={HIDDEN}&token=", {"k1"}),
        ("embedded/echo?max_tokens=3", "embedded/echo?max_tokens=3", set()),
        ("https://host/a@b?c=d@e", "https://host/a@b?c=d@e", set()),
    ],
)
def test_what_is_taken_out(url: str, shown: str, secrets: set[str]) -> None:
    found = url_secrets(url)
    assert (found.shown, set(found.secrets)) == (shown, secrets)


@given(st.text())
def test_any_text_has_a_form_to_show(text: str) -> None:
    shown = without_secrets(text)
    assert without_secrets(shown) == shown


@given(st.text(alphabet="abcxyz0123456789-_", min_size=12))
def test_no_password_or_key_is_shown(secret: str) -> None:
    shown = without_secrets(f"https://u:{secret}@host.example/v1?api_key={secret}&n=1")
    assert shown == f"https://{HIDDEN}@host.example/v1?api_key={HIDDEN}&n=1"
