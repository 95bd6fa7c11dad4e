"""`@tool`: turns a typed function into a tool.

The function's parameters and types become the JSON Schema that is offered to the model. Arguments that do not fit never
reach the function: the model gets an error, and the turn continues.
"""

from __future__ import annotations

import inspect
from functools import partial, wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import trio
from attrs import frozen

from footlights.bad_return import BadReturn, is_unawaited
from footlights.errors import RegistrationError
from footlights.tools.arguments import arguments_reader
from footlights.tools.schema import Member, NoJsonForm, hints_of, object_schema, plain
from footlights.tools.tool import Tool, ToolContext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from footlights.events import JsonValue
    from footlights.tools.tool import SideEffects, ToolFunction, ToolReturn

MAX_THREADS = 40
"""Plain functions that may run as tools at the same time; further calls wait."""

Function: TypeAlias = "Callable[..., Any]"

_threads: trio.lowlevel.RunVar[trio.CapacityLimiter | None] = trio.lowlevel.RunVar("tool threads")

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@overload
def tool(function: Function, /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    cancel_safe: bool = False,
    side_effects: SideEffects | None = None,
    timeout: float | None = None,
    idempotency_key: Callable[[Mapping[str, Any]], str] | None = None,
) -> Callable[[Function], Tool]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    cancel_safe: bool = False,
    side_effects: SideEffects | None = None,
    timeout: float | None = None,
    idempotency_key: Callable[[Mapping[str, Any]], str] | None = None,
) -> Tool | Callable[[Function], Tool]:
    """Make a tool from a typed function. The fields of `Tool` describe the other arguments.

    The default name is that of the function, the default description the first paragraph of its docstring. A parameter
    of type `ToolContext` gets the context; every other parameter is an argument, and its type must have a JSON form. An
    `async` function runs as a task. A plain function runs in a thread, which cannot be cancelled: it cannot be
    `cancel_safe`, and a closing stage abandons it.
    `idempotency_key` is called with the arguments that the function gets.

    Raises `RegistrationError` for a function that cannot be a tool.
    """

    def make(function: Function) -> Tool:
        if not (inspect.isfunction(function) or inspect.ismethod(function)):
            raise RegistrationError("A tool is made of a function.")
        tool_name = function.__name__ if name is None else name
        is_async = inspect.iscoroutinefunction(function)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise RegistrationError(f"The tool {tool_name} is a generator, and a tool has one answer.")
        if not is_async and _is_async_inside(function):
            raise RegistrationError(f"The tool {tool_name} wraps an async function, so the wrapper must be async too.")
        if cancel_safe and not is_async:
            raise RegistrationError(f"The tool {tool_name} is no async function, so it cannot be cancel_safe.")
        try:
            parameters = _parameters(function)
            schema = object_schema(parameters.arguments)
        except NoJsonForm as error:
            raise RegistrationError(f"The tool {tool_name} cannot be offered to a model: {error}.") from None
        return Tool(
            name=tool_name,
            run=(_as_a_task if is_async else _in_a_thread)(function, parameters.contexts),
            description=_first_paragraph(function) if description is None else description,
            parameters=schema,
            read_arguments=_reader(parameters),
            cancel_safe=cancel_safe,
            side_effects=side_effects,
            timeout=timeout,
            idempotency_key=idempotency_key,
        )

    return make if function is None else make(function)


def _is_async_inside(function: Function) -> bool:
    wrapped = inspect.unwrap(function)
    return inspect.iscoroutinefunction(wrapped) or inspect.isasyncgenfunction(wrapped)


@frozen
class _Parameters:
    arguments: tuple[Member, ...]
    defaults: Mapping[str, Any]
    contexts: tuple[str, ...]


def _parameters(function: Function) -> _Parameters:
    declared = inspect.signature(function).parameters
    hints = {name: _hint(function, each) for name, each in declared.items()}
    contexts = tuple(name for name, hint in hints.items() if plain(hint) is ToolContext)
    defaults = {
        name: each.default for name, each in declared.items() if each.default is not each.empty and name not in contexts
    }
    arguments = (Member(name, hint, name not in defaults) for name, hint in hints.items() if name not in contexts)
    return _Parameters(tuple(arguments), defaults, contexts)


