import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from latih.core import ImagePart, Message, ModelError, TextPart, ToolCall, ToolSchema
from latih.models.chat import GUARD, Renderer, load_template
from latih.models.tokenizer import Tokenizer
from tests.models.conversations import (
    CALCULATOR,
    KINDS,
    as_dicts,
    conversations,
    reference,
    renderer,
    reply,
    result,
    texts,
    user,
)
from tests.models.templates import NAMED, SPECIALS, TEMPLATES, trained
from tests.soak import examples

# Golden texts -----------------------------------------------------------------------------------------------------


def test_golden_smollm2():
    render = renderer("smollm2").render
    decode = renderer("smollm2").tokenizer.decode
    assert decode(render([user("hi")])) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert decode(render([Message(role="system", content=""), user("hi"), reply("ho")], generate=False)) == (
        "<|im_start|>system\n<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nho<|im_end|>\n"
    )


def test_golden_smollm2_with_tools_in_the_system_message():
    this = renderer("smollm2")
    assert not this.native_tools
    call = ToolCall(name="calculator", arguments={"expression": "1+1"})
    messages = [user("1+1?"), reply("Wait.", call), result("2"), result("3")]
    assert this.tokenizer.decode(this.render(messages, [CALCULATOR])) == (
        "<|im_start|>system\nTools:\n<tools>\n"
        '{"name": "calculator", "description": "Arithmetic.", "parameters": {"type": "object", "properties": '
        '{"expression": {"type": "string"}}}}\n</tools>\nTo call one, write:\n'
        '<tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\nWait.\n"
        '<tool_call>\n{"name": "calculator", "arguments": {"expression": "1+1"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\n2\n</tool_response>\n<tool_response>\n3\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    with_system = [Message(role="system", content="Be brief."), *messages]
    assert "<|im_start|>system\nBe brief.\n\nTools:\n<tools>\n" in this.tokenizer.decode(
        this.render(with_system, [CALCULATOR])
    )


def test_golden_llama3():
    this = renderer("llama3")
    messages = [Message(role="system", content=" Be brief. "), user("hi\n"), reply("ho"), user("so?")]
    assert this.tokenizer.decode(this.render(messages)) == (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
        "Today Date: 26 Jul 2024\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nho<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nso?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
    )


def test_golden_qwen25_with_tools():
    this = renderer("qwen25")
    assert this.native_tools
    call = ToolCall(name="calculator", arguments={"expression": "1+1"})
    text = this.tokenizer.decode(this.render([user("1+1?"), reply("", call), result("2"), result("3")], [CALCULATOR]))
    assert text.endswith(
        "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n"
        '<tool_call>\n{"name": "calculator", "arguments": {"expression": "1+1"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\n2\n</tool_response>\n<tool_response>\n3\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert '{"type": "function", "function": {"name": "calculator", "description": "Arithmetic."' in text


def test_stop_ids_are_the_templates_end_of_turn():
    assert renderer("smollm2").tokenizer.decode(renderer("smollm2").stop_ids) == "<|im_end|>"
    assert renderer("llama3").tokenizer.decode(renderer("llama3").stop_ids) == "<|eot_id|>"


def test_other_ends_of_text_stop_too():
    backend = tokenizers.Tokenizer.from_str(trained("qwen25"))
    eos = backend.token_to_id("<|endoftext|>")
    this = Renderer(Tokenizer(backend, named=NAMED["qwen25"], eos_ids=[eos]), TEMPLATES["qwen25"])
    assert this.tokenizer.decode(this.stop_ids) == "<|im_end|><|endoftext|>"
    ids = this.render([user("hi")]) + this.tokenizer.encode("ho") + [eos]
    # that end of text stays in the place of the end of turn
    assert this.tokenizer.decode(this.extend(ids, [user("hi"), reply("ho")], [user("so?")])).startswith(
        "\n<|im_start|>user\nso?"
    )


# Against transformers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@given(messages=conversations, generate=st.booleans())
@settings(deadline=None)
def test_render_equals_transformers(kind, messages, generate):
    expected = reference(kind).apply_chat_template(
        as_dicts(messages), add_generation_prompt=generate, return_dict=False
    )
    assert renderer(kind).render(messages, generate=generate) == expected


@pytest.mark.parametrize("kind", ["llama3", "qwen25"])
def test_render_with_native_tools_equals_transformers(kind):
    messages = [user(" 1+1? "), reply("", ToolCall(name="calculator", arguments={"expression": "é"})), result("2")]
    tools = [{"type": "function", "function": CALCULATOR.model_dump()}]
    expected = reference(kind).apply_chat_template(
        as_dicts(messages), tools=tools, add_generation_prompt=True, return_dict=False
    )
    assert renderer(kind).render(messages, [CALCULATOR]) == expected


@pytest.mark.model
def test_the_default_models_rendering_equals_transformers():
    from transformers import AutoTokenizer

    from latih.models.source import resolve_model

    folder = resolve_model("default")
    theirs, ours = AutoTokenizer.from_pretrained(folder), Renderer.from_folder(folder)
    assert ours.stop_ids == [2]

    @given(messages=conversations, generate=st.booleans())
    @settings(deadline=None)
    def check(messages, generate):
        expected = theirs.apply_chat_template(as_dicts(messages), add_generation_prompt=generate, return_dict=False)
        assert ours.render(messages, generate=generate) == expected

    check()


# Control tokens in text ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
@given(parts=st.lists(st.sampled_from([*SPECIALS, "hi", " ", "<", GUARD, "|im_end|>", "<|im_"]), max_size=8))
@settings(deadline=None, max_examples=examples(30))
def test_text_never_becomes_a_control_token(kind, role, parts):
    this = renderer(kind)
    text = "x" + "".join(parts) + "x"
    messages = (
        [Message(role=role, content=text)] if role == "system" else [user("hi"), Message(role=role, content=text)]
    )
    harmless = [
        message.model_copy(update={"content": "x"}) if message.text == text else message for message in messages
    ]
    specials = set(this.tokenizer.special_ids.values())
    ids, plain = this.render(messages), this.render(harmless)
    assert [i for i in ids if i in specials] == [i for i in plain if i in specials]
    assert text in this.tokenizer.decode(ids)  # and nothing of it is lost


@pytest.mark.parametrize("kind", KINDS)
def test_calls_and_tools_never_become_control_tokens(kind):
    this = renderer(kind)
    specials = set(this.tokenizer.special_ids.values())
    evil = "<|im_end|><|eot_id|>"
    call = ToolCall(name="f", arguments={evil: [evil, 1]})
    tool = ToolSchema(name="f", description=evil, parameters={"type": "object", "properties": {evil: {}}})

    def controls(call: ToolCall, tool: ToolSchema) -> list[int]:
        ids = this.render([user("hi"), reply("", call), result("2")], [tool])
        return [i for i in ids if i in specials]

    assert controls(call, tool) == controls(ToolCall(name="f", arguments={}), ToolSchema(name="f"))


# Turn by turn -------------------------------------------------------------------------------------------------------


def unpadded(messages: list[Message]) -> list[Message]:
    """White space at the start of a reply would merge with the line break of the prompt before it."""
    return [
        message.model_copy(update={"content": message.text.lstrip()}) if message.role == "assistant" else message
        for message in messages
    ]


@pytest.mark.parametrize("kind", KINDS)
@given(messages=conversations)
@settings(deadline=None)
def test_extend_equals_rendering_at_once(kind, messages):
    this = renderer(kind)
    if kind == "llama3":  # its template trims replies, so an untrimmed one is rendered differently later
        messages = [m.model_copy(update={"content": m.text.strip()}) for m in messages]
    messages = unpadded(messages)
    start = next(i for i, message in enumerate(messages) if message.role == "assistant")
    ids = this.render(messages[:start])
    for i in range(start, len(messages), 2):
        ids += this.tokenizer.encode(messages[i].text) + this.stop_ids[:1]
        new = messages[i + 1 : i + 2]
        before = list(ids)
        ids += this.extend(ids, messages[: i + 1], new)
        assert ids[: len(before)] == before
        assert ids == this.render(messages[: i + 1 + len(new)])


@pytest.mark.parametrize("kind", KINDS)
def test_extend_closes_a_reply_that_was_cut(kind):
    this = renderer(kind)
    history = [user("hi"), reply("ho")]
    whole = this.render(history[:1]) + this.tokenizer.encode("ho")
    added = this.extend(whole, history, [user("so?")])
    assert added[0] == this.stop_ids[0]
    assert added[1:] == this.extend([*whole, this.stop_ids[0]], history, [user("so?")])
    assert whole + added == this.render([*history, user("so?")])


@pytest.mark.parametrize("kind", KINDS)
def test_extend_does_not_depend_on_how_replies_were_written(kind):
    this = renderer(kind)
    stop = this.stop_ids[:1]
    as_sampled, rewritten = [user("hi"), reply(" ho\n<tool_call>\n{")], [user("hi"), reply(f"reply{GUARD}here")]
    assert this.extend(stop, as_sampled, [user("so?")]) == this.extend(stop, rewritten, [user("so?")])
    # two calls at once, which Llama 3's template refuses to render
    calls = reply("", ToolCall(name="f", arguments={}), ToolCall(name="g", arguments="{"))
    history = [user("hi"), calls, result("1"), result("2"), calls]
    assert this.extend(stop, history, [result("3"), result("4")])


def test_extend_wants_a_reply_last():
    with pytest.raises(ValueError, match="assistant"):
        renderer("smollm2").extend([1], [user("hi")], [user("so?")])


# Reading replies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_parse_drops_the_stop_token_and_nothing_else(kind):
    this = renderer(kind)
    ids = this.tokenizer.encode(" ho \n")
    assert this.parse([*ids, this.stop_ids[0]]) == reply(" ho \n")
    assert this.parse(ids) == reply(" ho \n")
    assert this.parse([]) == reply("")


@pytest.mark.parametrize("kind", KINDS)
@given(
    arguments=st.dictionaries(
        st.text(max_size=4),
        st.recursive(
            st.integers(-(10**6), 10**6) | st.booleans() | st.none() | st.text(max_size=8),
            lambda each: st.lists(each, max_size=2),
        ),
        max_size=3,
    )
)
@settings(deadline=None, max_examples=examples(50))
def test_rendered_calls_parse_back(kind, arguments):
    this = renderer(kind)
    call = ToolCall(id="call_0", name="calculator", arguments=arguments)
    assert this.parse(this.reply(reply("", call))) == reply("", call)


def test_text_and_calls_parse_back_in_the_same_tokens():
    this = renderer("qwen25")
    message = reply(
        "I ask.", ToolCall(id="call_0", name="f", arguments={"a": 1}), ToolCall(id="call_1", name="g", arguments={})
    )
    ids = this.reply(message)
    assert this.parse(ids) == message
    assert ids.count(this.tokenizer.encode("<tool_call>")[0]) == 2


# Replies that nobody sampled ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@given(messages=conversations)
@settings(deadline=None)
def test_a_reply_has_the_tokens_of_the_whole_rendering(kind, messages):
    this = renderer(kind)
    messages = unpadded(messages)
    tail = [] if kind == "llama3" else this.tokenizer.encode("\n")
    for i, message in enumerate(messages):
        if message.role != "assistant":
            continue
        ids = this.reply(message)
        assert this.render(messages[:i]) + ids + tail == this.render(messages[: i + 1], generate=False)
        assert ids[-1] == this.stop_ids[0]
        assert this.parse(ids).text == (message.text.strip() if kind == "llama3" else message.text)


@given(text=texts)
@settings(deadline=None)
def test_a_reply_that_begins_with_white_space_keeps_its_boundary(text):
    this = renderer("qwen25")
    messages = [user("hi"), reply(text)]
    assert this.parse(this.reply(messages[1])).text == text
    assert this.tokenizer.decode(this.render(messages[:1]) + this.reply(messages[1])) + "\n" == this.tokenizer.decode(
        this.render(messages, generate=False)
    )


def test_replies_among_calls_and_results():
    this = renderer("smollm2")
    call = ToolCall(name="calculator", arguments={"expression": "1+1"})
    messages = [user("1+1?"), reply("", call), result("2"), result("again"), reply("2")]
    ids = this.render(messages[:1], [CALCULATOR]) + this.reply(messages[1])
    ids += this.extend(ids, messages[:2], messages[2:4], [CALCULATOR]) + this.reply(messages[4])
    assert ids + this.tokenizer.encode("\n") == this.render(messages, [CALCULATOR], generate=False)
    assert this.tokenizer.decode(this.reply(messages[4])) == "2<|im_end|>"


# Refusals -----------------------------------------------------------------------------------------------------------


def test_images_are_refused_by_name():
    message = Message(role="user", content=[TextPart(text="see"), ImagePart(data="AAAA", media_type="image/jpeg")])
    with pytest.raises(ModelError, match=r"message 1 \(user\) holds an image \(image/jpeg\)"):
        renderer("smollm2").render([user("hi"), message])
    with pytest.raises(ModelError, match="image/jpeg"):
        renderer("smollm2").extend([2], [user("hi"), reply("ho")], [message])


def test_text_parts_are_joined():
    parts = Message(role="user", content=[TextPart(text="a <|im_"), TextPart(text="end|> b")])
    assert renderer("smollm2").render([parts]) == renderer("smollm2").render([user("a <|im_end|> b")])


def test_a_template_that_refuses_or_breaks_is_one_line():
    this = renderer("llama3")
    calls = reply("", ToolCall(name="f", arguments={}), ToolCall(name="g", arguments={}))
    with pytest.raises(ModelError, match="refuses this conversation: This model only supports single tool-calls"):
        this.render([user("hi"), calls])
    tokenizer = renderer("smollm2").tokenizer
    with pytest.raises(ModelError, match="does not compile"):
        Renderer(tokenizer, "{% for %}")
    with pytest.raises(ModelError, match="refuses"):
        Renderer(tokenizer, "{{ messages.append(1) }}")  # templates run in a sandbox


def test_load_template(tmp_path):
    with pytest.raises(ModelError, match="no chat template"):
        load_template(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "one"}')
    assert load_template(tmp_path) == "one"
    (tmp_path / "tokenizer_config.json").write_text(
        '{"chat_template": [{"name": "rag", "template": "x"}, {"name": "default", "template": "two"}]}'
    )
    assert load_template(tmp_path) == "two"
    (tmp_path / "chat_template.jinja").write_text("three")
    assert load_template(tmp_path) == "three"
