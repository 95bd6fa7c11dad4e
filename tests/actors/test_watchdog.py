from __future__ import annotations
import pytest, trio
pytestmark = pytest.mark.usefixtures("quiet_clock")
async def test_x() -> None:
    t=trio.current_time()
    await trio.sleep(100)
    assert trio.current_time()-t==100
