"""Transaction cut in two.

`except Exception` does not see Cancelled: no rollback, and the next user of the connection commits the first half.
"""

import sqlite3
from contextlib import closing

import trio


async def transfer(db: sqlite3.Connection) -> None:
    run = trio.to_thread.run_sync
    try:
        await run(db.execute, "BEGIN")
        await run(db.execute, "UPDATE account SET money = money - 10 WHERE id = 1")
        await run(db.execute, "UPDATE account SET money = money + 10 WHERE id = 2")  # here
        await run(db.execute, "COMMIT")
    except Exception:
        db.rollback()
        raise


async def scenario() -> None:
    db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    with closing(db):
        db.execute("CREATE TABLE account (id INTEGER, money INTEGER)")
        db.execute("INSERT INTO account VALUES (1, 50), (2, 50)")
        try:
            await transfer(db)
        finally:
            db.commit()  # the next user of the connection
            total = db.execute("SELECT sum(money) FROM account").fetchone()
            assert total == (100,)
