"""Several roles at one table: order, rewards, and what the others hear when one fails."""

import asyncio
import time

import pytest

from latih.core import Message, SamplerError, SamplingParams, StopReason
from latih.envs.roles import RolesEnv
from latih.harnesses import ChatLoop
from latih.rollout import MessageRenderer, Player, TooManyErrors, plan
from tests.rollout.fakes import ScriptedSampler
from tests.rollout.playing import rollouts


class Count(RolesEnv):
    """`first` and `second` count in turns up to six; each number pays its sayer 1, the end takes 10 off `second`."""

    roles = ("first", "second")
    made: list["Count"]

    def __init__(self):
        self.said, self.closed = [], 0
        type(self).made.append(self)

    def start(self):
        for role in self.roles:
            self.tell(role, Message(role="system", content=f"You are {role}."))
        self.tell("first", "0")
        self.turn("first")

    def act(self, role, action):
        self.said.append((role, action))
        self.pay(role, 1.0)
        if len(self.said) == 6:
            self.pay("second", -10.0)
            for each in self.roles:
                self.tell(each, "over")
            return self.end({"first": {"won": 1.0}, "second": {"won": 0.0}})
        other = self.roles[role == "first"]
        self.tell(other, f"{role} said {action}")
        return self.turn(other)

    def scripted(self, name, rng):
        return f"{name}!"

    def close(self):
        self.closed += 1


@pytest.fixture
def game():
    return type("Game", (Count,), {"made": []})


def seated(game, sampler=None, harness=None, players=None, **settings):
    roll = rollouts(game, sampler or ScriptedSampler(lambda call, prompt: f"n{call}"), harness, **settings)
    roll.players = players or {"first": Player(), "second": Player()}
    return roll


def test_roles_take_turns_and_each_has_its_trajectory_group_and_rewards(game):
    sampler = ScriptedSampler(lambda call, prompt: f"n{call}")
    seen = []
    groups = seated(game, sampler).run(plan(0, "train", 1, groups=2, size=2), seen.append)
    assert [group.id for group in groups] == [f"train/1/{i}/{role}" for i in range(2) for role in Count.roles]
    assert all(len(group.trajectories) == 2 for group in groups)
    assert [[each.role for each in episode] for episode in seen] == [["first", "second"]] * 4
    for env in game.made:
        assert [role for role, _ in env.said] == ["first", "second"] * 3
        assert env.closed == 1
    first, second = (groups[i].trajectories[0] for i in range(2))
    assert (first.index, second.index, first.seed == second.seed) == (0, 0, True)
    assert (first.reward, second.reward) == (3.0, -7.0)
    assert (first.metrics, second.metrics) == ({"won": 1.0}, {"won": 0.0})
    # what came after a role's last word is the pay of that word
    assert [turn.reward for turn in first.turns] == [1.0, 1.0, 1.0]
    assert [turn.reward for turn in second.turns] == [1.0, 1.0, -9.0]
    assert {each.stop_reason for each in (first, second)} == {StopReason.TERMINATED}
    opened = first.sequences[0].messages[2].text
    [said] = [env.said for env in game.made if env.said[0][1] == opened]  # envs are made in no order
    [sequence] = second.sequences
    assert [message.text for message in sequence.messages] == [
        *("You are second.", f"first said {said[0][1]}", said[1][1], f"first said {said[2][1]}", said[3][1]),
        *(f"first said {said[4][1]}", said[5][1]),
    ]
    assert len({call.params.seed for call in sampler.log}) == 24


def test_a_role_may_be_a_script_or_another_sampler_and_then_leaves_no_trajectory(game):
    other = ScriptedSampler(lambda call, prompt: "other")
    for player, said in ((Player(learns=False, script="bot"), "bot!"), (Player(learns=False, sampler=other), "other")):
        [group] = seated(game, players={"first": Player(), "second": player}).run(plan(0, "train", 1, groups=1, size=2))
        assert {each.role for each in group.trajectories} == {"first"}
        assert {text for role, text in game.made[-1].said if role == "second"} == {said}
    assert len(other.log) == 6


def test_a_script_in_place_of_the_sampler_plays_every_role(game):
    roll = seated(game, ScriptedSampler(lambda call, prompt: pytest.fail("sampled")))
    roll.script = "bot"
    groups = roll.run(plan(0, "warm_start", 1, groups=1))
    assert [group.trajectories[0].sampled_tokens for group in groups] == [15, 15]


def test_a_fault_of_one_role_ends_the_wait_of_the_others_at_once(game):
    def script(call, prompt):
        return SamplerError("broken") if call == 3 else "go"

    start = time.monotonic()
    first, second = (
        group.trajectories[0] for group in seated(game, ScriptedSampler(script)).run(plan(0, "train", 1, groups=1))
    )
    assert time.monotonic() - start < 2.0
    assert (second.error.kind, "broken" in second.error.message) == ("sampler", True)
    assert (first.error.kind, first.error.message) == (
        "harness",
        "the game ended by a fault of role second: broken",
    )
    assert game.made[0].closed == 1


def test_a_fault_of_the_world_is_everybodys(game):
    def act(self, role, action):
        raise ZeroDivisionError("deep inside")

    game.act = act
    for group in seated(game).run(plan(0, "train", 1, groups=1)):
        [trajectory] = group.trajectories
        assert trajectory.error.kind == "env"
        assert "step() of test/Env-v0 raised ZeroDivisionError: deep inside" in trajectory.error.message


def test_a_world_that_hangs_is_left_behind(game):
    def act(self, role, action):
        time.sleep(2.0)

    game.act = act
    for group in seated(game, step_timeout=0.1).run(plan(0, "train", 1, groups=1)):
        assert group.trajectories[0].error.hung


