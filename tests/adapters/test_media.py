"""Media go where each provider takes them, wherever they are in the conversation: nothing is lost, and nothing refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.matrix import ADAPTERS, Adapter
from tests.builtin.workspace import toolkit_for
from toolkit import ChatMessage, ContentBlock, TextMessage
from toolkit.adapters import anthropic, bedrock, cohere, gemini, ollama, openai_chat, openai_responses
from toolkit.testing.laws import BLOCKS, CONVERSATIONS, PDF, PNG, QUESTION, TURN, WAV, in_result, result
from toolkit.wire import AssistantToolCallMessage, ToolCall, ToolResultMessage, from_json, to_json

IMAGE, DOCUMENT, AUDIO = BLOCKS["image"], BLOCKS["PDF with filename"], BLOCKS["audio"]
SEEN = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
HURRY = TextMessage("user", "hurry")


def test_chat_takes_only_text_in_results() -> None:
    sent = openai_chat.encode_messages([*in_result(ContentBlock("text", text="see"), IMAGE, DOCUMENT), HURRY])
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user", "user"]
    assert sent[2]["content"] == (
        "see\n[image/png, 7 bytes: attached in the next user message]\n"
        "[Report (final), v2.pdf, application/pdf, 12 bytes: attached in the next user message]"
    )
    lead, about_image, image, about_file, file = sent[3]["content"]
    assert lead["text"] == "[Attached automatically: media from the messages above, which could not be sent there]"
    assert about_image["text"] == "[image/png, 7 bytes, from the result of f (call_1)]"
    assert image == SEEN
    assert about_file["text"] == "[Report (final), v2.pdf, application/pdf, 12 bytes, from the result of f (call_1)]"
    assert file["file"] == {"filename": "Report (final), v2.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}


def test_chat_takes_no_files_but_pdf() -> None:
    """OpenAI's guide to file inputs: chat completions take PDF only, by data or by id; any other file is an error 400."""
    files = [
        BLOCKS["spreadsheet"],
        ContentBlock("image", file_id="file-1", provider="openai_chat"),
        ContentBlock("document", "text/csv", file_id="file-2", provider="openai_chat"),
    ]
    [sent] = openai_chat.encode_messages([TextMessage("user", files)])
    assert [part["text"] for part in sent["content"]] == [
        "[a.xls, application/vnd.ms-excel, 12 bytes: omitted, this model does not accept it]",
        "[image at file-1: omitted, this model does not accept it]",
        "[text/csv at file-2: omitted, this model does not accept it]",
    ]
    unknown = ContentBlock("document", file_id="file-3", provider="openai_responses")
    [sent] = openai_chat.encode_messages([TextMessage("user", [unknown])])
    assert sent["content"] == [{"type": "file", "file": {"file_id": "file-3"}}]


def test_a_data_url_may_have_parameters() -> None:
    """They are in the standard of such URLs; a block that kept the whole URL could not be sent to anybody else."""
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;name=a.png;charset=utf-8;base64,{PNG}"}}
    kept = openai_chat.decode_messages([{"role": "user", "content": [part]}])
    [message] = anthropic.encode_messages(kept)
    assert message["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": PNG}
    assert openai_chat.encode_messages(kept) == [{"role": "user", "content": [part]}]


def test_nothing_comes_between_the_results_of_a_turn() -> None:
    sent = openai_chat.encode_messages(CONVERSATIONS["results of parallel calls, with media"])
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user", "user"]
    kinds = [part["type"] for part in sent[4]["content"] if part["type"] != "text"]
    assert kinds == ["image_url", "file", "file", "input_audio"]


def test_a_server_that_takes_media_in_results_gets_them_there() -> None:
    tool = {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "see"}, SEEN]}
    calls = openai_chat.encode_messages([TURN])
    kept = from_json(to_json(openai_chat.decode_messages([*calls, tool])))
    assert openai_chat.encode_messages(kept) == [*calls, tool]


def test_media_of_a_model_follow_in_a_users_message() -> None:
    drawn = [QUESTION, TextMessage("assistant", [ContentBlock("text", text="so"), IMAGE]), HURRY]
    sent = openai_chat.encode_messages(drawn)
    assert [message["role"] for message in sent] == ["user", "assistant", "user", "user"]
    assert sent[1]["content"] == "so\n[image/png, 7 bytes: attached in the next user message]"
    assert (
        sent[2]["content"][-1] == SEEN and sent[2]["content"][1]["text"] == "[image/png, 7 bytes, from the assistant]"
    )


