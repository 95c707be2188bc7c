"""DuckDB, window by window: the file becomes a table, one prepared INSERT ... SELECT per instant adds its rows to
another, which is written at the end."""

from __future__ import annotations

import sys

import duckdb

from peers.whole import BRANCH, EX, LEAST_PRICE, START, WholeJob, read_job

VERSION = duckdb.__version__
_N = f"date_diff('second', TIMESTAMP '{START}', \"at\"::TIMESTAMP)"
_NODES = "STRUCT(properties STRUCT({}))[]"
_JSON = {
    "purchases": {
        "at": "TIMESTAMP",
        "nodes": _NODES.format("id BIGINT, category VARCHAR"),
        "relationships": "STRUCT(properties STRUCT(price DOUBLE))[]",
    },
    "payments": {"at": "TIMESTAMP", "nodes": _NODES.format("id BIGINT, branch BIGINT")},
}
_NESTED = {
    "purchases": (
        'nodes[1].properties.id AS "user", nodes[2].properties.id AS item, nodes[2].properties.category AS category, '
        "relationships[1].properties.price AS price"
    ),
    "payments": (
        "nodes[1].properties.id AS source, nodes[1].properties.branch AS branch, nodes[2].properties.id AS target"
    ),
}
_FLAT = {"purchases": '"user", item, category, price', "payments": "source, source_branch AS branch, target"}
_CSV_TYPES = {
    "purchases": {"at": "TIMESTAMP", "user": "BIGINT", "name": "VARCHAR", "age": "BIGINT", "item": "BIGINT",
                  "category": "VARCHAR", "price": "DOUBLE"},
    "payments": {"at": "TIMESTAMP", "source": "BIGINT", "source_branch": "BIGINT", "target": "BIGINT",
                 "target_branch": "BIGINT", "amount": "DOUBLE"},
}  # fmt: skip
_VALUE = "split_part(o, '\"', 2)"
# All triples of an event have its time, which no other event has.
_TRIPLES = {
    "purchases": f"""
        SELECT n, u.id::BIGINT AS "user", i.id::BIGINT AS item, category, price::DOUBLE AS price FROM (
          SELECT n, max(o) FILTER (p = '<{EX}buyer>') AS u, max(o) FILTER (p = '<{EX}item>') AS i,
                 max({_VALUE}) FILTER (p = '<{EX}category>') AS category,
                 max({_VALUE}) FILTER (p = '<{EX}price>') AS price
          FROM spo GROUP BY n)
        JOIN ids AS u ON u.s = u JOIN ids AS i ON i.s = i""",
    "payments": f"""
        SELECT n, a.id::BIGINT AS source, branches.id::BIGINT AS branch, b.id::BIGINT AS target FROM spo
        JOIN ids AS a ON a.s = spo.s JOIN ids AS b ON b.s = spo.o JOIN branches ON branches.s = spo.s
        WHERE p = '<{EX}paid>'""",
}

_FILTER = f'SELECT "user", item, price FROM part WHERE price > {LEAST_PRICE}'
QUERIES = {
    "filter": _FILTER,
    "entering": _FILTER,
    "group": "SELECT category, count(*) AS n, sum(price) AS total FROM part GROUP BY category",
    "pairs": """SELECT u.category, count(*) AS n FROM part AS u JOIN part AS x ON u.item = x.item
        WHERE u."user" < x."user" GROUP BY u.category""",
    "topk": "SELECT item, sum(price) AS total FROM part GROUP BY item ORDER BY total DESC, item LIMIT 10",
    "two_hop": """SELECT q.branch, count(*) AS n FROM part AS p JOIN part AS q ON p.target = q.source
        GROUP BY q.branch""",
    "triangle": """SELECT p.source AS x, q.source AS y, r.source AS z
        FROM part AS p JOIN part AS q ON p.target = q.source
        JOIN part AS r ON q.target = r.source AND r.target = p.source
        WHERE p.source < q.source AND p.source < r.source""",
    "path": f"""SELECT hops, count(*) AS trails FROM (
          SELECT 1 AS hops FROM part WHERE branch = {BRANCH}
          UNION ALL
          SELECT 2 FROM part AS p JOIN part AS q ON p.target = q.source WHERE p.branch = {BRANCH}
          UNION ALL
          SELECT 3 FROM part AS p JOIN part AS q ON p.target = q.source JOIN part AS r ON q.target = r.source
          WHERE p.branch = {BRANCH} AND p.n <> r.n) GROUP BY hops""",
    "connectivity": """SELECT size, sum(size)::BIGINT AS accounts
        FROM (SELECT count(*) AS size FROM component GROUP BY root) GROUP BY size""",
}
# Labels spread along links until none gets smaller; a node is looked at again only when its label changed.
_COMPONENTS = """, link AS (SELECT source AS one, target AS other FROM part UNION ALL SELECT target, source FROM part),
    component(node, root) USING KEY (node) AS (
      SELECT one, min(least(one, other)) FROM link GROUP BY one
      UNION
      SELECT link.one, min(c.root) FROM component AS c JOIN link ON link.other = c.node
      JOIN recurring.component AS known ON known.node = link.one WHERE c.root < known.root GROUP BY link.one)"""
