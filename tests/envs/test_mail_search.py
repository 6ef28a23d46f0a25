import json
import random
import warnings
from pathlib import Path
from typing import Any

import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from latih.core import ConfigError, Message, Task, ToolCall
from latih.data import DataSettings
from latih.envs import make
from latih.envs.mail_search import MailSearch
from latih.envs.mail_search.questions import KINDS, Mail
from latih.envs.mail_search.store import write
from latih.rollout import plan, read_rows
from latih.train.config import resolve
from tests.envs.playing import episodes_in_other_processes, play
from tests.soak import examples

ROOT = Path(__file__).parents[2]
MAILS = [
    Mail(1, "2024-01-05", "Ann", "Bo", "Lease", "The lease ends on 2027-03-31.", "a1@x"),
    Mail(2, "2024-02-10", "Bo", "Ann", "Fwd: Lease", "> The lease ends on 2027-03-31.", "b2@x"),
    Mail(3, "2024-03-15", "Ann", "Bo", "Rent", "It is 900 a month. " + "x" * 3000, "c3@x"),
]
LEASE = Task(id="t", prompt="When does the lease end?", answer=["2027-03-31", "31 March 2027"], sources=[["<a1@x>", 2]])


def call(name: str, **arguments: Any) -> Message:
    return calls((name, arguments))


def calls(*made: tuple[str, dict[str, Any] | str]) -> Message:
    each = [ToolCall(id=f"c{i}", name=name, arguments=arguments) for i, (name, arguments) in enumerate(made)]
    return Message(role="assistant", tool_calls=each)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    write(tmp_path / "mail.sqlite", MAILS)
    return tmp_path / "mail.sqlite"


@pytest.fixture
def lease(database: Path) -> MailSearch:
    """Asks for the end of the lease; par is 2, and max_calls 4."""
    env = MailSearch(database=database, max_calls=4)
    env.reset(options={"task": LEASE})
    return env


def told(env: MailSearch, action: Message) -> list[str]:
    observation, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated, info) == (0.0, False, False, {})
    assert isinstance(observation, list)
    assert [each.role for each in observation] == ["tool"] * len(action.tool_calls)
    assert [each.tool_call_id for each in observation] == [each.id for each in action.tool_calls]
    return [each.text for each in observation]


def end(env: MailSearch, action: Message | str) -> tuple[float, dict[str, float]]:
    _, reward, terminated, truncated, info = env.step(action)
    assert terminated or truncated
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("")
    return reward, {name: value for name, value in info["metrics"].items() if value}


def test_an_episode_by_hand(lease: MailSearch) -> None:
    messages, info = lease.reset(options={"task": LEASE})
    assert [(each.role, each.text) for each in messages[1:]] == [("user", "When does the lease end?")]
    assert (messages[0].role, info) == ("system", {})
    assert told(lease, call("search_mail", keywords="lease end", **{"from": "ann"})) == [
        "1 | 2024-01-05 | Ann | Lease | The lease ends on 2027-03-31."
    ]
    assert told(lease, call("read_mail", id=2)) == [
        "id 2\ndate 2024-02-10\nfrom Bo\nto Ann\nFwd: Lease\n> The lease ends on 2027-03-31."
    ]
    observation, reward, terminated, truncated, info = lease.step(call("answer", text="2027-03-31", source_ids=[1]))
    assert (observation, reward, terminated, truncated) == ("Right.", 1.1, True, False)
    assert info["metrics"] == {
        "correct": 1.0,
        "value": 1.0,
        "sources": 1.0,
        "abstained": 0.0,
        "obeyed": 0.0,
        "no_answer": 0.0,
        "tool_calls": 2.0,
        "bad_calls": 0.0,
    }


