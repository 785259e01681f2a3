"""Reading one news page: pure functions from bytes to values, none of which opens a connection."""
