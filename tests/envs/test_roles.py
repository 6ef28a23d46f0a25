import itertools
import random
import warnings

import numpy as np
import pytest
from gymnasium.spaces import Box
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo.test import api_test
from pettingzoo.utils.wrappers import BaseWrapper

from latih.core import ConfigError, LatihError, Message
from latih.data import DataSettings
from latih.envs import make
from latih.envs.codewords import TOPIC_OF, TOPICS, read_clue, read_guess
from latih.envs.roles import RolesEnv
from latih.rollout import read_rows
from tests.envs.playing import printed_in_other_processes
from tests.soak import examples

NAMES = ["tic_tac_toe_duel", "codewords"]


class Bytes(BaseWrapper):
    """PettingZoo's test asks every observation for a dtype, which no text has: here the messages are padded bytes."""

    space = Box(0, 255, (2000,), np.uint8)

    def observation_space(self, agent):
        return self.space

    def observe(self, agent):
        text = "\n".join(message.text for message in self.env.observe(agent)).encode()
        return np.frombuffer(text.ljust(2000, b"\0"), np.uint8)


@pytest.mark.parametrize("name", NAMES)
def test_pettingzoo_takes_the_env(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # no env here renders, and what is no array is not compared by value
        warnings.filterwarnings("ignore", "Environment has not defined a render")
        warnings.filterwarnings("ignore", "Action space for each agent probably should be")
        warnings.filterwarnings("ignore", "We recommend agents to be named")  # x and o are what players call them
        api_test(Bytes(make(name)), num_cycles=200)


def play(env, policy, seed, env_seed=None):
    """Every (role, observation, action) of a game, then the rewards and metrics of each role."""
    rng, log, rewards, metrics = random.Random(seed), [], dict.fromkeys(env.roles, 0.0), {}
    env.reset(seed=seed if env_seed is None else env_seed)
    for role in env.agent_iter():
        seen, reward, over, _, info = env.last()
        rewards[role] += reward
        action = None if over else env.scripted(policy, rng) if isinstance(policy, str) else policy(role)
        if over:
            metrics[role] = info["metrics"]
        else:
            log.append((role, [message.text for message in seen], action))
        env.step(action)
    return log, rewards, metrics


def moves(*squares):
    turns = iter(squares)
    return lambda role: next(turns)


def test_x_wins_by_hand():
    log, rewards, metrics = play(make("tic_tac_toe_duel"), moves("1", "4", "2", "5", "3"), 0)
    assert [role for role, _, _ in log] == ["x", "o", "x", "o", "x"]
    assert log[1][1][-1] == "You:\nFoe:1\nFree:23456789"
    assert log[2][1] == ["You:1\nFoe:4\nFree:2356789"]  # what is new, and no system message again
    assert rewards == {"x": 1.0, "o": -1.0}
    assert metrics["x"] == {"win": 1, "draw": 0, "loss": 0, "invalid": 0, "walkover": 0, "moves": 3}
    assert metrics["o"] == {"win": 0, "draw": 0, "loss": 1, "invalid": 0, "walkover": 0, "moves": 2}


def test_an_invalid_move_costs_its_side_and_pays_the_other_nothing():
    for bad in ("1", "0", "", "12", "five"):
        _, rewards, metrics = play(make("tic_tac_toe_duel"), moves("1", bad), 0)
        assert rewards == {"x": 0.0, "o": -1.5}
        assert (metrics["x"]["walkover"], metrics["o"]["invalid"]) == (1.0, 1.0)


def test_a_game_cut_short_has_metrics_and_no_outcome():
    env = make("tic_tac_toe_duel")
    env.reset(seed=0)
    env.step("1")
    none = dict.fromkeys(("win", "draw", "loss", "invalid", "walkover"), 0.0)
    assert env.truncate("x", "context") == (0.0, {"metrics": none | {"moves": 1.0}})
    assert env.truncate("o", "context") == (0.0, {"metrics": none | {"moves": 0.0}})
    env = make("codewords")
    env.reset(seed=0)
    for role in env.roles:
        assert env.truncate(role, "context") == (
            0.0,
            {"metrics": {"accuracy": 0.0, "correct": 0.0, "invalid": 0.0}},
        )


def test_perfect_play_draws_and_costs_nobody_anything():
    for seed in range(5):
        _, rewards, metrics = play(make("tic_tac_toe_duel"), "expert", seed)
        assert rewards == {"x": 0.0, "o": 0.0}
        assert metrics["x"]["draw"] == metrics["o"]["draw"] == 1.0


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 2**63 - 1), st.integers(0, 4))
def test_a_duel_sums_to_zero_and_alternates(seed, opening):
    log, rewards, _ = play(make("tic_tac_toe_duel", opening=opening), "random", seed)
    assert rewards["x"] + rewards["o"] == 0.0
    assert all(a[0] != b[0] for a, b in itertools.pairwise(log))


