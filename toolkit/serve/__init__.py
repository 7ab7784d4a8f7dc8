"""The toolkit for people who write no Python: as an MCP server (``toolkit serve``) and behind a local page.

``setup`` says what is served, ``http`` keeps foreign pages and hosts out, ``server`` speaks the protocol, ``sessions`` gives
each client a toolkit, and ``calls`` and ``approvals`` run what a client calls. It needs the extra ``mcp``, which brings the
official SDK, Starlette and uvicorn.
"""
