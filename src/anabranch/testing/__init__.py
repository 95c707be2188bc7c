"""Public helpers for tests: `cases` runs case files, `oracle` is the plain law, `notation` the short form of events."""
