"""Changes in, changes out: operators over weighted rows of ids, and compiled code below. No query is seen here."""