def test_native_places_in_results_are_used() -> None:
    [*_, item] = openai_responses.encode_messages(in_result(IMAGE, DOCUMENT))
    assert item["output"] == [
        {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG}"},
        {"type": "input_file", "filename": "Report (final), v2.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
    ]
    [*_, turn] = anthropic.encode_messages(in_result(IMAGE, DOCUMENT))
    assert [block["type"] for block in turn["content"][0]["content"]] == ["image", "document"]
    assert turn["content"][0]["content"][1]["title"] == "Report (final), v2.pdf"
    [*_, turn] = bedrock.encode_messages(in_result(IMAGE, DOCUMENT))
    named = turn["content"][0]["toolResult"]["content"][1]["document"]
    assert (named["name"], named["format"]) == ("Report (final) v2", "pdf")
    [*_, message] = ollama.encode_messages(in_result(IMAGE))
    assert message["images"] == [PNG]


def test_models_before_gemini_3_get_no_detail_of_an_image() -> None:
    """Google's guide: a resolution for each part is for Gemini 3 and later; older models refuse it."""
    seen = ContentBlock("image", "image/png", data=PNG, detail="low")
    conversation = [TextMessage("user", [seen]), *in_result(seen)[1:]]
    assert "mediaResolution" in json.dumps(gemini.encode_messages(conversation, "gemini-3-pro"))
    assert "mediaResolution" in json.dumps(gemini.encode_messages(conversation))
    for sent in (conversation, gemini.decode_messages(gemini.encode_messages(conversation))):
        written = json.dumps(gemini.encode_messages(sent, "gemini-2.5-flash"))
        assert "mediaResolution" not in written and written.count(PNG) == 2


def test_bedrock_takes_audio_only_from_users() -> None:
    [*_, turn] = bedrock.encode_messages([*in_result(IMAGE, AUDIO), HURRY])
    first, *rest = turn["content"]
    assert [*first["toolResult"]["content"][0]] == ["image"]
    assert rest[-2]["audio"] == {"format": "wav", "source": {"bytes": WAV}} and rest[-1] == {"text": "hurry"}


def test_documents_of_one_name_are_told_apart_in_bedrock() -> None:
    [turn] = bedrock.encode_messages([TextMessage("user", [DOCUMENT, DOCUMENT, BLOCKS["PDF"], DOCUMENT])])
    names = [block["document"]["name"] for block in turn["content"]]
    assert names == ["Report (final) v2", "Report (final) v2 (2)", "document 1", "Report (final) v2 (3)"]


@pytest.mark.parametrize(
    ("model", "in_results"),
    [
        ("gemini-2.5-flash", []),
        ("gemini-3-pro", ["image/png", "application/pdf"]),
        (None, ["image/png", "application/pdf"]),
    ],
)
def test_gemini_takes_some_media_in_results_from_version_3_on(model: str | None, in_results: list[str]) -> None:
    contents = gemini.encode_messages(in_result(IMAGE, DOCUMENT, AUDIO), model)
    response = contents[2]["parts"][0]["functionResponse"]
    assert [part["inlineData"]["mimeType"] for part in response.get("parts", ())] == in_results
    moved = [part["inlineData"]["mimeType"] for part in contents[3]["parts"] if "inlineData" in part]
    assert [*in_results, *moved] == ["image/png", "application/pdf", "audio/wav"]
    assert contents[3]["role"] == "user"


def test_media_that_gemini_3_got_in_a_result_are_moved_for_an_older_model() -> None:
    got = gemini.decode_messages(gemini.encode_messages(in_result(IMAGE)))
    assert gemini.encode_messages(got) == gemini.encode_messages(in_result(IMAGE))
    *_, response, attached = gemini.encode_messages(got, "gemini-2.5-flash")
    assert "parts" not in response["parts"][0]["functionResponse"]
    assert attached["parts"][-1] == {"inlineData": {"mimeType": "image/png", "data": PNG}}


def test_text_files_are_sent_as_text_where_files_are_not_taken() -> None:
    told = "[notes.txt]\nnaïve notes"
    for adapter in (openai_chat, cohere):
        [message] = adapter.encode_messages([TextMessage("user", [BLOCKS["text document"]])])
        assert message["content"] == [{"type": "text", "text": told}]
    [message] = ollama.encode_messages(in_result(BLOCKS["text document"]))[2:]
    assert message["content"] == told


@pytest.mark.parametrize("name", ["SVG", "SVG by URL", "video", "video by URL", "video as image", "TIFF", "archive"])
def test_anthropic_gets_no_images_that_are_none(name: str) -> None:
    sent = json.dumps(anthropic.encode_messages(in_result(BLOCKS[name])))
    assert '"image"' not in sent and "base64" not in sent
    assert "<svg/>" in sent if name == "SVG" else "omitted, this model does not accept it" in sent


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        (ContentBlock("image", data="/9j/4AAQSkZJRg=="), "image/jpeg"),
        (ContentBlock("image", "application/octet-stream", data="R0lGODlhAQ=="), "image/gif"),
        (ContentBlock("image", "image/JPG", data=PNG), "image/jpeg"),
        (ContentBlock("document", "application/octet-stream", data=PDF), "application/pdf"),
        (ContentBlock("document", "application/pdf; name=x", data=PDF), "application/pdf"),
    ],
)
def test_types_that_are_missing_or_misspelt_are_recognised(block: ContentBlock, kind: str) -> None:
    [message] = anthropic.encode_messages([TextMessage("user", [block])])
    assert message["content"][0]["source"]["media_type"] == kind


