"""Both databases for tests of the studio: SQLite, and a real PostgreSQL server that is started once per process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.needs import missing
from tests.postgres_server import Server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A running PostgreSQL server."""
    if reason := missing("postgres"):
        pytest.skip(reason)
    server = Server()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest) -> str:
    """The URL of a database, for a study file's [store]: each test runs once with each kind."""
    if request.param == "sqlite":
        return "sqlite:study.db"
    server: Server = request.getfixturevalue("postgres")
    return server.url