def test_codewords_by_hand():
    env = make("codewords", topics=2, count=2)
    env.reset(seed=1)
    targets, board = env.targets, env.board
    others = [word for word in board if word not in targets]
    assert len({TOPIC_OF[word] for word in targets}) == 1
    say = {"giver": "Number", "guesser": f"{targets[1]}, {targets[0]}"}
    assert play(env, say.__getitem__, 0, env_seed=1)[1] == {"giver": 1.0, "guesser": 1.0}
    say["guesser"] = f"{targets[0]} {others[0]}"
    log, rewards, metrics = play(env, say.__getitem__, 0, env_seed=1)
    assert rewards == {"giver": 0.5, "guesser": 0.5}
    assert metrics["guesser"] == {"accuracy": 0.5, "correct": 0.0, "invalid": 0.0}
    assert "Targets" not in "".join(log[1][1])  # the guesser is not told
    shown, clue = log[1][1][-1].removeprefix("Board: ").split("\nClue: ")
    assert sorted(shown.split()) == sorted(board)
    assert clue == "number"
    say["guesser"] = " ".join(board)  # naming every word is no guess
    assert play(env, say.__getitem__, 0, env_seed=1)[1] == {"giver": -0.5, "guesser": -0.5}
    for clue in ("", targets[0], targets[0] + "s", "animal fruit", "hint"):
        say["giver"] = clue
        log, rewards, metrics = play(env, say.__getitem__, 0, env_seed=1)
        assert rewards == {"giver": -0.5, "guesser": -0.5}
        assert [role for role, _, _ in log] == ["giver"]


def test_codewords_scripts():
    env = make("codewords")
    for seed in range(20):
        assert play(env, "expert", seed)[1] == {"giver": 1.0, "guesser": 1.0}
    scores = [play(env, "random", seed)[1]["giver"] for seed in range(300)]
    assert 0.2 < np.mean(scores) < 0.45  # two of six words at random: a third of them right


def test_a_clue_cannot_stand_for_places():
    env = make("codewords")
    places, right = list(TOPICS), []
    for seed in range(300):
        env.reset(seed=seed)
        first = env.board.index(env.targets[0])
        env.step(places[first])  # a code that giver and guesser have agreed on
        board = env.observe("guesser")[-1].text.split("\n")[0].split()[1:]
        env.step(f"{board[first]} {board[(first + 1) % 6]}")
        right.append(env.rewards["giver"])
    assert 0.25 < np.mean(right) < 0.42  # a third, as by chance


def test_no_topic_is_a_word_of_a_board():
    words = [word for each in TOPICS.values() for word in each.split()]
    assert len(words) == len(set(words)) == 8 * len(TOPICS)
    assert not {*words} & {*TOPICS}


@given(st.text(max_size=40))
def test_any_text_is_a_clue_or_none(text):
    assert read_clue(text) in (None, *TOPICS)
    assert read_guess(text, ["dog", "red"], 1) in (None, ["dog"], ["red"])


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_is_the_same_game_in_every_process(name):
    code = (
        "from tests.envs.test_roles import play; from latih.envs import make;"
        f"print([play(make({name!r}), 'random', seed) for seed in range(3)])"
    )
    runs = printed_in_other_processes(code)
    assert len(runs) == 1
    assert len(runs.pop()) > 100


def test_misuse_is_told():
    env = make("codewords")
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="no scripted policy 'exprt'"):
        env.scripted("exprt", random.Random(0))
    play(env, "expert", 0)
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step("dog")

    class Mute(RolesEnv):
        roles = ("a", "b")

        def start(self):
            self.tell("a", Message(role="user", content="?"))

    with pytest.raises(RuntimeError, match="neither said whose turn"):
        Mute().reset(seed=0)


def test_a_game_may_take_its_tasks_from_rows(tmp_path):
    class Words(RolesEnv):
        roles = ("a", "b")
        columns = ("word",)

    (tmp_path / "a.jsonl").write_text('{"word": "dog"}\n')
    source = str(tmp_path / "a.jsonl")
    assert [task.model_extra for task in read_rows(DataSettings(), source, Words())] == [{"word": "dog"}]
    Words.check_task = lambda self, task: int(task.word)
    with pytest.raises(LatihError, match=r"row 0: invalid literal for int\(\) with base 10: 'dog'"):
        read_rows(DataSettings(), source, Words())
