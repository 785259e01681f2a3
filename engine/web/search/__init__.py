"""Search providers behind the `Search` Protocol: the local index, and remote ones with recorded answers."""