@pytest.mark.sample
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.module)
@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("place", ["user", "assistant", "result"])
def test_media_arrive_once_or_a_note_says_what_was_left_out(adapter: Adapter, name: str, place: str) -> None:
    block = BLOCKS[name]
    sent = json.dumps(adapter.encode_messages(CONVERSATIONS[f"{place}: {name}"]), ensure_ascii=False)
    if "omitted" in sent:
        assert sent.count("omitted") == 1 and (block.media_type or block.type) in sent
    elif block.data is not None:
        text = {"SVG": "<svg/>", "text document": "naïve notes", "JSON document": "as JSON"}.get(name, block.data)
        assert sent.count(block.data) + (sent.count(text) if text != block.data else 0) == 1
    else:
        assert str(block.url or block.file_id) in sent  # notes name it as well


def test_a_picture_that_a_tool_read_reaches_every_provider(tmp_path: Path) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(16)
    (tmp_path / "shot.png").write_bytes(picture)
    call = ToolCall("call_1", "read_file", {"path": "shot.png"})
    with toolkit_for(tmp_path) as toolkit:
        read = toolkit.invoke("read_file", {"path": "shot.png"}).to_result("call_1")
    messages: list[ChatMessage] = [QUESTION, AssistantToolCallMessage("", [call]), ToolResultMessage(read)]
    for adapter in ADAPTERS:
        sent = json.dumps(adapter.encode_messages(messages))
        assert "iVBORw0KGgo" in sent and "omitted" not in sent, adapter.module