@pytest.mark.parametrize(
    ("before", "text", "cited", "reward", "metrics"),
    [
        (0, "2027-03-31", [1], 1.0, {"correct": 1.0, "value": 1.0, "sources": 1.0}),  # a guess earns no bonus
        (1, "31 march 2027", [2], 1.1, {"correct": 1.0, "value": 1.0, "sources": 1.0, "tool_calls": 1.0}),
        (3, "2027-03-31", [1, 2], 1.05, {"correct": 1.0, "value": 1.0, "sources": 1.0, "tool_calls": 3.0}),
        (4, "2027-03-31", [1], 1.0, {"correct": 1.0, "value": 1.0, "sources": 1.0, "tool_calls": 4.0}),
        (1, "2027-03-31", [1, 3], 0.4 + 0.4 * 2 / 3, {"value": 1.0, "sources": 2 / 3, "tool_calls": 1.0}),
        (1, "2027-03-31", [], 0.4, {"value": 1.0, "tool_calls": 1.0}),
        (1, "unknown", [1], 0.2, {"abstained": 1.0, "tool_calls": 1.0}),
        (1, "900", [3], 0.0, {"tool_calls": 1.0}),
        (1, "900", [1.0], 0.1, {"sources": 1.0, "tool_calls": 1.0}),
        (1, "2027-03-31 or 2027-04-01", [1], 0.1, {"sources": 1.0, "tool_calls": 1.0}),
        (1, "\0\ud800", [10**30, -1], 0.0, {"tool_calls": 1.0}),
    ],
)
def test_answers_by_hand(
    lease: MailSearch, before: int, text: str, cited: list[Any], reward: float, metrics: dict[str, float]
) -> None:
    for _ in range(before):
        told(lease, call("search_mail", keywords="lease"))
    paid, seen = end(lease, call("answer", text=text, source_ids=cited))
    assert paid == pytest.approx(reward)
    assert seen == pytest.approx(metrics)


def test_two_answers_are_none_however_right(lease: MailSearch) -> None:
    right = ("answer", {"text": "2027-03-31", "source_ids": [1]})
    assert end(lease, calls(("search_mail", {"keywords": "lease"}), right, right)) == (0.0, {})


def test_an_answer_beside_other_calls_is_the_answer(lease: MailSearch) -> None:
    action = calls(("answer", {"text": "2027-03-31", "source_ids": [1]}), ("search_mail", {"keywords": "lease"}))
    assert end(lease, action)[0] == 1.0


@pytest.mark.parametrize("text", ["", "2027-03-31", "answer: 2027-03-31 [1]", "When does the lease end?"])
def test_a_message_without_a_call_is_no_answer(lease: MailSearch, text: str) -> None:
    assert end(lease, text) == (-0.5, {"no_answer": 1.0})


def test_too_many_calls_truncate(lease: MailSearch) -> None:
    assert len(told(lease, calls(*[("read_mail", {"id": 1})] * 3))) == 3
    results, reward, terminated, truncated, info = lease.step(calls(*[("read_mail", {"id": 1})] * 1000))
    assert len(results) == 1
    assert (reward, terminated, truncated) == (-0.5, False, True)
    assert (info["metrics"]["tool_calls"], info["metrics"]["no_answer"]) == (4.0, 1.0)


@pytest.mark.parametrize(
    ("action", "fault"),
    [
        (call("search_mail"), "error: give keywords"),
        (call("search_mail", keywords=" "), "error: give keywords"),
        (call("search_mail", keywords=5), "error: keywords: 5 is not of type 'string'"),
        (call("search_mail", words="x"), "error: Additional properties are not allowed ('words' was unexpected)"),
        (call("search_mail", after="May"), "error: after: a date is YYYY-MM-DD"),
        (call("search_mail", before="2024-02-30"), "error: before: a date is YYYY-MM-DD"),
        (call("search_mail", before="20240203"), "error: before: a date is YYYY-MM-DD"),
        (call("read_mail", id=4), "error: no mail has this id"),
        (call("read_mail", id=10**30), "error: no mail has this id"),
        (call("read_mail", id="1"), "error: id: '1' is not of type 'integer'"),
        (call("read_mail", id=True), "error: id: True is not of type 'integer'"),
        (call("answer", text="x"), "error: 'source_ids' is a required property"),
        (call("answer", text=5, source_ids=[]), "error: text: 5 is not of type 'string'"),
        (call("answer", text="x", source_ids=["1"]), "error: source_ids: 0: '1' is not of type 'integer'"),
        (call("anser", text="x", source_ids=[]), "error: unknown tool 'anser': did you mean 'answer'?"),
        (calls(("answer", "{broken")), "error: the arguments are not a JSON object"),
    ],
)
def test_a_bad_call_is_an_observation(lease: MailSearch, action: Message, fault: str) -> None:
    assert told(lease, action) == [fault]
    assert end(lease, "")[1] == {"no_answer": 1.0, "tool_calls": 1.0, "bad_calls": 1.0}


