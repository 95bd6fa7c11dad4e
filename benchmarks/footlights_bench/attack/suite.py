"""`footlights bench attack`: all attacks by name, the selection, and the run of one after the other."""

from __future__ import annotations

import json
import resource
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import trio
from attrs import frozen

from footlights_bench.attack.cases.case import run_case
from footlights_bench.attack.cases.http import HTTP_CASES
from footlights_bench.attack.cases.websocket import WEBSOCKET_CASES
from footlights_bench.attack.fairness import FAIRNESS
from footlights_bench.attack.floods.attacker import FLOODS, SOAKS
from footlights_bench.attack.floods.run import QUICK, Pace, run_flood
from footlights_bench.attack.operation import OPERATION
from footlights_bench.attack.privacy import PRIVACY
from footlights_bench.attack.raw.sockets import BROKEN, open_connection
from footlights_bench.attack.results import Result, exit_code, print_results, skipped
from footlights_bench.attack.server import own_server
from footlights_bench.attack.target import CannotAttack
from footlights_bench.attack.users import NotServed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from footlights_bench.attack.cases.case import Case
    from footlights_bench.attack.floods.run import Watch
    from footlights_bench.attack.target import Target

_OPEN_FILES = 4096
_TOKENS_ARE_MISSING = "needs --token and --other-token of two users"


@frozen
class Setup:
    """The server that is attacked, and the durations of the floods."""

    target: Target
    watch: Watch
    pace: Pace
    is_own: bool
    """Whether the suite started the server and can start others with other settings."""


Attack: TypeAlias = Callable[[str, Setup], Awaitable[Result]]


class NoWatch:
    """The `Watch` of a server that the suite did not start: its log and its process cannot be seen."""

    def log_bytes(self) -> None:
        return None

    def ended(self) -> None:
        return None


async def _flood(name: str, setup: Setup) -> Result:
    """The suite starts a new server for each flood, so that none measures the effects of another."""
    if not setup.target.has_two_owners:
        return skipped(name, _TOKENS_ARE_MISSING)
    flood = partial(
        run_flood, name, quiet=setup.pace.quiet, seconds=setup.pace.soak if name in SOAKS else setup.pace.flood
    )
    if not setup.is_own:
        return await flood(setup.target, setup.watch)
    async with own_server() as server:
        return await flood(server.target, server)


async def _case(name: str, setup: Setup, *, case: Case) -> Result:
    if case.needs_token and setup.target.token is None:
        return skipped(name, "needs --token")
    return await run_case(name, case, setup.target)


async def _between_owners(
    name: str, setup: Setup, *, attack: Callable[[str, Target], Awaitable[Result]], settings: str | None = None
) -> Result:
    """With settings, the suite starts another server, whose shared limits are low."""
    if not setup.target.has_two_owners:
        return skipped(name, _TOKENS_ARE_MISSING)
    if not setup.is_own or settings is None:
        return await attack(name, setup.target)
    async with own_server(settings) as server:
        return await attack(name, server.target)


async def _operation(name: str, setup: Setup, *, attack: Callable[[str], Awaitable[Result]]) -> Result:
    return await attack(name) if setup.is_own else skipped(name, "only with a server of the suite's own")


ATTACKS: Mapping[str, Attack] = {
    **{name: partial(_case, case=case) for name, case in {**WEBSOCKET_CASES, **HTTP_CASES}.items()},
    **{name: partial(_operation, attack=attack) for name, attack in OPERATION.items()},
    **{name: partial(_between_owners, attack=attack) for name, attack in PRIVACY.items()},
    **{
        name: partial(_between_owners, attack=attack, settings=settings)
        for name, (attack, settings) in FAIRNESS.items()
    },
    **dict.fromkeys(FLOODS, _flood),
}


def chosen(only: Sequence[str]) -> list[str]:
    """Attacks by name or by family. Raises `CannotAttack` for an unknown name."""
    for name in only:
        if not any(_belongs(attack, name) for attack in ATTACKS):
            families = ", ".join(dict.fromkeys(attack.partition("/")[0] for attack in ATTACKS))
            raise CannotAttack(f"There is no attack {name}. Families: {families}; --list names every attack.")
    return [attack for attack in ATTACKS if not only or any(_belongs(attack, name) for name in only)]


def _belongs(attack: str, name: str) -> bool:
    return attack == name or attack.startswith(f"{name.rstrip('/')}/")


async def attack_with(names: Sequence[str], setup: Setup) -> list[Result]:
    """Run these one after the other. An error in one is its failure, and the others still run."""
    results: list[Result] = []
    for number, name in enumerate(names, 1):
        try:
            result = await ATTACKS[name](name, setup)
        except (CannotAttack, NotServed, trio.TooSlowError, *BROKEN) as error:
            why = str(error) or type(error).__name__
            result = Result(name, "an ordinary user is served", "not served", [why])
        print(f"[{number}/{len(names)}] {name}: {result.verdict} ({result.measured})", file=sys.stderr, flush=True)
        results.append(result)
        try:
            await _reach(setup.target)
        except CannotAttack as error:
            results += [skipped(rest, str(error)) for rest in names[number:]]
            break
    return results


def run_attacks(target: Target | None, *, only: Sequence[str], quick: bool, json_path: Path | None) -> int:
    """Returns the exit code. Raises `CannotAttack` if there is no server to attack."""
    names = chosen(only)
    _allow_many_connections()
    pace = QUICK if quick else Pace()
    results = trio.run(partial(_run, target, names, pace))
    if json_path is not None:
        text = json.dumps([result.to_json() for result in results], ensure_ascii=False, indent=2)
        json_path.write_text(text + "\n", encoding="utf-8")
    print_results(results, _command(target, quick=quick))
    return exit_code(results)


def _command(target: Target | None, *, quick: bool) -> str:
    """The command for the same server, without the tokens, which are secret."""
    words = ["footlights bench attack", *(["--quick"] if quick else [])]
    if target is not None:
        words += [f"--ws-url ws://{target.websocket.authority}", f"--http-url http://{target.http.authority}"]
    return " ".join(words)


async def _run(target: Target | None, names: Sequence[str], pace: Pace) -> list[Result]:
    """Raises `CannotAttack`. SIGTERM and SIGHUP end the run as Ctrl-C does, with all processes that it started."""
    ended: list[list[Result] | CannotAttack] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(_end_on_signals, nursery.cancel_scope)
        try:
            ended.append(await _attack(target, names, pace))
        except CannotAttack as error:
            ended.append(error)  # raised outside the nursery, which would wrap it
        nursery.cancel_scope.cancel()
    match ended:
        case [CannotAttack() as refusal]:
            raise refusal
        case [list() as results]:
            return results
        case _:
            raise KeyboardInterrupt


async def _end_on_signals(scope: trio.CancelScope, task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()


async def _attack(target: Target | None, names: Sequence[str], pace: Pace) -> list[Result]:
    if target is not None:
        await _reach(target)
        return await attack_with(names, Setup(target, NoWatch(), pace, is_own=False))
    async with own_server() as server:
        return await attack_with(names, Setup(server.target, server, pace, is_own=True))


async def _reach(target: Target) -> None:
    """Raises `CannotAttack` if the server does not listen."""
    for address in (target.websocket, target.http):
        try:
            async with open_connection(address):
                pass
        except (OSError, trio.TooSlowError):
            raise CannotAttack(f"Nothing listens at {address.authority}.") from None


def _allow_many_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