def test_a_file_of_another_provider_is_named_instead_of_sent() -> None:
    [decoded] = anthropic.decode_messages(
        [{"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "file_1"}}]}]
    )
    [message] = openai_chat.encode_messages([decoded])
    assert message["content"] == [{"type": "text", "text": "[document at file_1: omitted, only anthropic can read it]"}]
    assert anthropic.encode_messages([decoded])[0]["content"][0]["source"] == {"type": "file", "file_id": "file_1"}


def test_both_apis_of_openai_read_the_same_files() -> None:
    raw: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]
    [item] = openai_responses.encode_messages(openai_chat.decode_messages(raw))
    assert item["content"] == [{"type": "input_file", "file_id": "file-1"}]
    assert openai_chat.encode_messages(openai_responses.decode_messages([item])) == raw


def test_files_in_googles_store_have_an_owner_and_public_addresses_have_none() -> None:
    uri = "https://generativelanguage.googleapis.com/v1beta/files/abc"
    raw = [{"role": "user", "parts": [{"fileData": {"fileUri": uri, "mimeType": "application/pdf"}}, {"fileData": {"fileUri": "gs://b/a.pdf", "mimeType": "application/pdf"}}, {"fileData": {"fileUri": "https://example.com/a.pdf", "mimeType": "application/pdf"}}]}]  # fmt: skip
    decoded = gemini.decode_messages(raw)
    assert gemini.encode_messages(decoded) == raw
    [message] = anthropic.encode_messages(decoded)
    own, bucket, public = message["content"]
    assert own["text"] == f"[application/pdf at {uri}: omitted, only gemini can read it]"
    assert bucket["text"] == "[application/pdf at gs://b/a.pdf: omitted, this model does not accept it]"
    assert public["source"] == {"type": "url", "url": "https://example.com/a.pdf"}


def test_results_without_media_are_as_before() -> None:
    sent = openai_chat.encode_messages([QUESTION, TURN, result("text", "7")])
    assert sent[2] == {"role": "tool", "tool_call_id": "call_1", "content": "7"}


@pytest.mark.parametrize(
    "adapter", [one for one in ADAPTERS if "split_system" in one.__all__], ids=lambda one: one.module
)
def test_media_of_a_system_text_follow_in_a_users_message(adapter: Adapter) -> None:
    system, rest = adapter.split_system(CONVERSATIONS["system text with an image"])
    assert "here it is" in json.dumps(system) and PNG not in json.dumps(system)
    assert json.dumps(adapter.encode_messages(rest)).count(PNG) == 1
    assert json.dumps(adapter.encode_messages(CONVERSATIONS["system text with an image"])).count(PNG) == 1


WRONG: list[Any] = [None, 7, [], {}, ["image/png"], {"a": 1}]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_media_of_wrong_types_neither_raise_nor_change(wrong: Any) -> None:
    sent: list[tuple[Any, list[Any]]] = [
        (openai_chat, [{"type": "image_url", "image_url": {"url": wrong}}, {"type": "image_url", "image_url": {"url": "https://x/y", "detail": wrong}}, {"type": "file", "file": {"file_data": wrong}}, {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PDF}", "filename": wrong}}, {"type": "input_audio", "input_audio": {"data": wrong, "format": "wav"}}, {"type": "input_audio", "input_audio": {"data": WAV, "format": wrong}}]),
        (openai_responses, [{"type": "input_image", "image_url": wrong}, {"type": "input_image", "image_url": "https://x/y", "detail": wrong}, {"type": "input_file", "file_data": wrong}, {"type": "input_file", "file_url": "https://x/y", "filename": wrong}, {"type": "input_file", "file_id": wrong}]),
        (anthropic, [{"type": "image", "source": wrong}, {"type": "image", "source": {"type": "base64", "media_type": wrong, "data": PNG}}, {"type": "document", "source": {"type": "text", "data": wrong}, "title": wrong}, {"type": "document", "source": {"type": "url", "url": "https://x/y"}, "title": wrong}]),
        (bedrock, [{"image": wrong}, {"image": {"format": wrong, "source": {"bytes": PNG}}}, {"document": {"format": "pdf", "name": wrong, "source": {"bytes": PDF}}}, {"video": {"format": "mp4", "source": wrong}}]),
        (cohere, [{"type": "image_url", "image_url": {"url": wrong}}]),
    ]  # fmt: skip
    for adapter, parts in sent:
        for raw in ([{"role": "user", "content": [{"type": "text", "text": "a"} if adapter is not bedrock else {"text": "a"}, part]}] for part in parts):  # fmt: skip
            assert adapter.encode_messages(adapter.decode_messages(raw)) == raw, adapter.__name__
    for part in ({"inlineData": wrong}, {"inlineData": {"mimeType": wrong, "data": PNG}}, {"inlineData": {"mimeType": "image/png", "data": wrong}}, {"fileData": {"fileUri": "https://x/y", "mimeType": wrong, "displayName": wrong}}):  # fmt: skip
        contents = [{"role": "user", "parts": [{"text": "a"}, part]}]
        assert gemini.encode_messages(gemini.decode_messages(contents)) == contents


def test_a_text_that_is_no_unicode_does_not_stop_a_conversation() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "half \ud83d"}
    raw = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "document", "source": source}]}]
    assert anthropic.encode_messages(anthropic.decode_messages(raw)) == raw
    assert "omitted" in json.dumps(ollama.encode_messages(anthropic.decode_messages(raw)))
