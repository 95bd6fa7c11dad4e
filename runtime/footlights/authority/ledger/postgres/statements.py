"""Statements that write a world in PostgreSQL: each is one statement, with autocommit, and has the fence in it.

The fence is the update of the row in `heads`: it compares owner, link and digest, and sets the next digest. All rows
are inserted from what it returns. So a statement of an earlier owner inserts nothing and returns nothing, whenever it
arrives. An owner that is stopped in the middle holds no lock, because the server ends a statement without it.

Rejected: BEGIN … COMMIT, which leaves the row locked while its owner is stopped, so that nobody can take over; an
advisory lock, which ends with a connection although its owner still writes on another one.
"""

from __future__ import annotations

_FENCE = """UPDATE footlights.heads SET {chain}_digest = $5, until = greatest(until, clock_timestamp() + $6)
    WHERE world = $1 AND owner = $2 AND link = $3 AND {chain}_digest = $4"""
_COMMITS = """INSERT INTO footlights.commits SELECT head.world, $7::bigint + ord, $8::bigint, s, t, r, c, e
    FROM head, unnest($9::text[], $10::text[], $11::bytea[], $12::text[], $13::text[])
    WITH ORDINALITY AS rows (s, t, r, c, e, ord)"""
_TOOLS = """INSERT INTO footlights.tools SELECT head.world, $7::bigint + ord, $8::bigint, k, s, e
    FROM head, unnest($9::bytea[], $10::text[], $11::text[]) WITH ORDINALITY AS rows (k, s, e, ord)"""
_REQUESTS = """INSERT INTO footlights.requests (world, session_id, request_id, turn_id, tool_position)
    SELECT head.world, s, r, t, p FROM head, unnest({0}::text[], {1}::text[], {2}::text[], {3}::bigint[])
    WITH ORDINALITY AS rows (s, r, t, p, ord) ORDER BY ord ON CONFLICT (world, session_id, request_id) DO NOTHING"""
_NO_CLASH = """ AND NOT EXISTS (SELECT FROM unnest({0}::text[], {1}::text[], {2}::text[]) AS rows (s, r, t)
    JOIN footlights.requests AS known ON known.world = $1 AND known.session_id = s AND known.request_id = r
    WHERE known.turn_id <> t)"""
_NODES = """INSERT INTO footlights.nodes SELECT head.world, {0}::bigint + ord - 1, b, k
    FROM head, unnest({1}::bytea[], {2}::bytea[]) WITH ORDINALITY AS rows (b, k, ord)"""
_WORLD = """INSERT INTO footlights.worlds
    SELECT head.world, {0}::bigint, {1}::bigint, {2}::bigint, {3}::text FROM head"""
_FORGET = """DELETE FROM footlights.worlds USING head
    WHERE worlds.world = head.world AND worlds.first < {0}::bigint AND worlds.position > 0"""

BEGIN = b"""WITH head AS (
    UPDATE footlights.heads SET owner = $2, link = 0, entry_digest = $3, node = $4, address = $5,
        until = clock_timestamp() + $6
    WHERE world = $1 AND owner = $7 AND link = $8 AND entry_digest = $9 AND tool_digest = $10
        AND (until <= clock_timestamp() OR owner = $11)
    RETURNING world, name),
epoch AS (INSERT INTO footlights.epochs SELECT world, $12::bigint, $13::bigint, $3 FROM head),
unfinished AS (DELETE FROM footlights.nodes USING head WHERE nodes.world = head.world AND nodes.id >= $14::bigint)
SELECT pg_notify('footlights', name) FROM head"""
"""Take a world over: no unfinished checkpoint of the owner before is left."""

RELINK = b"UPDATE footlights.heads SET link = $3 WHERE world = $1 AND owner = $2 AND link < $3 RETURNING 1"
"""Wait for a write that is under way, and make every earlier one that arrives later fail."""

RENEW = b"""UPDATE footlights.heads SET until = greatest(until, clock_timestamp() + $3)
    FROM unnest($1::bigint[], $2::text[]) AS held (w, o) WHERE world = w AND owner = o RETURNING world"""

RELEASE = b"""WITH head AS (
    UPDATE footlights.heads SET owner = '', until = 'epoch' WHERE world = $1 AND owner = $2 RETURNING name)
SELECT pg_notify('footlights', name) FROM head"""

TOUCH = b"UPDATE footlights.heads SET until = until WHERE world = $1 AND owner = $2 AND link = $3 RETURNING 1"

DELETE_NODES = b"""DELETE FROM footlights.nodes WHERE world = $1 AND id IN (
    SELECT id FROM footlights.nodes WHERE world = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT $4)"""
"""It has no fence: rows that no kept world needs are needed by no later one."""

NEXT_WORLD = b"SELECT nextval(pg_get_serial_sequence('footlights.heads', 'world'))"

MAKE_NODES = b"INSERT INTO footlights.nodes SELECT $1, * FROM unnest($2::bigint[], $3::bytea[], $4::bytea[])"

MAKE_WORLD = b"INSERT INTO footlights.worlds VALUES ($1, 0, $2, 1, $3)"

MAKE = b"""INSERT INTO footlights.heads OVERRIDING SYSTEM VALUE
    VALUES ($1, $2, $3, $4, $5, $6, $7, '', 0, '', '', 'epoch') ON CONFLICT (name) DO NOTHING"""


class Statement:
    """A write of one batch, with the parts that it needs."""

    def __init__(self, chain: str, values: list[object]) -> None:
        self._fence = _FENCE.format(chain=chain)
        self._main = _COMMITS if chain == "entry" else _TOOLS
        self._parts = [self._main]
        self.values = values

    def add_requests(self, *columns: object) -> None:
        numbers = self._numbers(*columns)
        if self._main is _COMMITS:  # those of tool steps were checked by the store
            self._fence += _NO_CLASH.format(*numbers)
        self._parts.append(_REQUESTS.format(*numbers))

    def add_nodes(self, first: int, bodies: object, kids: object) -> None:
        self._parts.append(_NODES.format(*self._numbers(first, bodies, kids)))

    def add_world(self, position: int, root: int, first: int, digest: str) -> None:
        numbers = self._numbers(position, root, first, digest)
        self._parts += [_WORLD.format(*numbers), _FORGET.format(numbers[2])]

    def _numbers(self, *values: object) -> list[str]:
        self.values += values
        return [f"${number + 1}" for number in range(len(self.values) - len(values), len(self.values))]

    @property
    def text(self) -> bytes:
        parts = "".join(f",\npart{number} AS ({part})" for number, part in enumerate(self._parts))
        return f"WITH head AS ({self._fence} RETURNING world){parts}\nSELECT 1 FROM head".encode()
