"""``toolkit playground``: a local page on which a person looks at tools, calls them, and sees what the policy says.

``app`` lists the addresses. ``answers`` makes what they answer from the toolkit, ``calls`` runs calls and asks for approval,
``http`` reads requests and serves the files of ``page``. It needs the extra ``mcp``, which brings Starlette and uvicorn.
"""