ENTERING = ("entering", "triangle")


def load(connection: duckdb.DuckDBPyConnection, job: WholeJob) -> None:
    """The table `given`, one row per event, in the order of time."""
    match job.format:
        case "ndjson":
            read = f"read_json('{job.file}', format = 'newline_delimited', columns = {_JSON[job.stream]})"
            made = f"SELECT {_N} AS n, {_NESTED[job.stream]} FROM {read}"
        case "parquet":
            made = f"SELECT {_N} AS n, {_NESTED[job.stream]} FROM read_parquet('{job.file}')"
        case "csv":
            read = f"read_csv('{job.file}', header = true, columns = {_CSV_TYPES[job.stream]})"
            made = f"SELECT {_N} AS n, {_FLAT[job.stream]} FROM {read}"
        case _:
            _load_triples(connection, job.file)
            made = f"SELECT * FROM ({_TRIPLES[job.stream]}) ORDER BY n"
    connection.execute(f"CREATE TABLE given AS {made}")


def _load_triples(connection: duckdb.DuckDBPyConnection, file: str) -> None:
    columns = {"at": "TIMESTAMP", "triple": "VARCHAR"}
    connection.execute(f"""
        CREATE TABLE spo AS SELECT {_N} AS n, split_part(triple, ' ', 1) AS s, split_part(triple, ' ', 2) AS p,
          split_part(triple, ' ', 3) AS o
        FROM read_csv('{file}', delim = '\t', header = false, quote = '', escape = '', columns = {columns})""")
    for table, predicate in (("ids", "id"), ("branches", "branch")):
        connection.execute(f"""
            CREATE TABLE {table} AS SELECT DISTINCT s, {_VALUE} AS id FROM spo WHERE p = '<{EX}{predicate}>'""")


def statement(query: str, first: str, last: str) -> str:
    """The rows of a window, as SQL."""
    part = f"part AS (SELECT * FROM given WHERE n > {first} AND n <= {last})"
    if query == "connectivity":
        return f"WITH RECURSIVE {part}{_COMPONENTS} {QUERIES[query]}"
    return f"WITH {part} {QUERIES[query]}"


def run(job: WholeJob) -> None:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    load(connection, job)
    rows = statement(job.query, f"$1 - {job.window}", "$1")
    connection.execute(f"CREATE TABLE told AS SELECT 0::BIGINT AS instant, * FROM ({rows.replace('$1', '0')}) LIMIT 0")
    connection.execute(f"PREPARE whole AS INSERT INTO told SELECT $1, * FROM ({rows})")
    entered = f"({rows}) EXCEPT ALL ({statement(job.query, f'$1 - {job.window + job.slide}', f'$1 - {job.slide}')})"
    connection.execute(f"PREPARE entered AS INSERT INTO told SELECT $1, * FROM ({entered})")
    connection.execute("BEGIN")
    for instant in job.instants:
        later = job.query in ENTERING and instant > job.window
        connection.execute(f"EXECUTE {'entered' if later else 'whole'}({instant})")
    connection.execute("COMMIT")
    connection.execute(f"COPY told TO '{job.out}' (FORMAT json)")


if __name__ == "__main__":
    run(read_job(sys.argv[1]))