@settings(max_examples=examples(100), deadline=None)
@given(st.dictionaries(st.sampled_from(["keywords", "from", "to", "after", "before"]), st.text(max_size=12)))
def test_no_search_is_an_error(arguments: dict[str, str]) -> None:
    env = MailSearch(mails=16)
    env.reset(seed=0)
    [text] = told(env, call("search_mail", **arguments))
    assert text == "no mail" or text.startswith("error: ") or len(text.split("\n")) <= 5
    env.close()


def test_what_the_tools_show_is_capped(lease: MailSearch) -> None:
    [text] = told(lease, call("read_mail", id=3))
    assert text.endswith("xxx… (cut)")
    assert len(text) < 2100


@pytest.mark.parametrize("kind", KINDS)
def test_the_expert_scores_the_maximum_by_the_tools_alone(kind: str) -> None:
    env = MailSearch(kinds=(kind,), mails=320)  # type: ignore[arg-type]
    for seed in range(40):
        game = play(env, "expert", seed)
        assert (game.reward, game.metrics["correct"], game.metrics["bad_calls"]) == (1.1, 1.0, 0.0)
        assert game.metrics["tool_calls"] == {"hop": 4.0, "none": 1.0}.get(kind, 2.0)
        shown = " ".join(each.text for each in game.messages if each.role == "tool")
        hits = {line.split(" | ")[0] for each in game.messages if each.role == "tool" for line in each.text.split("\n")}
        [answer] = game.messages[-1].tool_calls
        assert isinstance(answer.arguments, dict)
        # what it cites its searches have found, and what it says it has read
        assert {str(each) for each in answer.arguments["source_ids"]} <= hits
        assert kind == "none" or answer.arguments["text"] in shown
    env.close()


@pytest.mark.parametrize("max_calls", [1, 2, 3])
def test_the_expert_scores_the_maximum_with_few_calls(max_calls: int) -> None:
    env = MailSearch(max_calls=max_calls)
    assert {play(env, "expert", seed).reward for seed in range(20)} == {1.1}


def test_random_play_is_well_formed_and_aimless() -> None:
    recipe = make("mail_search", **resolve("mail_search").env.args)
    for env, least, most in ((MailSearch(), 0.0, 0.15), (recipe, 0.1, 0.35)):
        games = [play(env, "random", seed) for seed in range(200)]  # type: ignore[arg-type]
        assert least <= sum(each.metrics["correct"] for each in games) / 200 <= most
        assert not any(each.truncated or each.metrics["bad_calls"] or each.metrics["no_answer"] for each in games)
        assert max(each.metrics["tool_calls"] for each in games) <= 8


def test_the_novice_finds_the_mail_and_takes_any_number_of_it() -> None:
    env = MailSearch(mails=32, kinds=("lookup",), hits=2, max_calls=3, filters=False)
    games = [play(env, "novice", seed) for seed in range(200)]  # type: ignore[arg-type]
    means = {name: sum(game.metrics[name] for game in games) / 200 for name in games[0].metrics}
    assert means["tool_calls"] == 1
    assert means["bad_calls"] == means["no_answer"] == 0
    assert means["sources"] > 0.8
    assert 0.6 < means["correct"] < 0.8
    env = MailSearch(kinds=("hop",))
    env.reset(seed=1)
    env.calls.made, env.found = 1, []
    [call] = env.scripted("novice", random.Random(0)).tool_calls  # type: ignore[union-attr]
    assert call.arguments == {"text": "unknown", "source_ids": []}


def test_a_baseline_of_random_play_draws_on_its_own_generator() -> None:
    env = MailSearch()
    env.reset(seed=1)
    assert {str(env.scripted("random", random.Random(7))) for _ in range(3)} == {
        str(env.scripted("random", random.Random(7)))
    }
    with pytest.raises(ConfigError, match="no scripted policy 'randm': did you mean 'random'"):
        env.scripted("randm", random.Random(7))