def test_a_role_that_runs_out_of_turns_ends_the_game_and_the_other_keeps_its_reward(game):
    first, second = (group.trajectories[0] for group in seated(game, max_turns=2).run(plan(0, "train", 1, groups=1)))
    assert (first.stop_reason, first.reward, first.error) == (StopReason.TURNS, 2.0, None)
    assert (second.stop_reason, second.reward, second.error) == (StopReason.TRUNCATED, 2.0, None)


def test_a_role_whose_game_ends_before_its_first_turn_has_an_empty_trajectory(game):
    def act(self, role, action):
        self.end({})

    game.act = act
    first, second = (group.trajectories[0] for group in seated(game).run(plan(0, "train", 1, groups=1)))
    assert (first.error, first.sampled_tokens > 0) == (None, True)
    assert (second.error, second.sampled_tokens, second.stop_reason) == (None, 0, StopReason.TERMINATED)


def test_who_waits_for_whom_is_told(game):
    class Stuck:
        async def play(self, episode):
            first = await episode.reset()
            if "second" in first[0].text:
                await asyncio.sleep(60)
            await episode.step(await episode.model.chat(first))

    first, second = (
        group.trajectories[0]
        for group in seated(game, harness=Stuck(), episode_timeout=0.2).run(plan(0, "train", 1, groups=1))
    )
    messages = {first.error.message, second.error.message}
    assert "harness Stuck did not end within 0.2 s: it waited for role second" in messages
    assert "harness Stuck did not end within 0.2 s: it waited for the harness itself" in messages


def test_acting_out_of_turn_is_the_harness_fault(game):
    class Rude(ChatLoop):
        async def play(self, episode):
            first = await episode.reset()
            reply = await episode.model.chat(first)
            await asyncio.gather(episode.step(reply), episode.step(reply))

    for group in seated(game, harness=Rude()).run(plan(0, "train", 1, groups=1)):
        assert group.trajectories[0].error.kind == "harness"


def test_deterministic_games_are_the_same_whatever_takes_how_long(game):
    def run(delay):
        other = ScriptedSampler(lambda call, prompt: f"o{len(prompt)}", delay=delay)
        sampler = ScriptedSampler(lambda call, prompt: f"n{len(prompt)}", delay=delay)
        roll = seated(game, sampler, sampling=SamplingParams(max_tokens=9))
        roll.players = {"first": Player(), "second": Player(learns=False, sampler=other)}
        roll.deterministic = True
        groups = roll.run(plan(0, "train", 1, groups=2, size=2))
        return groups, [(call.prompt, call.params) for call in sampler.log + other.log]

    assert run(0.0) == run(lambda call: 0.02 * (call % 3))


def test_an_env_that_ends_without_telling_a_role_is_a_fault_and_nobody_waits(game):
    class Silent(game):
        def step(self, action):
            self.agents = []

    start = time.monotonic()
    for group in seated(Silent, step_timeout=30.0).run(plan(0, "train", 1, groups=1)):
        assert group.trajectories[0].error.kind == "env"
        assert "never said that the game is over for first, second" in group.trajectories[0].error.message
    assert time.monotonic() - start < 5.0


def test_an_env_that_selects_a_role_again_for_which_it_was_over_is_a_fault(game):
    class Undead(game):
        def step(self, action):
            if action is None:  # stays among the agents
                return
            self.terminations["second"] = True
            self.agent_selection = "second"

    start = time.monotonic()
    for group in seated(Undead, step_timeout=30.0).run(plan(0, "train", 1, groups=1)):
        assert "selected 'second' again" in group.trajectories[0].error.message
    assert time.monotonic() - start < 5.0


def test_a_world_that_cannot_be_made_is_made_once(game):
    tries = []

    def make():
        tries.append(1)
        raise ValueError("no board")

    for group in seated(make).run(plan(0, "train", 1, groups=1)):
        assert "no board" in group.trajectories[0].error.message
    assert len(tries) == 1


def test_who_acts_after_another_left_hears_of_that_and_is_not_blamed(game):
    episodes = {}

    class Leaves:
        async def play(self, episode):
            first = await episode.reset()
            episodes[first[0].text] = episode
            if len(episodes) == 2:  # the turn is second's
                await episodes["You are first."].leave(None)
            await episode.step(await episode.model.chat(first))

    first, second = (
        group.trajectories[0] for group in seated(game, harness=Leaves()).run(plan(0, "train", 1, groups=1))
    )
    assert (first.error, first.stop_reason, first.reward) == (None, StopReason.TRUNCATED, 1.0)
    assert (second.error, second.stop_reason, second.reward) == (None, StopReason.TRUNCATED, 0.0)


def test_too_many_errors_counts_the_roles_it_speaks_of(game):
    roll = seated(game, ScriptedSampler(lambda call, prompt: SamplerError("broken")), max_error_fraction=0.5)
    with pytest.raises(TooManyErrors, match=r"^2 of 2 episodes failed \(1 harness, 1 sampler\)"):
        roll.run(plan(0, "train", 1, groups=1))


def test_a_script_speaks_as_the_renderer_of_its_role_reads(game):
    other = MessageRenderer()  # as an endpoint's: its tokens are not the policy's
    players = {"first": Player(), "second": Player(sampler=ScriptedSampler(lambda *_: "other"), renderer=other)}
    roll = seated(game, players=players)
    roll.script = "bot"
    groups = roll.run(plan(0, "warm_start", 1, groups=1))
    assert [group.trajectories[0].error for group in groups] == [None, None]
    assert [group.trajectories[0].sampled_tokens for group in groups] == [15, 3]  # of "bot!" and a stop; of one a reply
