"""How many blocks of memory our own code takes, also those that it gives back at once.

Python keeps no such count. So our code is followed from instruction to instruction, and what is there after one that
was not there before it is added up; of what it calls that is not ours, that is what is left when it returns. Python's
own stores of used objects are emptied before every instruction: whatever is taken is taken anew.

To be followed has a cost of its own, which is found out beforehand and left out. It is slow, so it is a run apart from
other counts. What ran before leaves its marks in the interpreter, so it is the same every time only in a fresh process.
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
"""What a meter keeps: blocks in use after the instruction before, now, those counted, and where it is."""
_NO_FRAME = 0

_QUIET_NAMES = """
    CACHE COPY JUMP_BACKWARD JUMP_FORWARD KW_NAMES LOAD_CLOSURE LOAD_CONST LOAD_DEREF LOAD_FAST LOAD_FAST_LOAD_FAST
    LOAD_GLOBAL NOP PRECALL PUSH_NULL RESUME SWAP
"""
_QUIET = frozenset(opmap[name] for name in _QUIET_NAMES.split() if name in opmap)
"""Instructions that neither take memory nor give any back."""


class AllocationMeter:
    """Counts while it is `running`. What it keeps meanwhile is in an array, which takes and gives back no blocks."""

    def __init__(self, is_counted: Callable[[str], bool], *, spare: int = 0) -> None:
        self._is_counted = is_counted
        self._spare = spare
        """What it takes to follow one more call."""
        self._numbers = array("q", [0] * 5)
        self._known_files: dict[str, bool] = {}
        self._quiet: dict[int, tuple[CodeType, list[bool]]] = {}
        self._follow: Callable[..., Any] = self._step  # one for all: to make one for each would take memory

    @property
    def allocations(self) -> int:
        """What was counted when it ran last."""
        return self._numbers[_TOTAL]

    @contextmanager
    def running(self) -> Generator[None]:
        self._numbers[_TOTAL] = 0
        self._numbers[_FRAME] = _NO_FRAME
        with _traced(self._call):
            yield

    @contextmanager
    def learning(self) -> Generator[None]:
        """Inside, it counts nothing: what is kept of code that is followed for the first time is kept from now on."""
        with _traced(self._learn_call):
            yield

    # -- what the interpreter tells

    def _learn_call(self, frame: FrameType, _event: str, _arg: object) -> Callable[..., Any] | None:
        if not self._is_ours(frame.f_code):
            return None
        self._learn(frame.f_code)
        _follow_opcodes(frame, _ignore)
        return _ignore

    def _call(self, frame: FrameType, _event: str, _arg: object) -> Callable[..., Any] | None:
        if not self._is_ours(frame.f_code):
            return None
        _empty_stores()
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
        if event == "exception":  # what is told about it is in memory too
            return self._follow
        numbers = self._numbers
        if event == "return" or not numbers[_IS_QUIET] or numbers[_FRAME] != id(frame):
            _empty_stores()
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
        """What others do before we are called again is not ours."""
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
    frame.f_trace = follow  # first: without it, Python 3.13 does not heed the next
    frame.f_trace_opcodes = True
    frame.f_trace_lines = False


def _ignore(*_: object) -> None: ...


def calibrated_meter(is_counted: Callable[[str], bool] = is_ours) -> AllocationMeter:
    """One that leaves out what it takes to follow a call, in this version of Python."""
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


def _empty_stores() -> None:
    # A collection empties the stores of used objects. It has nothing to look through: what is frozen is left out.
    gc.freeze()
    gc.collect()
    clear_caches()