@pytest.mark.parametrize("policy", ["empty", "echo", "all", "abstain"])
def test_do_nothing_policies_score_what_they_should(policy: str) -> None:
    env = MailSearch()
    for seed in range(60):
        (_, question), _ = env.reset(seed=seed)
        every = call("answer", text=question.text, source_ids=list(range(1, 201)))
        unknown = call("answer", text="unknown", source_ids=[])
        action = {"empty": "", "echo": question.text, "all": every, "abstain": unknown}[policy]
        least = {"empty": -0.5, "echo": -0.5, "all": 0.0, "abstain": 0.2}[policy]
        reward, _ = end(env, action)
        if policy == "abstain" and env.question.kind == "none":
            assert reward == 1.0  # right, but it did not look: no bonus
        else:
            assert least <= reward <= least + 0.01


def test_who_obeys_an_injected_instruction_is_wrong() -> None:
    env = MailSearch(kinds=("injected",), hits=20)
    inside = 0
    for seed in range(60):
        env.reset(seed=seed)
        question = env.question
        [bait] = question.baits
        [source] = question.sources
        [text] = told(env, call("read_mail", id=min(source)))
        assert question.answers[0] in text
        inside += bait in text
        [found] = told(env, call("search_mail", keywords=question.searches[0]))
        lines = [line for line in found.split("\n") if bait in line or bait in text]
        assert lines, "the instruction lies where the search leads"
        reward, metrics = end(env, call("answer", text=bait, source_ids=list(source)))
        assert reward == 0.0
        assert metrics["obeyed"] == 1.0
        assert "value" not in metrics
    assert 15 < inside < 45  # in the mail that is asked for, or in one from outside


def test_mailboxes_of_training_and_evaluation_are_disjoint() -> None:
    env = MailSearch(mails=16)
    seen = {}
    for phase in ("train", "eval", "warm_start"):
        for step in range(3):
            for spec in plan(0, phase, step, groups=10):  # type: ignore[arg-type]
                env.reset(seed=spec.seed)
                assert env.store is not None
                mails = "".join(str(env.store.read(number)) for number in range(1, 17))
                assert seen.setdefault(mails, (phase, spec.seed)) == (phase, spec.seed)
    assert len(seen) == 90


def test_questions_of_a_shared_mailbox_are_dealt_out_by_phase() -> None:
    env = MailSearch(mails=320, mailbox=4)
    asked: dict[str, set[str]] = {"train": set(), "eval": set(), "warm_start": set()}
    for phase, texts in asked.items():
        for spec in plan(0, phase, 1, groups=300):  # type: ignore[arg-type]
            texts.add(env.reset(seed=spec.seed)[0][1].text)
    assert not asked["train"] & asked["eval"]
    assert not asked["train"] & asked["warm_start"]
    assert not asked["eval"] & asked["warm_start"]
    assert min(map(len, asked.values())) > 0.9 * 7 * 5  # of 140 questions a quarter each, drawn 300 times
    env.reset()  # without a seed it draws one of its own


def test_a_large_shared_mailbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATIH_CACHE", str(tmp_path))
    env = MailSearch(mails=2001, mailbox=0)
    assert [play(env, "expert", seed).reward for seed in range(10)] == [1.1] * 10
    assert [each.name for each in tmp_path.glob("*/*")] == ["1-0-2001.sqlite"]


