"""Questions about named entities in news pictures: writing them, checking them, keeping each fact once."""
