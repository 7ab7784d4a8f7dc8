"""What we replace in the official OAuth client is not public there. This says what is lost when a version moves it.

That it works is tested in ``test_mcp_login.py``. An override that nothing calls any more would not fail there at once: some
of them only keep a program without a person from waiting for one.
"""

from __future__ import annotations

import inspect

import pytest
from mcp.client.auth import OAuthClientProvider

from toolkit.packs.mcp.oauth import ServerAuthorization

REPLACED = {
    "_initialize": "a restart forgets when the token ends and where it is refreshed",
    "_select_authorization_server": "a server chooses where its user logs in, whatever 'issuer' says",
    "_perform_authorization": "without a person a refused token is not refreshed, and a login is begun that nobody sees",
    "_perform_authorization_code_grant": "'scope' of the settings, and rights that a call was refused for, are not asked for",
    "_handle_token_response": "the address for refreshes is not kept",
    "_handle_refresh_response": "of two processes that refresh at the same time, one loses its login",
}
USED = {
    "_refresh_token": "a token that is refused before its end is not refreshed",
    "_auth_flow": "the steps are not run by our transport (through 'async_auth_flow')",
}


@pytest.mark.parametrize("name", [*REPLACED, *USED])
def test_the_official_client_still_has_this_step(name: str) -> None:
    step = vars(OAuthClientProvider).get(name)
    assert callable(step), f"mcp has no {name!r} any more: {(REPLACED | USED)[name]}"


@pytest.mark.parametrize("name", REPLACED)
def test_it_calls_our_step_in_the_same_way(name: str) -> None:
    official, ours = getattr(OAuthClientProvider, name), getattr(ServerAuthorization, name)
    lost = REPLACED[name]
    assert f"self.{name}(" in inspect.getsource(OAuthClientProvider), f"mcp does not call {name!r} any more: {lost}"
    assert inspect.iscoroutinefunction(official) == inspect.iscoroutinefunction(ours), lost
    assert list(inspect.signature(official).parameters) == list(inspect.signature(ours).parameters), lost


def test_the_table_names_every_step_that_is_replaced() -> None:
    ours = {name for name, value in vars(ServerAuthorization).items() if inspect.isfunction(value)}
    assert ours & vars(OAuthClientProvider).keys() - {"__init__"} == REPLACED.keys()
