"""`nest status`: read the store, gather what matters, and show it on one screen, as a page or as JSON."""