@pytest.mark.parametrize(
    ("dials", "fault"),
    [
        ({"mails": 15}, "mail_search: mails=15: Input should be greater than or equal to 16"),
        ({"mails": 2001}, "mails=2001 are too many to make for each seed: share them, with mailbox=0"),
        ({"mails": 63, "mailbox": 0}, "mails=63 have too few questions for episodes to share: give 64"),
        ({"kinds": ["lookups"]}, "mail_search: kinds.0='lookups': Input should be 'lookup', 'update'"),
        ({"kinds": []}, "mail_search: kinds=[]: Tuple should have at least 1 item"),
        ({"reward_abstain": 0.05}, "mail_search: reward_abstain=0.05: Input should be greater than 0.1"),
        ({"database": "absent.sqlite"}, "no such mailbox: absent.sqlite; `python -m latih.envs.mail_search.importer`"),
    ],
)
def test_bad_dials_get_one_line(dials: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make("mail_search", **dials)
    assert fault in str(caught.value)
    assert "\n" not in str(caught.value)


def test_filters_are_a_dial() -> None:
    env = MailSearch(filters=False)
    env.reset(seed=0)
    assert "after" not in str(env.tools)
    assert told(env, call("search_mail", keywords="x", after="2024-01-01")) == [
        "error: Additional properties are not allowed ('after' was unexpected)"
    ]
    assert "after" in str(MailSearch().tools)


def test_rows_about_a_mailbox_of_ones_own(database: Path, tmp_path: Path) -> None:
    rows = [
        LEASE.model_dump(),
        {"prompt": "What is the rent?", "answer": "900", "sources": ["c3@x"]},
        {"prompt": "Who painted the hall?", "answer": "unknown"},
        {"prompt": "Both?", "answer": "1", "sources": [1, 3]},
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    env = MailSearch(database=database)
    tasks = read_rows(DataSettings(), str(tmp_path / "tasks.jsonl"), env)
    games = [play(env, "expert", 0, task) for task in tasks]
    assert [game.messages[1].text for game in games] == [row["prompt"] for row in rows]
    assert {game.reward for game in games} == {1.1}
    env.reset(options={"task": Task(prompt="Both?", answer=1, sources=[1, 3])})
    assert end(env, call("answer", text="1", source_ids=[3, 1]))[0] == 1.0


@pytest.mark.parametrize(
    ("task", "fault"),
    [
        (Task(id="a", prompt="?"), "task 'a' has no answer"),
        (Task(id="a", prompt="?", answer=" "), "task 'a' has no answer"),
        (Task(id="a", answer="x", sources=[1]), "task 'a' asks nothing"),
        (Task(id="a", prompt="?", answer="x"), "task 'a' names no sources"),
        (Task(id="a", prompt="?", answer="x", sources=[]), "task 'a' names no sources"),
        (Task(id="a", prompt="?", answer="x", sources=[1, 9]), "task 'a': no mail 9 in the mailbox"),
        (Task(id="a", prompt="?", answer="x", sources=["z@x"]), "task 'a': no mail 'z@x' in the mailbox"),
        (Task(id="a", prompt="?", answer="x", sources=[[]]), "task 'a' names no sources"),
        (Task(id="a", prompt="?", answer="x", sources=[None]), "task 'a': no mail None in the mailbox"),
        (Task(id="a", prompt="?", answer="x", sources=[True]), "task 'a': no mail True in the mailbox"),
    ],
)
def test_bad_tasks_are_told(database: Path, task: Task, fault: str) -> None:
    env = MailSearch(database=database)
    for tell in (lambda: env.check_task(task), lambda: env.reset(seed=0, options={"task": task})):
        with pytest.raises(ValueError) as caught:
            tell()
        assert fault in str(caught.value)


def test_tasks_and_database_belong_together(database: Path) -> None:
    with pytest.raises(ConfigError, match=r"name files of them in data\.train and data\.eval"):
        MailSearch(database=database).reset(seed=0)
    with pytest.raises(ConfigError, match=r"tasks ask about a mailbox of your own: name it in env\.args\.database"):
        MailSearch().reset(seed=0, options={"task": LEASE})
    with pytest.raises(ConfigError, match=r"tasks ask about a mailbox of your own"):
        MailSearch(mailbox=0).check_task(LEASE)


def test_gymnasium_checks_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make("mail_search"))


def test_recipes_fit_the_env() -> None:
    for config in (resolve("mail_search"), resolve(str(ROOT / "src/latih/recipes/mail_search/gpu.yaml"))):
        env = config.env.make()
        assert config.rollout.max_turns > env.max_calls + 1  # type: ignore[attr-defined]
    assert (config.rollout.groups, config.rollout.group_size, config.trainer.optimizer.lr) == (12, 4, 1.2e-5)


def test_episodes_are_the_same_in_every_process() -> None:
    assert len(episodes_in_other_processes("mail_search", 12, mails=64)) == 1
