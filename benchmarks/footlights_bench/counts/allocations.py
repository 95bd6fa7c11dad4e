"""Allocation meter: counts the memory blocks that our own code allocates, even if it frees them at once.

Python keeps no such count. The meter traces our code instruction by instruction and adds up the blocks that are in use
after an instruction and were not before it. For a call into other code, only the blocks left when it returns count.
The interpreter's free lists are emptied before every instruction, so every allocation takes a new block.

Tracing allocates too; that cost is measured beforehand and subtracted. Tracing is slow, so it has a run of its own.
Earlier work changes the state of the interpreter, so the count is the same every time only in a fresh process.
"""

from __future__ import annotations

import gc
import sys
from array import array
from contextlib import contextmanager
from opcode import opmap
from typing import TYPE_CHECKING, Any

from footlights_bench.counts.memory import clear_caches
from footlights_bench.counts.meter import is_ours

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import CodeType, FrameType

_BEFORE, _NOW, _TOTAL, _FRAME, _IS_QUIET = range(5)
"""The meter's state: blocks in use after the last instruction, blocks now, the total, the frame, and a flag."""
_NO_FRAME = 0

_QUIET_NAMES = """
    CACHE COPY JUMP_BACKWARD JUMP_FORWARD KW_NAMES LOAD_CLOSURE LOAD_CONST LOAD_DEREF LOAD_FAST LOAD_FAST_LOAD_FAST
    LOAD_GLOBAL NOP PRECALL PUSH_NULL RESUME SWAP
"""
_QUIET = frozenset(opmap[name] for name in _QUIET_NAMES.split() if name in opmap)
"""Instructions that neither allocate nor free memory."""


class AllocationMeter:
    """Counts while it is `running`. Its state is in an array, which allocates no blocks when it changes."""

    def __init__(self, is_counted: Callable[[str], bool], *, spare: int = 0) -> None:
        self._is_counted = is_counted
        self._spare = spare
        """Blocks that tracing one more call allocates."""
        self._numbers = array("q", [0] * 5)
        self._known_files: dict[str, bool] = {}
        self._quiet: dict[int, tuple[CodeType, list[bool]]] = {}
        self._follow: Callable[..., Any] = self._step  # one for all frames: a new one for each would allocate

    @property
    def allocations(self) -> int:
        """The count of the last run."""
        return self._numbers[_TOTAL]

    @contextmanager
    def running(self) -> Generator[None]:
        self._numbers[_TOTAL] = 0
        self._numbers[_FRAME] = _NO_FRAME
        with _traced(self._call):
            yield

    @contextmanager
    def learning(self) -> Generator[None]:
        """Trace without counting, so that what the meter stores about new code is stored before the run."""
        with _traced(self._learn_call):
            yield

    # -- trace functions

    def _learn_call(self, frame: FrameType, _event: str, _arg: object) -> Callable[..., Any] | None:
        if not self._is_ours(frame.f_code):
            return None
        self._learn(frame.f_code)
        _follow_opcodes(frame, _ignore)
        return _ignore

    def _call(self, frame: FrameType, _event: str, _arg: object) -> Callable[..., Any] | None:
        if not self._is_ours(frame.f_code):
            return None
        _empty_free_lists()
        self._numbers[_NOW] = sys.getallocatedblocks()
        is_new = frame.f_trace is None
        if id(frame.f_back) == self._numbers[_FRAME]:
            self._add(self._spare if is_new else 0)
        self._numbers[_FRAME] = id(frame)
        self._learn(frame.f_code)
        _follow_opcodes(frame, self._follow)
        self._numbers[_IS_QUIET] = True
        self._numbers[_BEFORE] = sys.getallocatedblocks()
        return self._follow

    def _step(self, frame: FrameType, event: str, _arg: object) -> Callable[..., Any]:
        if event == "exception":  # the traceback that the interpreter passes is memory too
            return self._follow
        numbers = self._numbers
        if event == "return" or not numbers[_IS_QUIET] or numbers[_FRAME] != id(frame):
            _empty_free_lists()
            numbers[_NOW] = sys.getallocatedblocks()
            if numbers[_FRAME] == id(frame):
                self._add(0)
            numbers[_BEFORE] = numbers[_NOW]
        if event == "return":
            self._go_back(frame.f_back)
        else:
            numbers[_FRAME] = id(frame)
            numbers[_IS_QUIET] = self._quiet[id(frame.f_code)][1][frame.f_lasti // 2]
        return self._follow

    def _add(self, spare: int) -> None:
        taken = self._numbers[_NOW] - self._numbers[_BEFORE] - spare
        if taken > 0:
            self._numbers[_TOTAL] += taken

    def _go_back(self, caller: FrameType | None) -> None:
        """Ignore what other code does until our code is called again."""
        is_known = caller is not None and self._is_ours(caller.f_code)
        self._numbers[_FRAME] = id(caller) if is_known else _NO_FRAME
        self._numbers[_IS_QUIET] = False

    def _learn(self, code: CodeType) -> None:
        if id(code) not in self._quiet:
            self._quiet[id(code)] = code, [opcode in _QUIET for opcode in code.co_code[::2]]

    def _is_ours(self, code: CodeType) -> bool:
        known = self._known_files.get(code.co_filename)
        if known is None:
            known = self._known_files[code.co_filename] = self._is_counted(code.co_filename)
        return known


def _follow_opcodes(frame: FrameType, follow: Callable[..., Any]) -> None:
    frame.f_trace = follow  # first: otherwise Python 3.13 ignores f_trace_opcodes
    frame.f_trace_opcodes = True
    frame.f_trace_lines = False


def _ignore(*_: object) -> None: ...


def calibrated_meter(is_counted: Callable[[str], bool] = is_ours) -> AllocationMeter:
    """A meter that subtracts what tracing a call allocates in this version of Python."""
    meter = AllocationMeter(__file__.__eq__)
    with meter.learning():
        _call_nothing()
    with meter.running():
        _call_nothing()
    return AllocationMeter(is_counted, spare=meter.allocations)


def _call_nothing() -> None:
    _do_nothing(None)


def _do_nothing(_argument: None) -> None:
    pass


@contextmanager
def _traced(function: Callable[..., Any]) -> Generator[None]:
    before = sys.gettrace()
    sys.settrace(function)
    try:
        yield
    finally:
        sys.settrace(before)


def _empty_free_lists() -> None:
    # A collection empties the free lists. It is fast, because it skips the frozen objects.
    gc.freeze()
    gc.collect()
    clear_caches()