def _hint(function: Function, parameter: inspect.Parameter) -> Any:
    if parameter.kind not in _BY_NAME:
        raise NoJsonForm(f"{parameter.name} cannot be given by its name")
    if parameter.annotation is parameter.empty:
        raise NoJsonForm(f"{parameter.name} has no type")
    # Linters move imports that only annotations use into `if TYPE_CHECKING`.
    names = {"ToolContext": ToolContext, **inspect.unwrap(function).__globals__}
    # Parameters only: the return type need not be resolvable at run time.
    one = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        return hints_of(one, names)[parameter.name]
    except NameError as error:
        raise NoJsonForm(
            f"{parameter.name} speaks of {error.name}, "
            "which is unknown when the program runs (is it imported only for type checking?)"
        ) from None


def _reader(parameters: _Parameters) -> Callable[[object], dict[str, Any]]:
    read = arguments_reader(parameters.arguments)
    return lambda arguments: {**parameters.defaults, **read(arguments)}


def _as_a_task(function: Function, contexts: tuple[str, ...]) -> ToolFunction:
    @wraps(function)
    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolReturn | JsonValue:
        answer: ToolReturn | JsonValue = await function(**arguments, **dict.fromkeys(contexts, context))
        return answer

    return run


def _in_a_thread(function: Function, contexts: tuple[str, ...]) -> ToolFunction:
    @wraps(function)
    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolReturn | JsonValue:
        call = partial(function, **{**arguments, **dict.fromkeys(contexts, context)})
        return await _Thread(call, f"tool {function.__name__}", context).run()

    return run


class _Thread:
    """A call in a thread. A cancelled tool task still waits for it; only a closing stage abandons it."""

    def __init__(self, call: Callable[[], ToolReturn | JsonValue], name: str, context: ToolContext) -> None:
        self._call = call
        self._name = name
        self._context = context
        self._answer: ToolReturn | JsonValue = None
        self._error: BaseException | None = None
        self._is_over = trio.Event()

    async def run(self) -> ToolReturn | JsonValue:
        limiter = _limiter()
        await limiter.acquire_on_behalf_of(self)
        # A sibling of the tool's task: the tool's timeout does not cancel it, the shutdown of the stage does.
        tools = trio.lowlevel.current_task().parent_nursery
        assert tools is not None, "only trio's root task has no parent"
        tools.start_soon(self._watch, limiter, name=self._name)
        with trio.CancelScope(shield=True):
            await self._is_over.wait()
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # breaks the reference cycle of traceback and frame
        return self._answer

    @trio.lowlevel.enable_ki_protection
    async def _watch(self, limiter: trio.CapacityLimiter) -> None:
        raised: list[BaseException] = []
        call = partial(_call_and_keep_error, self._call, raised)
        try:
            self._answer = await trio.to_thread.run_sync(
                call, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1), thread_name=self._name
            )
            self._error = raised.pop() if raised else None
        except trio.Cancelled as abandoned:
            self._context.begin_side_effects()  # the abandoned thread may do anything from now on
            self._error = abandoned
        except BaseException as error:  # noqa: BLE001 - raised again in the tool's task
            self._error = error
        finally:
            limiter.release_on_behalf_of(self)
            self._is_over.set()


def _call_and_keep_error(
    call: Callable[[], ToolReturn | JsonValue], raised: list[BaseException]
) -> ToolReturn | JsonValue:
    """Call, and append an exception to `raised`: an exception that trio re-raises forms a reference cycle."""
    try:
        answer = call()
        if hasattr(answer, "__await__"):
            raise not_awaited(answer, call)  # noqa: TRY301 - likewise raised again
    except BaseException as error:  # noqa: BLE001 - raised again in the tool's task
        raised.append(error)
        return None
    return answer


def not_awaited(answer: object, function: Function) -> BadReturn:
    """The error of a tool that returned this coroutine."""
    is_unawaited(answer)
    told = "The tool returned a coroutine that was not awaited. Write it with async def, and await the call."
    return BadReturn(told, function)


def _limiter() -> trio.CapacityLimiter:
    """A limiter for each run of trio, separate from trio's default: tools must not take the ledger's thread."""
    limiter = _threads.get(None)
    if limiter is None:
        limiter = trio.CapacityLimiter(MAX_THREADS)
        _threads.set(limiter)
    return limiter


def _first_paragraph(function: Function) -> str:
    paragraph = (inspect.getdoc(function) or "").split("\n\n")[0]
    return " ".join(paragraph.split())
